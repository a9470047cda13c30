"""Figure 1: neurons in the plane at two scales of the start, and test loss against the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.datasets.teachers import SphereTeacher
from dynamics_cli.kinds import Streams
from dynamics_cli.theory.ntk import Linearised

PLANE = {"tau = 0.1": 0.1, "tau = 2": 2.0}
SCALES = (0.03, 0.1, 1.0, 10.0)
MORE_SCALES = tuple(float(f"{10**power:.4g}") for power in np.arange(-2.2, 1.01, 0.1))
"""Of `--preset full`, those of the paper."""
CLOSE = 10.0
"""Degrees within which a neuron has the direction of one of the teacher."""


@dataclass(frozen=True)
class Plane:
    """Neurons of a run in the plane."""

    paths: kit.Floats
    """(K, m, 2) `|b_j| a_j`."""
    signs: kit.Floats
    """(m,) of the last b_j."""
    teacher: kit.Floats
    """(3, 2)"""
    teacher_signs: kit.Floats
    turn: float
    """Median angle between the first and the last a_j, degrees."""
    moved: float
    """Distance travelled over the norm of the initial weights."""
    found: float
    """Share of the norms `|b_j| |a_j|` within 10 degrees of a neuron of the teacher of the same sign."""


@dataclass(frozen=True)
class Scale:
    """A run of panel c."""

    tau: float
    test: float
    """Held-out loss at the end."""
    best: float
    """and the least along the run."""
    moved: float
    """Relative distance travelled."""
    linearised: float
    """Held-out loss of the linearised model at the same iteration."""
    null: float
    """Held-out loss of the zero function."""


@dataclass(frozen=True)
class Evidence:
    """Both runs in the plane, and all scales, ascending."""

    plane: dict[str, Plane]
    scales: list[Scale]


def evidence(runs: kit.Runs) -> Evidence:
    """Measure neurons and losses."""
    scales = [_scale(run, float(role.split()[1])) for role, run in runs.items() if role not in PLANE]
    return Evidence({role: _plane(runs[role]) for role in PLANE}, sorted(scales, key=lambda one: one.tau))


def _plane(run: kit.Run) -> Plane:
    W, b = (np.asarray(run.parameters[name], np.float64) for name in ("hidden_weight", "output_weight"))
    dataset = run.config.dataset
    assert isinstance(dataset, SphereTeacher)
    T, s = dataset.teacher(Streams(run.config.seed))
    mass = np.abs(b[-1]) * np.linalg.norm(W[-1], axis=1)
    cosines = np.where(np.sign(b[-1])[:, None] == s, kit.directions(W[-1]) @ T.T, -1.0).max(axis=1)
    close = cosines > np.cos(np.radians(CLOSE))
    turns = np.degrees(np.arccos(np.clip(np.sum(kit.directions(W[0]) * kit.directions(W[-1]), axis=1), -1, 1)))
    moved = np.sqrt(
        (np.sum((W[-1] - W[0]) ** 2) + np.sum((b[-1] - b[0]) ** 2)) / (np.sum(W[0] ** 2) + np.sum(b[0] ** 2))
    )
    return Plane(np.abs(b)[:, :, None] * W, np.sign(b[-1]), T, s, float(np.median(turns)), float(moved),
                 float(mass[close].sum() / mass.sum()))  # fmt: skip


def _scale(run: kit.Run, tau: float) -> Scale:
    test, samples = np.asarray(run.measures["test_loss"]), run.dataset()
    predicted = np.asarray(Linearised().predict(run)["test_loss"])
    assert samples.y_test is not None
    return Scale(
        tau=tau,
        test=float(test[-1]),
        best=float(test.min()),
        moved=float(run.measures["distance"][-1]),
        linearised=float(predicted[-1]),
        null=0.5 * float(np.mean(samples.y_test**2)),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Section 3 and Figure 1."""
    small, large = e.plane.values()
    by = {one.tau: one for one in e.scales}
    rising = [one.test for one in e.scales if one.tau <= 1]
    lazy = [one for one in e.scales if one.tau >= 1]
    slope = np.polyfit(np.log([one.tau for one in lazy]), np.log([one.moved for one in lazy]), 1)[0]
    ratios = [one.test / one.linearised for one in lazy]
    # fmt: off
    return [
        kit.claim("still", "At tau = 2 neurons hardly turn (median angle, degrees)",
                  "Figure 1(b)", kit.less_than(10.0), large.turn),
        kit.claim("recovered", "At tau = 0.1 neurons end along those of the teacher (share of |b| |a| within 10 "
                  "degrees, same sign)", "Figure 1(a)", kit.at_least(0.9), small.found),
        kit.claim("costs", "Lazy training generalises worse (held-out loss at tau = 1 over that at tau = 0.03)",
                  "Section 3.1, Figure 1(c)", kit.more_than(1.0), by[1.0].test / by[SCALES[0]].test),
        kit.claim("rises", "The held-out loss rises with tau up to 1 (share of larger tau with more)",
                  "Figure 1(c)", kit.exactly(1.0), float(np.mean(np.diff(rising) > 0))),
        kit.claim("stopping", "Stopping early does not save it (best held-out loss at tau = 1 over the last at 0.03)",
                  "Figure 1(c), dotted", kit.more_than(1.0), by[1.0].best / by[SCALES[0]].test),
        kit.claim("linearised", "The plateau is the loss of the linearised model (worst ratio, tau >= 1)",
                  "Theorem 2.2; closed form at the same iteration", kit.Interval(0.9, 1.1),
                  max(ratios, key=lambda one: abs(np.log(one)))),
        kit.claim("travelled", "The relative distance travelled falls as 1 / alpha = tau^-2 (power, tau 1 to 10)",
                  "Theorem 2.2", kit.near(-2.0, 0.05), slope),
        kit.finding("large-moved", "Relative distance travelled at tau = 2", "Figure 1(b)", large.moved),
        kit.finding("small-moved", "and at tau = 0.1", "Figure 1(a)", small.moved),
        kit.finding("chance", "Share of |b| |a| along the teacher at tau = 2", "Figure 1(b)", large.found),
        *(kit.finding(f"null-{one.tau:g}", f"Held-out loss over that of the zero function, tau = {one.tau:g}",
                      "half of the spread between trials is the teacher's", one.test / one.null) for one in e.scales),
    ]
    # fmt: on


