"""Figure 6: toy data in the plane whose loss drops twice.

`dyn reproduce min2024-fig6`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.alignment_history import alignment_history
from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.measures.correlation import centres, correlation
from dynamics_cli.measures.curves import first_below
from dynamics_cli.measures.regions import DEAD, MINUS, PLUS, regions
from dynamics_cli.reproduction.claims import Claim, at_least, at_most, claim, exactly, finding, less_than, more_than
from dynamics_cli.reproduction.figure import Figure, Runs

from .plane import Moment, draw_moments, mean_cosine, moment
from .shared import TRAINED, States, read_states, slope

ALIGNED, END = 3300, 30000
"""Iterations of panels b and c; not in the paper."""


@dataclass(frozen=True)
class Evidence:
    """Three moments of the run, and its balanced twin that follows gradient flow."""

    x: Floats
    y: Floats
    moments: list[Moment]
    mu: float
    cosines: tuple[float, float]
    """Mean cosines at `ALIGNED` of neurons in S_+ with x_+ and in S_- with x_-."""
    outside: int
    """Live neurons outside the region of their sign at `ALIGNED`."""
    last_straggler: float
    """Iteration at which the last of them has arrived."""
    plateau: int
    """Iterations during which the loss is within 0.03 of a half."""
    drops: list[int]
    """Iterations of locally steepest relative decrease of either half of the loss."""
    rank: float
    """Largest stable rank over the last half of training."""
    loss: float
    slope: float
    """Power of t with which the loss of the flow falls at the end."""
    wrong: tuple[int, int]
    """Neurons of the flow that do not end where Theorem 1 says, and departures from S_+, S_-, S_dead."""
    departures: int
    """Departures from the region of their sign or S_dead in the unbalanced run by gradient descent."""


def evidence(runs: Runs) -> Evidence:
    """Measure the run by gradient descent and its twin."""
    states, flow = read_states(runs["descent"]), read_states(runs["flow"])
    x_plus, x_minus = centres(states.x, states.y)
    aligned = moment(states, ALIGNED)
    history = alignment_history(states.W, states.v, x_plus, x_minus)
    found, wrong = _regions(states)
    late = np.flatnonzero(wrong.any(axis=1))
    flow_found, flow_wrong = _regions(flow)
    near_half = states.loss_iterations[np.abs(states.losses - 0.5) <= 0.03]
    return Evidence(
        x=states.x,
        y=states.y,
        moments=[moment(states, 0), aligned, moment(states, END)],
        mu=correlation(states.x, states.y).mu,
        cosines=(
            mean_cosine(aligned, aligned.plus & (aligned.found == PLUS), x_plus),
            mean_cosine(aligned, ~aligned.plus & (aligned.found == MINUS), x_minus),
        ),
        outside=int(aligned.outside.sum()),
        last_straggler=float(states.iterations[min(late[-1] + 1, len(states.iterations) - 1)]) if late.size else 0.0,
        plateau=int(near_half[-1] - near_half[0]) if near_half.size else 0,
        drops=_drops(states),
        rank=float(history.stable_rank[len(states.iterations) // 2 :].max()),
        loss=float(states.losses[-1]),
        slope=slope(flow.loss_iterations, flow.losses, first=flow.loss_iterations[-1] * 0.7),
        wrong=(int(flow_wrong[-1].sum()), _left(flow_found, np.asarray(flow.v))),
        departures=_left(found, np.asarray(states.v)),
    )


def _regions(states: States) -> tuple[Ints, Bools]:
    """Return regions (K, m), and where a live neuron is outside the region of its sign (K, m)."""
    found = regions(states.x, states.y, np.asarray(states.W))
    right = np.where(np.asarray(states.v) > 0, found == PLUS, found == MINUS) | (found == DEAD)
    return found, ~right


def _left(found: Ints, v: Floats) -> int:
    """Return how often a neuron left the region of its sign, or S_dead, between two recorded states."""
    home = np.where(v > 0, PLUS, MINUS)
    inside = (found == home) | (found == DEAD)
    return int(np.count_nonzero(inside[:-1] & (found[1:] != found[:-1])))


def _drops(states: States) -> list[int]:
    """Return when the loss falls fastest above, and below, three eighths of its first value."""
    times = states.loss_iterations
    rates = -np.gradient(states.losses, times)
    split = first_below(times, states.losses, 0.45 * float(states.losses[0]))
    parts = [times < split, times >= split] if split is not None else [times >= 0]
    return [int(times[part][np.argmax(rates[part])]) for part in parts if part.any()]


def claims(found: Evidence) -> list[Claim]:
    """Compare with Appendix A.1, Figure 6 and Theorem 1."""
    source = "Appendix A.1, Figure 6"
    return [
        claim(
            "assumption-1",
            "The data satisfy Assumption 1 (mu)",
            "Appendix A.1",
            expected=more_than(0.0),
            measured=found.mu,
        ),
        claim(
            "small",
            "At initialisation all neurons have small norm (largest over the largest at the end)",
            f"{source} (a)",
            expected=less_than(0.01),
            measured=_largest(found.moments[0]) / _largest(found.moments[2]),
        ),
        claim(
            "cosine-plus",
            "After alignment neurons in S+ are well aligned with x+ (mean cosine)",
            f"{source} (b)",
            expected=at_least(0.95),
            measured=found.cosines[0],
        ),
        claim(
            "cosine-minus",
            "and neurons in S- with x- (mean cosine)",
            f"{source} (b)",
            expected=at_least(0.95),
            measured=found.cosines[1],
        ),
        claim(
            "all-placed",
            "Around the end of alignment all neurons are in S+, S- or Sdead (live ones elsewhere)",
            f"{source} (b)",
            expected=exactly(0),
            measured=found.outside,
        ),
        claim(
            "two-drops",
            "The loss experiences two sharp decreases (iteration of the second over that of the first)",
            "Appendix A.1",
            expected=more_than(1.5),
            measured=found.drops[1] / found.drops[0] if len(found.drops) == 2 else float("nan"),
        ),
        claim(
            "to-zero",
            "before it gets close to zero (loss at the end)",
            source,
            expected=at_most(0.05),
            measured=found.loss,
        ),
        claim(
            "rank",
            "The first layer is approximately low-rank: stable rank at most 2 (largest of the last half, 1 % added)",
            "Theorem 1, Figure 6 (c)",
            expected=at_most(2.02),
            measured=found.rank,
        ),
        *_theorem(found),
    ]


def _theorem(found: Evidence) -> list[Claim]:
    return [
        claim(
            "flow-ends",
            "Balanced gradient flow: V+ ends in S+ or Sdead, V- in S- or Sdead (neurons elsewhere)",
            "Theorem 1",
            expected=exactly(0),
            measured=found.wrong[0],
        ),
        claim(
            "flow-stays",
            "and no neuron ever leaves these regions (departures)",
            "Theorem 1, Lemma 12",
            expected=exactly(0),
            measured=found.wrong[1],
        ),
        claim(
            "flow-rate",
            "The loss falls at least as 1/t after t2 (fitted power of t over the last 30 % of the flow)",
            "Theorem 1",
            expected=at_most(-1.0),
            measured=found.slope,
        ),
        finding("descent-leaves", "Departures in the unbalanced run", "Theorem 1", measured=found.departures),
        finding("dead", "Dead neurons at the end", "Figure 6", measured=found.moments[2].dead),
        finding("stragglers-until", "Iteration of the last arrival", "Figure 6", measured=found.last_straggler),
        finding("plateau", "Iterations with a loss within 0.03 of 0.5", "Appendix A.1", measured=found.plateau),
        *[
            finding(f"drop-{k + 1}", f"Iteration of decrease {k + 1} at its steepest", "Appendix A.1", measured=at)
            for k, at in enumerate(found.drops)
        ],
    ]


def _largest(now: Moment) -> float:
    return float(np.linalg.norm(now.W, axis=1).max())


def draw(found: Evidence) -> Drawing:
    """Draw the three moments."""
    return draw_moments(found.x, found.y, found.moments, ("Initialisation", "End of alignment", "End of training"))


FIGURE = Figure(
    id="min2024-fig6",
    caption=(
        "Triangles are the data, dots with rays the neurons, each panel to its own scale of norms. (a) Small "
        "norms, all directions. (b) Live neurons are aligned with x+ or x-. (c) They have grown; the rest "
        "stayed small."
    ),
    configs={"descent": "min2024/two_drops.yaml", "flow": "min2024/two_drops_flow.yaml"},
    origin={**TRAINED, "data": "assumed", "iterations": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
