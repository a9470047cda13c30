"""Statements of the lemmas and of Theorem 1 that no figure of the paper shows, on the balanced
flow of Figure 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.sphere_flow import sphere_flow

from .plane import points
from .shared import ANOTHER_SIDE, Premise, read_premise, read_states
from .theory.cones import MINUS, PLUS, misplaced, regions
from .theory.early_alignment import DataConstants, alignment_constants, log_scale, turned

ANGLES = (0.1, 0.01, 0.001)
"""mu = sin of these, for the time of alignment."""
STARTS = 60
BESIDE = 1e-9
"""How far (radians) the slowest start is from the boundary of S_dead."""
FIT = 0.25
"""Output at which a side counts as fitted in the proof of Theorem 1 (t_2)."""


@dataclass(frozen=True)
class Evidence:
    """The flow and the alignment of two points, beside their bounds.

    `deviation` (K - 1,) is how far directions are from Eq. 4 over an interval (largest of the
    neurons whose activation does not change in it), `norm` (K,) the largest `||w_j||^2`, `output`
    (K,) the largest `|f|`, all for Lemmas 1 and 3. `lemma_4` is the largest share of the bound of
    Lemma 4 that the gradient at any state takes. `imbalance` is the largest `|v_j^2 / ||w_j||^2 -
    1|` of all states, `flips` counts changes of signs of v_j. `sides` (2, K) are the summed
    `||w_j||^2` of the neurons that are in S_+, and in S_-, at the time `t1` of alignment; `t2` is
    when both have fitted a point, by the proof of Theorem 1. `slowest` and `bounds` (A,) are times
    for two points.
    """

    premise: Premise
    t: kit.Floats
    t1: float
    t2: float
    deviation: kit.Floats
    norm: kit.Floats
    output: kit.Floats
    lemma_4: float
    imbalance: float
    flips: int
    sides: kit.Floats
    filled: bool
    losses: kit.Floats
    slowest: kit.Floats
    bounds: kit.Floats

    @property
    def constants(self) -> DataConstants:
        """Those of the theorem."""
        return self.premise.constants


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the states (K,) of the flow at times `t` (K,) of the summed loss, and the alignment
    of two points.
    """
    run = runs["flow"]
    config: Any = run.config
    states = read_states(run)
    x = states.x
    y = states.y
    W = np.asarray(states.W)
    v = np.asarray(states.v)
    premise = read_premise(run, states)
    t = states.iterations * config.optimizer.lr / len(x)
    squares = np.sum(W**2, axis=2)
    active = kit.activation_patterns(x, W)  # (K, n, m)
    reached = regions(x, y, W)
    aligned = np.asarray(~misplaced(reached, v).any(axis=1))
    t1 = kit.first_at(t, aligned)
    at_t1 = int(np.argmax(aligned))
    members = [reached[at_t1] == side for side in (PLUS, MINUS)]
    outputs = np.einsum("km,knm->kn", v, np.maximum(np.einsum("nd,kmd->knm", x, W), 0.0))
    fitted = [np.abs(outputs[:, y == sign]).max(axis=1) > FIT for sign in (1, -1)]
    losses = len(x) * np.interp(states.iterations, states.loss_iterations, states.losses)
    slowest, bounds = np.transpose([two_points(angle) for angle in ANGLES])
    return Evidence(
        premise,
        t,
        t1,
        t2=kit.first_at(t, fitted[0] & fitted[1]),
        deviation=_deviation(x, y, W, v, t, active),
        norm=squares.max(axis=1),
        output=np.abs(outputs).max(axis=1),
        lemma_4=_share_of_lemma_4(x, y, W, outputs, active),
        imbalance=float(np.abs(v**2 / squares - 1.0).max()),
        flips=int(np.count_nonzero(np.sign(v[1:]) != np.sign(v[:-1]))),
        sides=np.stack([squares[:, group].sum(axis=1) for group in members]),
        filled=all(group.any() for group in members),
        losses=losses,
        slowest=slowest,
        bounds=bounds,
    )


def _deviation(
    x: kit.Floats, y: kit.Floats, W: kit.Floats, v: kit.Floats, t: kit.Floats, active: kit.Bools
) -> kit.Floats:
    """Return (K - 1,) how far the mean speed of directions between states is from that of Eq. 4."""
    units = kit.directions(W)
    spans = np.diff(t)[:, None, None]
    forces = np.einsum("knm,n,nd->kmd", active[:-1], y, x)  # x_a
    predicted = turned(units[:-1], np.sign(v[:-1, :, None]) * forces, spans)
    apart = np.linalg.norm(units[1:] - predicted, axis=2) / spans[..., 0]
    kept = (active[1:] == active[:-1]).all(axis=1)
    largest: kit.Floats = np.where(kept, apart, 0.0).max(axis=1)
    return largest


