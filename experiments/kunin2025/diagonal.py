"""Diagonal linear networks from eight scales, and in the plane, beside alternating flow and
Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap

from dynamics_cli import kit
from dynamics_cli.theory.assumptions import loss_factor, times_of

from .theory.alternating_flow import Saddles, accumulated, saddles

LEAST = {"diagonal": 1e-100, "dormant": 1e-6}
"""alpha of the printed times."""
PRINTED = {
    "diagonal": (27.659, 138.315, 226.047, 256.113, 971.519),
    "dormant": (2.667, 8.292, 47.765),
}
"""Times of the jumps in the output of `diagonal-linear-network.ipynb` (cells 20, 17),"""
ORDER = {"diagonal": (1, 2, 3, 0, 4), "dormant": (0, 1, 0)}
"""and the coordinates that jump."""
ALPHAS = {
    "diagonal": (0.99, 0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-8, 1e-16),
    "dormant": (0.5, 0.1, 1e-2, 1e-4, 1e-6),
}
SMALL = 0.01
"""alpha up to which the jumps of a network are compared with the saddles."""
TIME = r"time over $\ln(1/\alpha)$"


def jump_times(times: kit.Floats, beta: kit.Floats, limit: Saddles) -> kit.Floats:
    """Return the times (J,) at which a network of predictors `beta` (K, d) at `times` (K,) makes
    the predicted jumps.

    At its jump a coordinate passes one half of its value at the saddle, after the jump before; NaN
    from the first jump that a network does not make.
    """
    jumps = np.full(len(limit.activated), np.nan)
    last = 0
    for j, k in enumerate(limit.activated):
        share = beta[last:, k] / limit.betas[j + 1, k]
        passed = np.flatnonzero(share >= 0.5)
        if not len(passed) or last + passed[0] == 0:
            break
        last += int(passed[0])
        jumps[j] = np.interp(
            0.5, beta[last - 1 : last + 1, k] / limit.betas[j + 1, k], times[last - 1 : last + 1]
        )
    return jumps


@dataclass(frozen=True)
class Descent:
    """A network at K states, in times over `ln(1 / alpha)`."""

    alpha: float
    t: kit.Floats
    beta: kit.Floats
    s: kit.Floats
    jumps: kit.Floats
    loss: kit.Floats
    late: float
    left: float


def descent(run: kit.Run, limit: Saddles) -> Descent:
    """Read a run; `t` (K,) is lr x steps over `ln(1 / alpha)`, `s` (K, d) what alternating flow
    accumulates, so too.
    """
    samples = run.dataset()
    u, v = kit.recorded(run, "u", "v")
    alpha = float(
        u[0, 0] * np.sqrt(2)
    )  # of the released form, u' = sqrt(2) alpha and v' = 0 with beta = u' v'
    beta = u**2 - v**2
    scale = -np.log(alpha)
    t = 2 * loss_factor(run) * times_of(run, run.snapshot_iterations) / scale
    jumps = jump_times(t, beta, limit)
    return Descent(
        alpha,
        t,
        beta,
        s=accumulated(u, v) / scale,
        jumps=jumps,
        loss=np.mean((beta @ samples.x.T - samples.y) ** 2, axis=1) / 2,
        late=float(np.abs(jumps / limit.times[1:] - 1).max()),
        left=float(np.linalg.norm(beta[-1] - limit.betas[-1]) / np.linalg.norm(limit.betas[-1])),
    )


@dataclass(frozen=True)
class Evidence:
    """Both recursions, the data and the networks."""

    limit: Saddles
    constrained: Saddles
    x: kit.Floats
    y: kit.Floats
    runs: list[Descent]


def evidence(runs: kit.Runs) -> Evidence:
    """Solve both recursions in times over `ln(1 / alpha)`, and read the networks, by falling
    alpha.
    """
    samples = next(iter(runs.values())).dataset()
    limit = saddles(samples.x, samples.y)
    return Evidence(
        limit=limit,
        constrained=saddles(samples.x, samples.y, constrained=True),
        x=samples.x,
        y=samples.y,
        runs=[descent(run, limit) for run in runs.values()],
    )


def _at(run: Descent, values: kit.Floats, t: float) -> kit.Floats:
    """Return values (K, ...) of a network at a time; NaN unless it has come so far."""
    return (
        values[np.searchsorted(run.t, t)] if t <= run.t[-1] else np.full(values.shape[1:], np.nan)
    )


def _common(name: str, e: Evidence) -> list[kit.Claim]:
    """Return the claims of both figures."""
    least = e.runs[-1]
    limit = e.limit
    cell = "cell 20" if name == "diagonal" else "cell 17"
    alpha = LEAST[name]
    small = [run for run in e.runs if run.alpha < SMALL * 1.01]
    late = np.array([run.late for run in small])
    scales = -np.log([run.alpha for run in small])
    middles = np.sqrt(limit.times[1:-1] * limit.times[2:])
    levels = [
        float(_at(least, least.loss, t)) / level
        for t, level in zip(middles, limit.losses[1:], strict=False)
    ]
    return [
        *(
            kit.theory(
                f"time-{k}",
                rf"Alternating flow from $\alpha$ = {alpha:g} makes jump {k} at the time",
                f"printed, {cell}",
                kit.near(value, 5e-4),
                limit.times[k] * -np.log(alpha),
            )
            for k, value in enumerate(PRINTED[name], 1)
        ),
        kit.theory(
            "learned",
            "The coordinates that Algorithm 1 activates (share of the printed ones, in their"
            " places)",
            f"printed, {cell}",
            kit.exactly(1.0),
            np.mean(e.constrained.activated == ORDER[name]),
        ),
        kit.theory(
            "same",
            "Algorithm 1 of Pesme and Flammarion jumps when alternating flow does (largest relative"
            " difference)",
            "cells 5 and 6, released",
            kit.at_most(1e-9),
            np.abs(e.constrained.times[1:] / limit.times[1:] - 1).max(),
        ),
        *(
            kit.claim(
                f"jump-{k}",
                rf"Trained from $\alpha$ = {least.alpha:g}, the network makes jump {k} at the "
                r"printed time (over $\ln(1/\alpha)$)",
                f"printed, {cell}",
                kit.around(value / -np.log(alpha)),
                least.jumps[k - 1],
            )
            for k, value in enumerate(PRINTED[name], 1)
        ),
        kit.claim(
            "nearer",
            r"The smaller $\alpha$, the nearer to alternating flow: the largest relative"
            r" deviation of "
            rf"a jump (share of smaller $\alpha$ with less, {SMALL:g} to {least.alpha:g})",
            "abstract: the limit",
            kit.exactly(1.0),
            kit.given(np.isfinite(late).all(), np.mean(np.diff(late) < 0)),
        ),
        kit.claim(
            "rate",
            r"The largest deviation of a jump falls like $1/\ln(1/\alpha)$, the next order (power)",
            "derived",
            kit.around(-1.0),
            np.log(late[-1] / late[0]) / np.log(scales[-1] / scales[0]),
        ),
        kit.claim(
            "levels",
            rf"Between jumps the loss is the saddles' ($\alpha$ = {least.alpha:g}, half way on the "
            "logarithm; the loss over it that is farthest from 1)",
            "the loss in the limit",
            kit.around(1.0),
            levels[int(np.argmax(np.abs(np.log(levels))))],
        ),
        kit.claim(
            "end",
            r"From every $\alpha$ the network ends in the least-squares predictor (largest"
            r" relative "
            "distance)",
            "cell 21, the least-squares lines",
            kit.less_than(0.01),
            np.max([run.left for run in e.runs]),
        ),
    ]


def claims_diagonal(e: Evidence) -> list[kit.Claim]:
    ends = np.abs(e.limit.betas[-1]) / 2
    firsts = [
        np.flatnonzero(np.abs(row) >= end)[:1]
        for row, end in zip(e.runs[-1].beta.T, ends, strict=True)
    ]
    order = np.argsort([passed[0] if len(passed) else np.inf for passed in firsts])
    return [
        *_common("diagonal", e),
        kit.claim(
            "order",
            r"The coordinates come up to half of their final values in the printed order"
            r" ($\alpha$ = "
            "1e-16, share of places)",
            "printed, cell 20",
            kit.exactly(1.0),
            kit.given(all(map(len, firsts)), np.mean(order == ORDER["diagonal"])),
        ),
    ]


def claims_dormant(e: Evidence) -> list[kit.Claim]:
    least = e.runs[-1]
    _, first, second, third = e.limit.times
    made = bool(np.isfinite(least.jumps).all())
    turn = (second + third) / 2
    crossed = least.t[1:][(least.s[:-1, 0] > 0) & (least.s[1:, 0] <= 0)]
    early, asleep = (float(_at(least, least.beta, t)[0]) for t in (np.sqrt(first * second), turn))
    return [
        *_common("dormant", e),
        kit.claim(
            "dormant",
            r"The second jump makes the first coordinate dormant again ($|\beta_1|$ half way to"
            r" the "
            "third over its value at the first saddle)",
            "printed, cell 17: below alpha where |s| is below half of its end",
            kit.less_than(least.alpha),
            kit.given(made, abs(asleep / e.limit.betas[1, 0])),
        ),
        kit.claim(
            "turn",
            "Half way between the second and the third jump u and v of the first coordinate are"
            " equal again (time)",
            "cell 15: the tick between the two times",
            kit.around(turn),
            crossed[-1] if len(crossed) else np.nan,
        ),
        kit.claim(
            "other-sign",
            "The first coordinate becomes active again with the other sign (product of both signs)",
            "Algorithm 1",
            kit.exactly(-1.0),
            kit.given(made, np.sign(early) * np.sign(least.beta[-1, 0])),
        ),
    ]


def colors(e: Evidence) -> kit.Floats:
    """Return a colour (n, 4) for each network, darker for smaller alpha."""
    return np.asarray(colormaps["viridis"](np.linspace(0.92, 0.0, len(e.runs))))


def power(alpha: float) -> str:
    """Return a power of ten as it is written along an axis."""
    return f"$10^{{{np.log10(alpha):.0f}}}$"


def _draw_loss(axes: Any, e: Evidence, t: kit.Floats) -> list[Any]:
    """Draw the losses of all networks over rescaled times, and the steps of alternating flow up
    to the last `t`.
    """
    shades = colors(e)
    n = len(e.runs)
    for run, color in zip(e.runs, shades, strict=True):
        axes.plot(run.t, run.loss, color=color, lw=1.4)
    scale = ScalarMappable(BoundaryNorm(range(n + 1), n), ListedColormap(shades))
    bar = axes.figure.colorbar(
        scale, ax=axes, ticks=np.arange(n) + 0.5, label=r"scale of the start $\alpha$"
    )
    bar.ax.set_yticklabels(
        [f"{run.alpha:g}" if run.alpha > SMALL else power(run.alpha) for run in e.runs]
    )
    bar.ax.minorticks_off()
    steps = axes.plot(
        t,
        e.limit.at(e.limit.losses, t),
        color=kit.PALETTE.theory,
        ls=kit.DASHED,
        lw=1.1,
        label=r"alternating flow, $\alpha \to 0$",
    )
    kit.panel_label(axes, 0, "Loss")
    axes.set(yscale="log", xlabel=TIME, ylabel=r"loss $\frac{1}{2n}\|X\beta - y\|^2$")
    return steps  # type: ignore[no-any-return]


def forces(e: Evidence, last: float, title: str) -> kit.Chart:
    """Return the accumulated forces of the smallest alpha beside the recursion, where they are ±1
    while active.
    """
    run = e.runs[-1]
    inside = run.t < last
    forces = enumerate(run.s[inside].T, 1)
    ended = np.append(e.limit.paths, e.limit.paths[-1:], axis=0)
    return kit.chart(
        title,
        r"$s_i / \ln(1/\alpha)$",
        kit.lines(run.t[inside], dict(forces), r"$\beta_{{{}}}$", "1.8"),
        kit.line([*e.limit.times, last], ended, look="theory dashed 1.1"),
        kit.line(e.constrained.times, e.constrained.paths, "Algorithm 1", "theory points"),
        xlabel=TIME,
    )


def draw_diagonal(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.75, extra_height=0.45)
    t = np.geomspace(1e-3, 1e3, 4000)
    least = e.runs[-1]
    smallest = r"$\alpha = 10^{-16}$"
    coefficients = kit.chart(
        f"Coefficients, {smallest}",
        r"coefficient $\beta_i$",
        kit.lines(least.t, least.beta, "", "1.8"),
        kit.line(t, e.limit.at(e.limit.betas, t), look="theory dashed 1.1"),
        kit.line(e.constrained.times, e.constrained.betas, look="theory points"),
        xlabel=TIME,
        log="x",
        limits_x=(0.03, 30),
    )
    small = [run for run in e.runs if run.alpha < SMALL * 1.01]
    scales = -np.log([run.alpha for run in small])
    delays = kit.chart(
        "Delay of jumps",
        "delay over predicted time",
        *(
            kit.line(
                scales,
                [run.jumps[k] / e.limit.times[k + 1] - 1 for run in small],
                look=f"C{jumped} joined 1.0",
            )
            for k, jumped in enumerate(e.limit.activated)
        ),
        kit.line(
            scales,
            small[0].late * scales[0] / scales,
            r"$\propto 1 / \ln(1/\alpha)$",
            "muted dotted",
        ),
        xlabel=r"scale of the start $\alpha$",
        log="xy",
        ticks={at: power(run.alpha) for at, run in zip(scales, small, strict=True)},
    )
    handles = _draw_loss(axes[0], e, t)
    axes[0].set(xscale="log", xlim=(1e-3, 1e3), ylim=(1e-5, 300))
    shown = (coefficients, forces(e, 5.0, f"Accumulated forces, {smallest}"), delays)
    for k, chart in enumerate(shown, 1):
        handles += kit.panel(axes[k], k, chart)
    kit.figure_legend(figure, handles, columns=5)
    return figure


def draw_dormant(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, aspect=1.0, extra_height=0.6)
    handles = _draw_loss(axes[0], e, np.linspace(0.0, 4.5, 2000))
    axes[0].set(xlim=(0, 4.5), ylim=(1e-3, 5))
    grid = np.stack(np.meshgrid(np.linspace(-0.9, 1.1, 80), np.linspace(-0.3, 2.3, 80)), axis=-1)
    loss = np.mean((grid @ e.x.T - e.y) ** 2, axis=-1) / 2
    axes[1].contour(
        *grid.transpose(2, 0, 1), loss, levels=np.geomspace(0.02, 20, 10), colors=kit.PALETTE.faint
    )
    for run, color in zip(e.runs, colors(e), strict=True):
        axes[1].plot(*run.beta.T, color=color, lw=1.4)
    axes[1].plot(*e.constrained.betas.T, "o", color=kit.PALETTE.theory, ms=4)
    axes[1].set(xlabel=r"$\beta_1$", ylabel=r"$\beta_2$")
    kit.panel_label(axes[1], 1, "Plane of coefficients")
    handles += kit.panel(axes[2], 2, forces(e, 4.5, "Forces"))
    kit.figure_legend(figure, handles, columns=5)
    return figure


PASSES = {
    "diagonal": {
        "early": {"jump-1": "The first jump comes within the first hundredth of the run."},
        "random_features": {
            "jump-1 jump-2": (
                "The first two jumps are to negative coefficients, which v alone makes: beta is u^2"
                " - v^2."
            )
        },
    }
}
"""Figure -> null -> claims that hold under it, and why."""


def _figure(name: str, caption: str) -> kit.Figure:
    configs = {
        f"alpha = {alpha:g}": kit.Wanted(
            f"kunin2025/{name}.yaml", (f"initialization.scale={float(alpha / np.sqrt(2))!r}",)
        )
        for alpha in ALPHAS[name]
    }
    return kit.Figure(
        id=f"kunin2025-{name}", caption=caption, configs=configs, passes=PASSES.get(name, {})
    )


FIGURES = kit.by_id(
    _figure(
        "diagonal",
        "A diagonal linear network on 20 samples in 5 dimensions, trained from eight scales, over"
        " time divided by ln(1/alpha): losses; coefficients and accumulated forces of the smallest"
        " scale; the delay of its jumps. Dashed: alternating flow in the limit; dots: saddles of"
        " Algorithm 1 of Pesme and Flammarion.",
    ),
    _figure(
        "dormant",
        "Two dimensions: the first coordinate becomes active, dormant when the second one does, and"
        " active again with the other sign. Losses, paths of the coefficients over level lines of"
        " the loss, accumulated forces at the smallest scale. Dashed: alternating flow; dots:"
        " saddles of Algorithm 1.",
    ),
)
