"""Figure 4: learning time and best step against depth, one mode of a deep linear network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from dynamics_cli import kit
from dynamics_cli.theory.linear_modes import read_setting

from .theory.modes import descent, infinite_depth, time_between

LAYERS = (3, 5, 11, 31, 51, 101)
"""N_l, input and output counted: n = N_l - 1 matrices."""
U0, U, S = 1e-3, 0.99, 1.0
RATES = np.geomspace(0.2, 4.0, 60)
"""Steps that are tried, in units of 1/n."""
TRAINED, STEPS = {3: 11.0, 4: 17.0, 5: 22.5, 8: 31.0}, (0.02, 0.01)
"""Matrices of trained networks -> their time, after which the mode of strength S is at U; and their steps."""


@dataclass(frozen=True)
class Evidence:
    """By depth, `LAYERS`."""

    flow: kit.Floats
    """Iterations of gradient flow at the step 1/(n s^(2-2/n))."""
    best: kit.Floats
    """Least iterations of gradient descent,"""
    rate: kit.Floats
    """and the step that takes them."""
    limit: float
    trained: kit.Floats
    """(4,) times n of trained networks, `TRAINED`, to U in the mode of strength S, at the smaller step."""
    deviations: kit.Floats
    """(4, 2) at both steps: largest deviation of a mode's half time from Eq. 15, relative."""


def trained(run: kit.Run) -> tuple[float, float]:
    """Return n times the time to U of the mode of strength S, and the largest deviation of a half time."""
    modes, lr = read_setting(run), run.config.optimizer.lr  # type: ignore[attr-defined]

    def time(k: int, u: float) -> float:
        found = CubicSpline(lr * run.snapshot_iterations, modes.strengths[:, k]).solve(u, extrapolate=False)
        return float(found[0]) if len(found) else float("nan")

    ratios = [time(k, s / 2) / time_between(U0, s / 2, s, modes.depth) for k, s in enumerate(modes.s)]
    return modes.depth * time(-1, U), float(np.abs(np.array(ratios) - 1).max())


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate Eq. 15, iterate descent, and time the modes of networks."""
    networks = np.array([[trained(runs[f"n = {n}, step {lr:g}"]) for lr in STEPS] for n in TRAINED])
    steps = [descent(N - 1, RATES / (N - 1), U0, U, S, limit=3000) for N in LAYERS]
    return Evidence(
        flow=np.array([(N - 1) * time_between(U0, U, S, N - 1) for N in LAYERS]),
        best=np.array([one.min() for one in steps]),
        rate=np.array([RATES[np.argmin(one)] / (N - 1) for N, one in zip(LAYERS, steps, strict=True)]),
        limit=infinite_depth(U0, U, S),
        trained=networks[:, 1, 0],
        deviations=networks[..., 1],
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Eqs. 15 to 17: with the step ~ 1/n learning time saturates with depth."""
    order = e.deviations[:, 0] / e.deviations[:, 1]
    scaled = e.rate * (np.array(LAYERS) - 1)
    # fmt: off
    return [
        kit.theory("rising", "At the step 1/(n s^(2-2/n)) the time grows with depth (least growth)", "Eq. 15",
                   kit.more_than(0), np.diff(e.flow).min()),
        kit.theory("finite", "but stays below that of infinite depth (largest over it)", "Eqs. 16, 17",
                   kit.less_than(1), e.flow.max() / e.limit),
        kit.theory("limit", "which it tends to (time of 10 001 layers over it)", "Eqs. 16, 17", kit.near(1, 0.02),
                   1e4 * time_between(U0, U, S, 10000) / e.limit),
        kit.theory("saturates", "Gradient descent at its best step: 101 layers take hardly longer than 51 (ratio)",
                   "Figure 4; range ours", kit.less_than(1.25), e.best[-1] / e.best[-2]),
        kit.claim("trained", "Networks of 4, 5, 6 and 9 layers from a decoupled start have every mode half learnt when "
                  "it says, up to the error of Euler's method (largest relative deviation at a step over that at half "
                  "of it, the farthest from 2)", "Eq. 15; error derived", kit.near(2, 0.2),
                  order[np.argmax(np.abs(order - 2))]),
        kit.finding("trained-deviation", "Largest of these deviations at the smaller step", "Eq. 15",
                    e.deviations[:, 1].max()),
        kit.finding("step", "Best step times n, least over depths", "Figure 4 right", scaled.min()),
        kit.finding("step-most", "and largest", "Figure 4 right", scaled.max()),
    ]
    # fmt: on


@kit.styled
def draw(e: Evidence) -> kit.Drawing:
    """Draw times and steps over depth."""
    figure, (left, right) = kit.new_figure(2, aspect=0.8, extra_height=0.25)
    left.semilogx(LAYERS, e.flow, color=kit.PALETTE.theory, marker=kit.MARKER, label=r"flow, step $1/(n s^{2-2/n})$")
    left.plot(LAYERS, e.best, color=kit.PALETTE.measured, marker=kit.MARKER, label="descent, best step")
    left.plot(
        [n + 1 for n in TRAINED],
        e.trained,
        color=kit.SERIES[2],
        marker="x",
        ls="",
        label="networks, $n$ times their time",
    )
    left.axhline(e.limit, color=kit.PALETTE.theory, ls="--", lw=0.8, label="infinite depth, Eq. 17")
    left.set(xlabel="layers $N_l$", ylabel="iterations to $u = 0.99 s$", ylim=(0, 1.3 * e.limit))
    right.loglog(np.array(LAYERS), e.rate, color=kit.PALETTE.measured, marker=kit.MARKER, label="best step")
    right.loglog(LAYERS, 1 / (np.array(LAYERS) - 1), color=kit.PALETTE.theory, ls=":", label="$1/n$")
    right.set(xlabel="layers $N_l$", ylabel="step")
    for axes in (left, right):
        axes.set_xticks(LAYERS, labels=[str(N) for N in LAYERS])
        axes.minorticks_off()
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0][1:]]
    kit.figure_legend(figure, handles)
    kit.panel_label(left, 0, "Learning time")
    kit.panel_label(right, 1, "Step")
    return figure


FIGURE = kit.Figure(
    id="saxe2014-fig4",
    caption=(
        "One mode of strength 1 from u0 = 0.001 in linear networks of several depths. Left: iterations to 0.99, of "
        "gradient flow at the step 1/(n s^(2-2/n)), of gradient descent at its best step, for infinite depth, and of "
        "trained networks. Right: the best step. (The paper's networks are on MNIST, its threshold we do not know)."
    ),
    configs={
        f"n = {n}, step {lr:g}": kit.Wanted(
            "saxe2014/depth.yaml",
            (
                "dataset={kind: linear_map, inputs: 4, outputs: 4, singular_values: [2.0, 1.5, 1.0]}",
                "dtype=float64",
                f"architecture.widths={[4] * (n - 1)}",
                "architecture.outputs=4",
                f"initialization={{kind: decoupled, scale: {U0}}}",
                f"optimizer={{kind: gd, lr: {lr}, iterations: {round(time / lr)}}}",
                "record={snapshots: {kind: every, interval: 5}, measures: []}",
            ),
        )
        for n, time in TRAINED.items()
        for lr in STEPS
    },
    origin={"equations, u0": "stated", "threshold": "chosen", "steps": "chosen", "networks": "chosen"},
)