def _share_of_lemma_4(
    x: kit.Floats, y: kit.Floats, W: kit.Floats, outputs: kit.Floats, active: kit.Bools
) -> float:
    """Return the largest deviation of the speed of directions from Eq. 4 over `2 n X_max max |f|`,
    at the states where no |f| is above 1.

    The speed is that of gradient flow at the weights of the state, for the exponential loss.
    """
    size = np.abs(outputs).max(axis=1)
    covered = (size > 0) & (size <= 1)
    excess = np.expm1(-y * outputs) * y  # (K, n) of the slope of the loss over that at f = 0
    forces = np.einsum("knm,kn,nd->kmd", active, excess, x)[covered]
    units = kit.directions(W[covered])
    across = forces - np.sum(forces * units, axis=2, keepdims=True) * units
    bound = 2 * len(x) * np.linalg.norm(x, axis=1).max() * size[covered]
    return float((np.linalg.norm(across, axis=2).max(axis=1) / bound).max(initial=0.0))


def two_points(angle: float) -> tuple[float, float]:
    """Return when the slowest positive neuron reaches S_+ of the points of Appendix A.2, and the
    bound t_1.
    """
    x = points(angle)
    y = np.ones(2)
    starts = -np.pi / 2 + BESIDE + np.linspace(0.0, np.pi, STARTS, endpoint=False)
    W = np.stack([np.cos(starts), np.sin(starts)], axis=1)
    flow = sphere_flow(x, y, W, np.ones(STARTS), [0.0, np.inf], loss_factor=2)
    times = [float(switches[-1]) for switches in flow.switches if len(switches)]
    return max(times), alignment_constants(x, y, W, np.ones(STARTS)).t1


def _within(e: Evidence, values: kit.Floats) -> kit.Floats:
    """Return values (K,) or (K - 1,) of the times up to T of Lemma 1."""
    return values[: np.count_nonzero(e.t <= e.constants.validity) - (len(values) < len(e.t))]


def loss_bound(e: Evidence) -> kit.Floats:
    """Return Theorem 1's bound on the loss (K,); NaN before t_2."""
    after = e.t > e.t2
    bound = np.full(len(e.t), np.nan)
    if after.any():
        start = np.interp(e.t2, e.t, e.losses)
        bound[after] = start / (start * e.constants.alpha * (e.t[after] - e.t2) + 1.0)
    return bound


