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
U0 = 1e-3
U = 0.99
S = 1.0
RATES = np.geomspace(0.2, 4.0, 60)
"""Steps that are tried, in units of 1/n."""
TRAINED = {3: 11.0, 4: 17.0, 5: 22.5, 8: 31.0}
STEPS = (0.02, 0.01)
"""Matrices of trained networks -> their time, after which the mode of strength S is at U; and
their steps.
"""
LARGE_STEPS = (1.0, 1.25, 1.5)
"""Steps of the networks of all `LAYERS`, in units of 1/n; at 2/n the end is not stable."""
ARRIVED = 4 * (S - U) ** 2 / 2
"""Their loss with all four modes at U."""
DEEP = "n = {}, step {:g}/n".format
"""Role of such a network."""


def trained(run: kit.Run) -> tuple[float, float]:
    """Return n times the time to U of the mode of strength S, and the largest deviation of a
    half time.
    """
    modes, lr = read_setting(run), run.config.optimizer.lr  # type: ignore[attr-defined]

    def time(k: int, u: float) -> float:
        roots = CubicSpline(lr * run.snapshot_iterations, modes.strengths[:, k]).solve(
            u, extrapolate=False
        )
        return float(roots[0]) if len(roots) else np.nan

    ratios = [
        time(k, s / 2) / time_between(U0, s / 2, s, modes.depth) for k, s in enumerate(modes.s)
    ]
    return modes.depth * time(-1, U), float(np.abs(np.array(ratios) - 1).max())


