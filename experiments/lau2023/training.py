"""The local learning coefficient along the training of a deep linear network from saddle to
saddle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dynamics_cli import kit

from .theory.learning_coefficient import dln_learning_coefficient

CONFIG = "lau2023/training.yaml"
SAMPLERS = {"llc_released": "released sampler", "llc_small_steps": "small steps"}
"""Measure -> its name in the picture."""
SIDE = 5
DEPTH = 5
WIDTH = 10
RANKS = range(1, SIDE + 1)
PRINTED = {
    1: (723.03, 4.969),
    2: (273.94, 8.514),
    3: (96.268, 11.741),
    4: (18.606, 13.397),
    5: (None, 14.109),
}
"""Rank -> means of the losses and of the estimates that the released notebook printed at steps 1050
to 1450, 2000 to 3000, 4000 to 5600, 6100 to 9000, and from 11 000 on; at rank 1 the loss is still
on its way.
"""
LEARNT = 0.9
NOT_YET = 0.1
"""Shares of its singular value of the map from which on a mode is learnt, and up to which it is
not.
"""
FROM = 300
"""First step that the picture shows: before, nothing is learnt."""
LENGTH = 20_000
"""Steps of the released run. Ours goes on to twice as many, which it needs for the last mode."""
STEP = 1e-6
STEPS = 100
NBETA = 217.1472
"""Of the released sampler."""


def regular(rank: int) -> float:
    """Return half the dimension of the maps of a rank, half the rank of the Hessian of own
    labels at a saddle.
    """
    return (2 * SIDE * rank - rank**2) / 2


def of_sampler(
    values: kit.Floats, step: float = STEP, steps: int = STEPS, nbeta: float = NBETA
) -> float:
    """Return the expected estimate of a chain without batches at balanced layers of singular values
    `values` (r,).

    The curvatures of `|W_L ... W_1 - W*|^2` are `h_ij = 2 sum_k s_i^(2k/L) s_j^(2(L-1-k)/L)`, with
    s = 0 for modes that are not learnt; along each the variance of the chain grows from 0 to `1 /
    (nbeta h (1 - step nbeta h / 4))`.
    """
    s = np.zeros(SIDE)
    s[: len(values)] = values
    powers = s[:, None] ** (2 * np.arange(DEPTH) / DEPTH)  # (5, L)
    h = 2 * nbeta * (powers @ powers[:, ::-1].T)
    factor = (1 - step * h / 2) ** 2
    end = np.divide(1, h * (1 - step * h / 4), where=h > 0, out=np.zeros_like(h))
    variance = [end * (1 - factor**t) for t in range(steps)]
    return float(np.sum(h * np.mean(variance, 0)) / 2)


@dataclass(frozen=True)
class Evidence:
    """Losses and estimates along the training, and their means at the saddles."""

    steps: kit.Ints
    losses: kit.Floats
    states: kit.Ints
    curves: dict[str, kit.Floats]
    at_rank: dict[str, kit.Floats]
    within: dict[str, kit.Floats]
    counts: list[int]
    expected: kit.Floats
    exact: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Find the states at the saddles, and average the estimates of both samplers there."""
    (run,) = runs.values()
    target = np.array(run.config.dataset.singular_values)  # type: ignore[attr-defined]
    layers = kit.recorded(run, *run.config.architecture.matrices)
    values = np.linalg.svd(reduce(lambda product, W: W @ product, layers), compute_uv=False)
    states = run.snapshot_iterations
    learnt = values >= LEARNT * target
    left = values <= NOT_YET * target
    saddles = [learnt[:, :r].all(1) & left[:, r:].all(1) for r in RANKS]
    released = [at & (states <= LENGTH) for at in saddles]
    steps = run.loss_iterations
    losses = run.losses / SIDE
    at_states = np.interp(states, steps, losses)
    curves = {name: run.measures[name] for name in SAMPLERS}
    at_rank, within = (
        {
            name: np.array(
                [
                    _means(estimates[at & np.isfinite(estimates[:, 0])], at_states[at])
                    for at in states_of
                ]
            )
            for name, estimates in curves.items()
        }
        for states_of in (saddles, released)
    )
    return Evidence(
        steps,
        losses,
        states,
        curves,
        at_rank,
        within,
        counts=[int(at.sum()) for at in saddles],
        expected=np.array([of_sampler(target[:r]) for r in RANKS]),
        exact=np.array(
            [
                dln_learning_coefficient(r, [SIDE, *[WIDTH] * (DEPTH - 1), SIDE])[0]
                for r in (0, *RANKS)
            ]
        ),
    )


def _means(estimates: kit.Floats, losses: kit.Floats) -> tuple[float, float, float]:
    """Return mean and standard deviation of estimates (K, 3), and the mean loss; NaN of none."""
    if not len(estimates):
        return np.nan, np.nan, np.nan
    return float(estimates[:, 0].mean()), float(estimates[:, 0].std()), float(losses.mean())