def claims(e: Evidence) -> list[kit.Claim]:
    of_lemma = e.premise.of_lemma
    of_theorem = e.premise.of_theorem
    c: DataConstants = e.constants
    covered = e.t[-1] >= c.validity
    at_t1 = int(np.searchsorted(e.t, e.t1)) if np.isfinite(e.t1) else 0
    grown = e.filled and np.isfinite(e.t1) and at_t1 > 0
    floor = np.exp(-4 * c.n * c.x_max * e.t1) * e.sides[:, 0]
    kept = float((e.sides[:, at_t1] / floor).min()) if grown else np.nan
    steps = np.diff(e.sides[:, at_t1:], axis=1)
    fits = np.isfinite(e.t2)
    law = np.log(1.0 / np.tan(np.array(ANGLES) / 2))
    return [
        of_lemma(
            kit.claim(
                "lemma-1",
                "Up to T directions follow Eq. 4 (largest deviation of their speed)",
                "Lemma 1, Eq. 6",
                kit.at_most(c.deviation),
                kit.given(covered, _within(e, e.deviation).max(initial=0.0)),
            )
        ),
        of_lemma(
            kit.claim(
                "lemma-3-norms",
                "Up to T all neurons stay small (largest squared norm)",
                "Lemma 3, Eq. 10",
                kit.at_most(c.norm),
                kit.given(covered, _within(e, e.norm).max()),
            )
        ),
        of_lemma(
            kit.claim(
                "lemma-3-output",
                "Up to T the output stays small (largest |f|)",
                "Lemma 3, Eq. 10",
                kit.at_most(c.output),
                kit.given(covered, _within(e, e.output).max()),
            )
        ),
        kit.claim(
            "balanced",
            "Balanced weights stay balanced (largest |v_j^2 / ||w_j||^2 - 1|)",
            "Section 2.1; 1 % is for the steps",
            kit.near(0.0, 0.01),
            kit.given(fits, e.imbalance),
        ),
        kit.claim(
            "signs",
            "The signs of v_j do not change (changes)",
            "Section 2.1",
            kit.exactly(0),
            kit.given(fits, e.flips),
        ),
        of_theorem(
            kit.claim(
                "lemma-13",
                "At t1 the neurons of a side have kept so much of their squared norm (least sum"
                " over its bound)",
                "Lemma 13",
                kit.at_least(1.0),
                kept,
            )
        ),
        kit.claim(
            "lemma-14",
            "After t1 the squared norms of a side never fall (least change over the final sum)",
            "Lemma 14",
            kit.at_least(0.0),
            kit.given(fits and grown, steps.min(initial=np.inf) / e.sides[:, -1].max()),
        ),
        of_theorem(
            kit.claim(
                "t2",
                "Both sides have fitted a point by t2 (time over its bound)",
                "Theorem 1, Eq. 39",
                kit.at_most(1.0),
                kit.given(fits and grown, e.t2 / c.t2(e.t1)),
            )
        ),
        of_theorem(
            kit.claim(
                "loss-bound",
                "After t2 the loss is below L(t2) / (L(t2) alpha (t - t2) + 1) (largest ratio)",
                "Theorem 1, Appendix D.2",
                kit.at_most(1.0),
                kit.given(fits, np.nanmax(e.losses / loss_bound(e), initial=0.0)),
            )
        ),
        kit.theory(
            "lemma-4",
            "While no |f| is above 1 directions follow Eq. 4 within 2 n X_max max |f| (largest"
            " share of it, by the gradient at all states)",
            "Lemma 4, Eq. 11",
            kit.at_most(1.0),
            e.lemma_4,
        ),
        kit.theory(
            "time-law",
            "Two points: the slowest neuron takes ln cot(a / 2) to S+, mu = sin a (largest"
            " deviation)",
            "Eq. 4, Appendix A.2",
            kit.near(0.0, 1e-6),
            np.abs(e.slowest - law).max(),
        ),
        kit.theory(
            "time-grows",
            "As mu decreases the time to S+ increases (least ratio of a time to that of ten"
            " times mu)",
            "Appendix A.2",
            kit.more_than(1.0),
            (e.slowest[1:] / e.slowest[:-1]).min(),
        ),
        kit.theory(
            "time-bound",
            "No neuron takes longer than t1 (largest time over the bound)",
            "Theorem 1",
            kit.at_most(1.0),
            (e.slowest / e.bounds).max(),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return times that NOTES.md quotes."""
    named = {
        f"time to S+, mu = sin {angle:g}": t for angle, t in zip(ANGLES, e.slowest, strict=True)
    }
    c = e.constants
    return {
        **named,
        "log10 of the scale that Theorem 1 asks for": e.premise.asked,
        "log10 of the scale up to which T is the measured t1 or more": log_scale(
            e.t1, c.n, c.x_max, c.width
        ),
        "log10 of the scale that Theorem 1 asks for, mu = sin 0.1": log_scale(
            e.bounds[0], 2, 1.0, c.width
        ),
        "largest |f| up to t1": e.output[e.t <= e.t1].max(),
        "T of Lemma 1": c.validity,
        "t1": e.t1,
        "t2": e.t2,
    }


def draw(e: Evidence) -> kit.Drawing:
    early = e.t <= 1.5 * e.constants.validity
    shown = e.t > 0
    mu = np.sin(ANGLES)

    def below(title: str, ylabel: str, values: kit.Floats, bound: float) -> kit.Chart:
        return kit.chart(
            title,
            ylabel,
            kit.line(e.t[early], values[early], look="measured"),
            kit.level(bound),
            kit.upright(e.constants.validity),
            xlabel="time $t$ (dotted: $T$)",
            log="y",
        )

    return kit.charts(
        below(
            "Lemma 1",
            "deviation from Eq. 4",
            np.append(e.deviation, np.nan),
            e.constants.deviation,
        ),
        below("Lemma 3", r"$\max_j \|w_j\|^2$", e.norm, e.constants.norm),
        kit.chart(
            "Theorem 1",
            "loss",
            kit.line(e.t[shown], e.losses[shown], look="measured"),
            kit.line(e.t[shown], loss_bound(e)[shown], look="theory dashed"),
            kit.upright(e.t1),
            kit.upright(e.t2),
            xlabel="time $t$ (dotted: $t_1$, $t_2$)",
        ),
        kit.chart(
            "Two points",
            "time to $S_+$",
            kit.line(mu, e.slowest, "slowest neuron", "measured points"),
            kit.line(mu, e.bounds, "bound", "theory dashed"),
            xlabel=r"$\mu$",
        ),
        log="xy",
        legend="inside",
    )


FIGURE = kit.Figure(
    id="min2024-statements",
    caption=(
        "The balanced flow of Figure 6, in the time of the summed loss, with bounds of the paper"
        " (dashed). (a) How far directions are from Eq. 4, (b) largest squared norm, up to T and a"
        " little longer. (c) The loss, below Theorem 1's bound after t2. (d) Time of the slowest"
        " neuron to S+ on the two points of Appendix A.2."
    ),
    configs={"flow": "min2024/two_drops_flow.yaml"},
    passes={
        "slow": {"lemma-3-*": "Slower neurons stay small for longer."},
        "wrong_gradient": {
            "lemma-3-*": (
                "The bounds are from above; w and v turn about each other in place of growing."
            ),
        },
        "data": {"lemma-3-*": "The lemma asks nothing of the data."},
        "random_features": {"lemma-3-*": "Neurons that are not trained stay small."},
        "linear": {
            "lemma-3-*": (
                "Appendix B states the lemma for leaky ReLUs, and a linear activation is one."
            ),
            "balanced signs": "Linear networks keep balance and signs too.",
            "lemma-14": (
                "A linear neuron along a direction that separates the points grows by all of them."
            ),
        },
    },
    nulls={"unbalanced": ("initialization.kind=unbalanced",), "data": ANOTHER_SIDE},
)