@dataclass(frozen=True)
class Evidence:
    """Times and steps by depth.

    By depth, `LAYERS`: iterations of gradient `flow` at the step 1/(n s^(2-2/n)), the `best` of
    descent and the `rate` that takes them, the same of the `deep` networks and the `sharpness` of
    their ends. Of the networks `TRAINED`: n times the time to U, and at both steps the largest
    relative deviation of a mode's half time from Eq. 15.
    """

    deep: kit.Floats
    sharpness: kit.Floats
    flow: kit.Floats
    best: kit.Floats
    rate: kit.Floats
    limit: float
    trained: kit.Floats
    deviations: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Integrate Eq. 15, iterate descent, and time the modes of networks."""
    deep = [[runs[DEEP(N - 1, c)] for c in LARGE_STEPS] for N in LAYERS]
    took = np.array(
        [
            min(run.iterations if run.final_loss <= ARRIVED else np.inf for run in some)
            for some in deep
        ]
    )
    networks = np.array([[trained(runs[f"n = {n}, step {lr:g}"]) for lr in STEPS] for n in TRAINED])
    steps = [descent(N - 1, RATES / (N - 1), U0, U, S, limit=3000) for N in LAYERS]
    return Evidence(
        deep=np.where(np.isfinite(took), took, np.nan),
        sharpness=np.array([run.measures["sharpness"][-1].item() for run, *_ in deep]),
        flow=np.array([(N - 1) * time_between(U0, U, S, N - 1) for N in LAYERS]),
        best=np.array([needed.min() for needed in steps]),
        rate=np.array(
            [RATES[np.argmin(needed)] / (N - 1) for N, needed in zip(LAYERS, steps, strict=True)]
        ),
        limit=infinite_depth(U0, U, S),
        trained=networks[:, 1, 0],
        deviations=networks[..., 1],
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Eqs. 15 to 17: with the step ~ 1/n learning time saturates with depth."""
    order = e.deviations[:, 0] / e.deviations[:, 1]
    depth = np.log(np.array(LAYERS) - 1)
    return [
        kit.theory(
            "rising",
            "At the step $1/(n s^{2 - 2/n})$ the time grows with depth (least growth)",
            "Eq. 15",
            kit.more_than(0),
            np.diff(e.flow).min(),
        ),
        kit.theory(
            "finite",
            "The learning time stays below the time of infinite depth (largest over it)",
            "Eqs. 16, 17",
            kit.less_than(1),
            e.flow.max() / e.limit,
        ),
        kit.theory(
            "limit",
            "The learning time tends to the time of infinite depth (time of 10 001 layers over it)",
            "Eqs. 16, 17",
            kit.near(1, 0.02),
            1e4 * time_between(U0, U, S, 10000) / e.limit,
        ),
        kit.theory(
            "saturates",
            "Gradient descent at its best step: 101 layers take hardly longer than 51 (ratio)",
            "Figure 4; range ours",
            kit.less_than(1.25),
            e.best[-1] / e.best[-2],
        ),
        kit.claim(
            "trained",
            "Networks of 4, 5, 6 and 9 layers from a decoupled start have every mode half learnt"
            " when Eq. 15 says, up to the error of Euler's method (largest relative deviation at a"
            " step over that at half of it, the farthest from 2)",
            "Eq. 15; error derived",
            kit.near(2, 0.2),
            order[np.argmax(np.abs(order - 2))],
        ),
        kit.claim(
            "saturates-networks",
            "Networks from a decoupled start, at the best of three steps: 101 layers "
            "take hardly longer than 51 (ratio)",
            "Figure 4; range ours",
            kit.less_than(1.25),
            e.deep[-1] / e.deep[-2],
        ),
        kit.claim(
            "steps",
            "Steps shrink as 1/n (power of n of the largest step that is stable at the end of these"
            " networks, 2 over the sharpness)",
            "Figure 4 right",
            kit.near(-1, 0.1),
            -np.polyfit(depth, np.log(e.sharpness), 1)[0],
        ),
        kit.theory(
            "step",
            "The best step falls with depth as the step 1/(n s^(2-2/n)) does (the same power)",
            "Figure 4 right",
            kit.near(-1, 0.1),
            np.polyfit(depth, np.log(e.rate), 1)[0],
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    return kit.charts(
        kit.chart(
            "Learning time",
            "iterations to $u = 0.99 s$",
            kit.line(LAYERS, e.flow, r"flow, step $1/(n s^{2-2/n})$", "theory joined"),
            kit.line(LAYERS, e.best, "descent, best step", "measured joined"),
            kit.line([n + 1 for n in TRAINED], e.trained, "networks near flow", "C2 x"),
            kit.line(LAYERS, e.deep, "networks, descent", "C2 hollow s"),
            kit.level(e.limit, "infinite depth, Eq. 17"),
            log="x",
            limits=(0, 1.3 * e.limit),
        ),
        kit.chart(
            "Step",
            "step",
            kit.line(LAYERS, e.rate, look="measured joined"),
            kit.line(LAYERS, 2 / e.sharpness, "2 / sharpness", "C2 hollow s"),
            kit.line(LAYERS, 1 / (np.array(LAYERS) - 1), "$1/n$", "theory dotted"),
            log="xy",
        ),
        xlabel="layers $N_l$",
        ticks=LAYERS,
    )


def _network(n: int, strengths: tuple[float, ...], *more: str) -> kit.Wanted:
    """Return n matrices from a decoupled start on modes of these strengths."""
    data = (
        f"dataset={{kind: linear_map, inputs: 4, outputs: 4, singular_values: {list(strengths)}}}"
    )
    start = f"initialization={{kind: decoupled, scale: {U0}}}"
    shape = f"architecture.widths={[4] * (n - 1)}", "architecture.outputs=4"
    return kit.Wanted("saxe2014/depth.yaml", (data, "dtype=float64", *shape, start, *more))


FIGURE = kit.Figure(
    passes={"random_features": {"saturates-networks": "All matrices but one are trained still."}},
    id="saxe2014-fig4",
    caption=(
        "One mode of strength 1 from u0 = 0.001 in linear networks of several depths. Left:"
        " iterations to 0.99, of gradient flow at the step 1/(n s^(2-2/n)), of gradient descent at"
        " its best step, for infinite depth, of networks trained by small steps (n times their"
        " time) and by the best of three large steps. Right: the best step, and the largest that is"
        " stable at the end of these networks. (The paper's networks are on MNIST, its threshold we"
        " do not know)."
    ),
    configs={
        **{
            f"n = {n}, step {lr:g}": _network(
                n,
                (2.0, 1.5, 1.0),
                f"optimizer={{kind: gd, lr: {lr}, iterations: {round(time / lr)}}}",
                "record={snapshots: {kind: every, interval: 5}, measures: []}",
            )
            for n, time in TRAINED.items()
            for lr in STEPS
        },
        **{
            DEEP(n, c): _network(
                n,
                (S,) * 4,
                f"optimizer={{kind: gd, lr: {c / n!r}, iterations: 3000, stop_below: {ARRIVED}}}",
                "record.measures=[sharpness]",
            )
            for n in (N - 1 for N in LAYERS)
            for c in LARGE_STEPS
        },
    },
)
