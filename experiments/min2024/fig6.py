"""Figure 6: toy data in the plane whose loss drops twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .plane import SEEDS, Moment, draw_moments, least_cosine, moment, moments_of
from .shared import TRAINED, States, read_states, slope
from .theory.alignment_history import alignment_history
from .theory.cones import DEAD, MINUS, PLUS, centres, correlation, misplaced, regions

ALIGNED, END = 3300, 30000
"""Iterations of panels b and c; not in the paper."""
MANY = (f"optimizer.iterations={ALIGNED}", f"record.snapshots.interval={ALIGNED}", f"record.loss_every={ALIGNED}")


@dataclass(frozen=True)
class Evidence:
    """Three moments of the run, and its balanced twin that follows gradient flow."""

    states: States
    flow: States
    moments: list[Moment]
    stable_rank: kit.Floats
    """(K,)"""
    reached: kit.Ints
    """(K, m) regions of the neurons."""
    flow_reached: kit.Ints
    networks: list[Moment]
    """Networks of `SEEDS` seeds at `ALIGNED`."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the run by gradient descent and its twin."""
    states, flow = read_states(runs["descent"]), read_states(runs["flow"])
    return Evidence(
        states=states,
        flow=flow,
        moments=[moment(states, iteration) for iteration in (0, ALIGNED, END)],
        stable_rank=alignment_history(states.W, states.v, *centres(states.x, states.y)).stable_rank,
        reached=regions(states.x, states.y, states.W),
        flow_reached=regions(flow.x, flow.y, flow.W),
        networks=moments_of(runs["seeds"], ALIGNED),
    )


def _departures(reached: kit.Ints, v: kit.Floats) -> int:
    """Return how often a neuron left the region of its sign, or S_dead, between two recorded states."""
    home = np.where(v > 0, PLUS, MINUS)
    inside = (reached == home) | (reached == DEAD)
    return int(np.count_nonzero(inside[:-1] & (reached[1:] != reached[:-1])))


def _last_arrival(e: Evidence) -> int:
    """Return the iteration from which on no live neuron is outside the region of its sign, or the last one."""
    late = np.flatnonzero(misplaced(e.reached, e.states.v).any(axis=1))
    iterations = e.states.iterations
    return int(iterations[min(late[-1] + 1, len(iterations) - 1)]) if late.size else 0


def _plateau(states: States) -> int:
    """Return for how many iterations the loss is within 0.03 of a half."""
    near_half = states.loss_iterations[np.abs(states.losses - 0.5) <= 0.03]
    return int(near_half[-1] - near_half[0]) if near_half.size else 0