def claims(e: Evidence) -> list[kit.Claim]:
    released, fine = (e.within[name][:, 0] for name in SAMPLERS)
    losses = e.within["llc_released"][:, 2]
    source = "DLN_phase_transition.ipynb, output of cell 2"
    return [
        *(
            kit.claim(
                f"saddle-{r}",
                (
                    f"Within {LENGTH} steps: at the saddle of rank {r} the estimate is half the "
                    "dimension of the maps of this rank"
                    if r < SIDE
                    else f"Within {LENGTH} steps: at the end the estimate is the exact coefficient"
                ),
                "(2 d r - r^2) / 2, the dimension of these maps halved",
                kit.around(regular(r)),
                fine[r - 1],
            )
            for r in RANKS
        ),
        kit.claim(
            "rises",
            "The coefficient rises wherever the loss falls from saddle to saddle (rises of four, in"
            " all steps)",
            "released README: from saddle to saddle",
            kit.exactly(4),
            np.sum(np.diff(e.at_rank["llc_small_steps"][:, 0]) > 0),
        ),
        *(
            kit.claim(
                f"printed-{r}",
                f"Rank {r}, within {LENGTH} steps: the released sampler gives what the notebook "
                "printed (mean)",
                source,
                kit.around(PRINTED[r][1] or np.nan),
                released[r - 1],
            )
            for r in RANKS
        ),
        *(
            kit.claim(
                f"loss-{r}",
                f"Rank {r}: the loss is what the notebook printed (mean)",
                source,
                kit.around(PRINTED[r][0] or np.nan),
                losses[r - 1],
            )
            for r in (2, 3, 4)
        ),
        *(
            kit.theory(
                f"step-{r}",
                f"Rank {r}: the printed estimate is a chain's of its step on the quadratic "
                "approximation (expectation)",
                source,
                kit.around(PRINTED[r][1] or np.nan),
                e.expected[r - 1],
            )
            for r in RANKS
        ),
        kit.theory(
            "same",
            "The exact coefficient is the same at all ranks from 0 on (largest less smallest)",
            "Aoyagi 2024; layers of inputs and outputs together or more",
            kit.exactly(0.0),
            np.ptp(e.exact),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the estimates at the end of all steps, which are twice the released ones, and the
    states they rest on.
    """
    return {
        "states of rank 5 in 40 000 steps": e.counts[-1],
        "estimate there, small steps (12.5)": e.at_rank["llc_small_steps"][-1, 0],
        "estimate there, released sampler (printed: 14.109)": e.at_rank["llc_released"][-1, 0],
    }


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, aspect=0.95, extra_height=0.3)
    colors = dict(zip(SAMPLERS, ("C1", "C0"), strict=True))
    ranks = np.array(RANKS)
    dimensions = [regular(r) for r in RANKS]
    bars = [e.at_rank[name][:, :2] @ [[1, 1], [-1, 1]] for name in SAMPLERS]
    exact = kit.level(e.exact[0], r"exact $\lambda$", "theory dotted 0.8")
    steps = {"xlabel": "SGD step", "log": "x", "limits_x": (FROM, 1.1 * e.steps[-1])}
    losses = kit.line(e.steps, e.losses)
    loss = kit.chart("Loss", "training loss", losses, limits=(0.1, 3e3), **steps | {"log": "xy"})
    along = kit.chart(
        "Along training",
        r"estimate $\hat\lambda(w)$",
        *(
            kit.line(e.states, e.curves[name][:, 0], label, f"{colors[name]} 1.0")
            for name, label in SAMPLERS.items()
        ),
        *(kit.level(value, "half the dimension") for value in dimensions),
        exact,
        **steps,
    )
    saddles = kit.chart(
        "At the saddles",
        r"mean of $\hat\lambda$",
        kit.line(ranks, dimensions, look="theory dashed 0.8"),
        kit.line(ranks, e.expected, "expected, released step", "C2 _"),
        kit.line(ranks, [PRINTED[r][1] for r in RANKS], "printed, mean", "theory x"),
        exact,
        xlabel="rank of the saddle",
        ticks=ranks,
        reach=np.ravel(bars),
        limits_x=(0.5, RANKS[-1] + 0.5),
    )
    handles: list[kit.Artist] = []
    for k, chart in enumerate((loss, along, saddles)):
        handles += kit.panel(axes[k], k, chart)
    for k, name in enumerate(SAMPLERS):
        mean, spread, _ = e.curves[name].T
        look: dict[str, Any] = {"color": colors[name], "zorder": 1.9}
        axes[1].fill_between(e.states, mean - spread, mean + spread, alpha=0.25, lw=0, **look)
        mean, spread = e.at_rank[name].T[:2]
        places = ranks + 0.5 * (k - 0.5)
        axes[2].errorbar(places, mean, spread, fmt=kit.MARKER, ms=4, capsize=2.5, **look)
    kit.figure_legend(figure, handles, columns=3)
    return figure


FIGURE = kit.Figure(
    passes={
        "random_features": {
            "saddle-* printed-2 loss-*": (
                "Behind a fixed first matrix the others pass the same saddles, of the same maps."
            )
        }
    },
    id="lau2023-training",
    caption=(
        "A deep linear network that learns a map mode by mode: its loss (mean over outputs), and"
        " the local learning coefficient of its own function, by the released sampler and by small"
        " steps (bands and bars: one standard deviation, over chains and over the states at a"
        " saddle), beside the numbers that the released notebook printed. Estimates rise from"
        " saddle to saddle like half the dimension of the maps of a rank; the exact coefficient is"
        " the same at all of them."
    ),
    configs={"run": CONFIG},
)