def draw(e: Evidence) -> kit.Drawing:
    """Draw the paths of neurons at both scales, and the held-out loss against the scale."""
    figure, axes = kit.new_figure(3, 1, aspect=1.05, extra_height=0.25)
    colors = {1.0: kit.SERIES[1], -1.0: kit.SERIES[0], 0.0: kit.PALETTE.muted}
    for k, (name, one) in enumerate(e.plane.items()):
        for j in range(one.paths.shape[1]):
            axes[k].plot(*one.paths[:, j].T, color=colors[float(one.signs[j])], lw=0.9)
            axes[k].plot(*one.paths[-1, j], kit.MARKER, ms=3.5, color=colors[float(one.signs[j])])
        reach = 1.25 * max(1.0, float(np.abs(one.paths).max()))
        for t, s in zip(one.teacher, one.teacher_signs, strict=True):
            arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": colors[float(s)], "lw": 1.0, "ls": (0, (3, 2))}
            axes[k].annotate("", tuple(reach * 0.95 * t), (0.0, 0.0), arrowprops=arrow)
        angle = np.linspace(0, 2 * np.pi, 200)
        axes[k].plot(np.cos(angle), np.sin(angle), color="black", lw=0.8, ls=":")
        axes[k].set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel=r"$|b_j|\,a_{j,1}$")
        kit.panel_label(axes[k], k, name.replace("tau", r"$\tau$"))
    axes[0].set_ylabel(r"$|b_j|\,a_{j,2}$")
    tau = [one.tau for one in e.scales]
    lines = [
        (
            [one.test for one in e.scales],
            {"color": kit.SERIES[2], "marker": kit.MARKER, "ms": 4, "label": "end of training"},
        ),
        ([one.best for one in e.scales], {"color": kit.SERIES[2], "ls": ":", "label": "best along training"}),
        ([one.linearised for one in e.scales], {"color": kit.PALETTE.theory, "ls": (0, (4, 2)), "label": "linearised"}),
    ]
    for values, look in lines:
        axes[2].plot(tau, 1e3 * np.array(values), **look)  # type: ignore[arg-type]
    axes[2].set(xscale="log", xlabel=r"scale $\tau$", ylabel=r"held-out loss $\times 10^3$", ylim=(0, None))
    kit.panel_label(axes[2], 2, "Scale")
    handles = [
        axes[0].plot([], [], color=colors[1.0], label="$b_j > 0$")[0],
        axes[0].plot([], [], color=colors[-1.0], label="$b_j < 0$")[0],
        *axes[2].lines,
    ]
    kit.figure_legend(figure, handles, columns=5)
    return figure


def _wanted(scales: tuple[float, ...]) -> dict[str, kit.Wanted]:
    return {
        f"scale {tau:g}": kit.Wanted(
            "chizat2019/scales.yaml",
            (f"initialization.scale={tau!r}", f"optimizer.lr={min(10.0, 0.1 / tau**2)!r}"),
        )
        for tau in scales
    }


ORIGIN: dict[str, kit.Origin] = {
    "data": "released", "width": "released", "step": "released", "iterations": "released", "scales": "stated",
    "law of the weights in the plane": "chosen", "seed": "chosen",
}  # fmt: skip
FIGURE = kit.Figure(
    id="chizat2019-fig1",
    caption=(
        "Two layers of ReLUs fit three of a teacher. (a, b) Paths of the neurons in the plane, dots their ends, arrows "
        "the teacher's, from a small and a large scale tau. (c) Held-out loss against tau in 100 dimensions, and that "
        "of the linearised model at the same iteration."
    ),
    configs={
        **{role: kit.Wanted("chizat2019/plane.yaml", (f"initialization.scale={tau}",)) for role, tau in PLANE.items()},
        **_wanted(SCALES),
    },
    presets={"full": dict(_wanted(MORE_SCALES))},
    origin=ORIGIN,
)