def _drops(states: States) -> list[int]:
    """Return when the loss falls fastest above, and below, 0.45 of its first value."""
    times = states.loss_iterations
    rates = -np.gradient(states.losses, times)
    split = kit.first_below(times, states.losses, 0.45 * float(states.losses[0]))
    parts = [times < split, times >= split] if split is not None else [times >= 0]
    return [int(times[part][np.argmax(rates[part])]) for part in parts if part.any()]


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Appendix A.1, Figure 6 and Theorem 1."""
    source = "Appendix A.1, Figure 6"
    x, y = e.states.x, e.states.y
    x_plus, x_minus = centres(x, y)
    first, aligned, last = e.moments
    drops = _drops(e.states)
    rank = e.stable_rank[len(e.stable_rank) // 2 :].max()
    outside = np.array([np.count_nonzero(now.outside) for now in e.networks])
    sides = ((PLUS, x_plus), (MINUS, x_minus))
    cosines = np.array(
        [
            [least_cosine(now, ~now.outside & (now.reached == region), target) for region, target in sides]
            for now in e.networks
        ]
    )
    cosines = np.nan_to_num(cosines, nan=-1.0)  # no neuron there: none is aligned
    flow_wrong = misplaced(e.flow_reached[-1], e.flow.v[-1])
    return [
        kit.theory("assumption-1", "The data satisfy Assumption 1 (mu)",
                  "Appendix A.1", kit.more_than(0.0), correlation(x, y).mu),
        kit.claim("small", "At initialisation all neurons have small norm (largest over the largest at the end)",
                  f"{source} (a)", kit.less_than(0.01), first.largest / last.largest),
        kit.claim("cosine-plus",
                  "After alignment neurons in S+ are well aligned with x+ (least cosine, median of networks)",
                  f"{source} (b); 0.9 is our reading", kit.at_least(0.9), np.median(cosines[:, 0])),
        kit.claim("cosine-minus", "and neurons in S- with x- (least cosine, median of networks)",
                  f"{source} (b); 0.9 is our reading", kit.at_least(0.9), np.median(cosines[:, 1])),
        kit.claim("all-placed",
                  "Around the end of alignment all neurons are in S+, S- or Sdead (share of networks without live ones "
                  "elsewhere)",
                  f"{source} (b); more than half is our reading", kit.most(), np.mean(outside == 0)),
        kit.claim("two-drops",
                  "The loss experiences two sharp decreases (iteration of the second over that of the first)",
                  "Appendix A.1", kit.more_than(1.5), drops[1] / max(drops[0], 1) if len(drops) == 2 else np.nan),
        kit.claim("to-zero", "before it gets close to zero (loss at the end)",
                  source, kit.at_most(0.05), e.states.losses[-1]),
        kit.theory("rank",
                   "The first layer is approximately low-rank: stable rank at most 2, as of any weights in the plane "
                   "(largest of the last half)", "Theorem 1, Figure 6 (c)", kit.at_most(2.0), rank),
        kit.claim("flow-ends",
                  "Balanced gradient flow: V+ ends in S+ or Sdead, V- in S- or Sdead (neurons elsewhere)",
                  "Theorem 1", kit.exactly(0), np.count_nonzero(flow_wrong)),
        kit.claim("flow-stays", "and no neuron ever leaves these regions (departures)",
                  "Theorem 1, Lemma 12", kit.exactly(0), _departures(e.flow_reached, e.flow.v)),
        kit.claim("flow-rate",
                  "The loss falls at least as 1/t after t2 (fitted power of t over the last 30 % of the flow)",
                  "Theorem 1", kit.at_most(-1.0), slope(e.flow, e.flow.loss_iterations[-1] * 0.7)),
        kit.finding("descent-leaves", "Departures in the unbalanced run",
                    "Theorem 1", _departures(e.reached, e.states.v)),
        kit.finding("outside", "Live neurons elsewhere at 3300 in the network drawn",
                    f"{source} (b)", np.count_nonzero(aligned.outside)),
        *[kit.finding(f"outside-{count}", f"Share of networks with {count} live neurons elsewhere at 3300",
                      f"{source} (b)", np.mean(outside == count)) for count in range(4)],
        *[kit.finding(f"well-{name}", f"Share of networks with a least cosine of 0.9 in S{sign}", f"{source} (b)",
                      np.mean(cosines[:, k] >= 0.9)) for k, (name, sign) in enumerate((("plus", "+"), ("minus", "-")))],
        kit.finding("dead", "Dead neurons at the end", "Figure 6", last.dead),
        kit.finding("stragglers-until", "Iteration of the last arrival", "Figure 6", _last_arrival(e)),
        kit.finding("plateau", "Iterations with a loss within 0.03 of 0.5", "Appendix A.1", _plateau(e.states)),
        *[kit.finding(f"drop-{k}", f"Iteration of decrease {k} at its steepest", "Appendix A.1", at)
          for k, at in enumerate(drops, start=1)],
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the three moments."""
    return draw_moments(e.states, e.moments, ("Initialisation", "End of alignment", "End of training"))


FIGURE = kit.Figure(
    id="min2024-fig6",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms. (a) Small "
        "norms, all directions. (b) Live neurons are aligned with x+ or x-. (c) They have grown; the rest "
        "stayed small."
    ),
    configs={
        "descent": "min2024/two_drops.yaml",
        "flow": "min2024/two_drops_flow.yaml",
        "seeds": kit.Wanted("min2024/two_drops.yaml", MANY, replicas=SEEDS),
    },
    origin={**TRAINED, "data": "assumed", "iterations": "assumed"}, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip
