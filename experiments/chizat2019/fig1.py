"""Figure 1: neurons in the plane at two scales of the start, and test loss against the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.datasets.teachers import SphereTeacher
from dynamics_cli.kinds import Streams
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.theory.ntk import Linearised

from .scaling import has_kinks, smooth_claim

PLANE = {"tau = 0.1": 0.1, "tau = 2": 2.0}
TRIALS = 16
"""Draws of data, teacher and start in the plane."""
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MORE_SCALES = tuple(float(f"{10**power:.4g}") for power in np.arange(-2.2, 1.01, 0.1))
"""Of `--preset full`, those of the paper."""
CLOSE = 10.0
"""Degrees within which a neuron has the direction of one of the teacher."""
FITTED = 0.1
"""Share of the first loss below which the data count as fitted: before, no claim is measured."""


@dataclass(frozen=True)
class Evidence:
    """All trials in the plane, and all scales."""

    plane: dict[str, list[Trial]]
    scales: list[Scale]
    kinks: bool
    """Whether the activation of a network has kinks."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure neurons of all trials in the plane, role -> trials, and losses of all scales,
    ascending.
    """
    scales = [
        _scale(run, float(role.split()[1])) for role, run in runs.items() if role not in PLANE
    ]
    return Evidence(
        plane={role: [_plane(trial) for trial in replicas_of(runs[role])] for role in PLANE},
        scales=sorted(scales, key=lambda point: point.tau),
        kinks=any(has_kinks(run.config.architecture) for run in runs.values()),
    )


def fitted(run: kit.Run) -> bool:
    """Return whether a run fits its data."""
    return bool(run.final_loss < FITTED * run.losses[0])


@dataclass(frozen=True)
class Trial:
    """Neurons of a trial in the plane."""

    paths: kit.Floats
    signs: kit.Floats
    teacher: kit.Floats
    teacher_signs: kit.Floats
    turn: float
    recovered: float


def _plane(run: kit.Run) -> Trial:
    """Return paths (K, m, 2) of `|b_j| a_j`, the median turn in degrees, and the share of norms
    along the teacher.
    """
    W, b = kit.recorded(run, "hidden_weight", "output_weight")
    dataset = run.config.dataset
    assert isinstance(dataset, SphereTeacher)
    T, s = dataset.teacher(Streams(run.config.seed))
    mass = np.abs(b[-1]) * np.linalg.norm(W[-1], axis=1)
    cosines = np.where(np.sign(b[-1])[:, None] == s, kit.directions(W[-1]) @ T.T, -1.0).max(axis=1)
    turns = np.degrees(
        np.arccos(np.clip(np.sum(kit.directions(W[0]) * kit.directions(W[-1]), axis=1), -1, 1))
    )
    return Trial(
        paths=np.abs(b)[:, :, None] * W,
        signs=np.sign(b[-1]),
        teacher=T,
        teacher_signs=s,
        turn=kit.given(fitted(run), np.median(turns)),
        recovered=float(mass[cosines > np.cos(np.radians(CLOSE))].sum() / mass.sum()),
    )


@dataclass(frozen=True)
class Scale:
    """Losses of a scale, and how far its weights moved."""

    tau: float
    test: float
    best: float
    linearised: float
    moved: float


def _scale(run: kit.Run, tau: float) -> Scale:
    """Return the last and the best held-out loss, the linearised model's, and the relative
    distance.
    """
    test = run.measures["test_loss"] if fitted(run) else np.full(1, np.nan)
    predicted = np.asarray(Linearised().predict(run)["test_loss"])
    return Scale(
        tau=tau,
        test=float(test[-1]),
        best=float(test.min()),
        linearised=float(predicted[-1]),
        moved=kit.given(fitted(run), run.measures["distance"][-1]),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    small, large = e.plane.values()
    by = {point.tau: point for point in e.scales}
    first = by[SCALES[0]]
    lazy = [point for point in e.scales if point.tau >= 1]
    rising = np.diff([point.test for point in e.scales if point.tau <= 1])
    slope = np.polyfit(
        np.log([point.tau for point in lazy]), np.log([point.moved for point in lazy]), 1
    )[0]
    ratios = np.array([point.test / point.linearised for point in lazy])
    return [
        kit.claim(
            "still",
            r"At $\tau$ = 2 neurons hardly turn until the data are fitted (median angle, degrees; "
            f"median of {TRIALS} trials)",
            "Figure 1(b)",
            kit.less_than(10.0),
            np.median([trial.turn for trial in large]),
        ),
        kit.claim(
            "recovered",
            r"At $\tau$ = 0.1 neurons end along the teacher's (share of $|b| |a|$ within 10 "
            f"degrees, same sign; median of {TRIALS} trials)",
            "Figure 1(a)",
            kit.at_least(0.9),
            np.median([trial.recovered for trial in small]),
        ),
        kit.claim(
            "costs",
            r"Lazy training generalises worse (held-out loss at $\tau$ = 1 over that at $\tau$ ="
            r" 0.03)",
            "Section 3.1, Figure 1(c)",
            kit.more_than(1.0),
            by[1.0].test / first.test,
        ),
        kit.claim(
            "rises",
            r"The held-out loss rises with $\tau$ up to 1 (share of larger $\tau$ with more)",
            "Figure 1(c)",
            kit.exactly(1.0),
            kit.given(np.isfinite(rising).all(), np.mean(rising > 0)),
        ),
        kit.claim(
            "stopping",
            r"Stopping early does not save lazy training (best held-out loss at $\tau$ = 1 over"
            r" the "
            "last at 0.03)",
            "Figure 1(c), dotted",
            kit.more_than(1.0),
            by[1.0].best / first.test,
        ),
        smooth_claim(
            kit.claim(
                "linearised",
                r"The plateau is the loss of the linearised model (worst ratio, $\tau \ge 1$)",
                "Theorem 2.2; closed form at the same iteration",
                kit.Interval(0.9, 1.1),
                ratios[np.abs(np.log(ratios)).argmax()],
            ),
            e.kinks,
        ),
        smooth_claim(
            kit.claim(
                "travelled",
                r"The relative distance travelled falls as $1/\alpha = \tau^{-2}$ (power, $\tau$ 1"
                " to 10)",
                "Theorem 2.2",
                kit.near(-2.0, 0.05),
                slope,
            ),
            e.kinks,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(3, 1, aspect=1.05, extra_height=0.25)
    teachers = [trial.teacher for trial in next(iter(e.plane.values()))]
    shown = int(np.argmin([np.max((T @ T.T)[np.triu_indices(3, 1)]) for T in teachers]))
    for k, (name, trials) in enumerate(e.plane.items()):
        trial = trials[shown]
        for j in range(trial.paths.shape[1]):
            axes[k].plot(*trial.paths[:, j].T, color=kit.PALETTE.sign(trial.signs[j]), lw=0.9)
            axes[k].plot(
                *trial.paths[-1, j], kit.MARKER, ms=3.5, color=kit.PALETTE.sign(trial.signs[j])
            )
        reach = 1.25 * max(1.0, float(np.abs(trial.paths).max()))
        for t, s in zip(trial.teacher, trial.teacher_signs, strict=True):
            arrow: dict[str, Any] = {
                "arrowstyle": "-|>",
                "color": kit.PALETTE.sign(s),
                "lw": 1.0,
                "ls": (0, (3, 2)),
            }
            axes[k].annotate("", tuple(reach * 0.95 * t), (0.0, 0.0), arrowprops=arrow)
        angle = np.linspace(0, 2 * np.pi, 200)
        axes[k].plot(np.cos(angle), np.sin(angle), color="black", lw=0.8, ls=":")
        axes[k].set(
            xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel=r"$|b_j|\,a_{j,1}$"
        )
        kit.panel_label(axes[k], k, name.replace("tau", r"$\tau$"))
    axes[0].set_ylabel(r"$|b_j|\,a_{j,2}$")
    tau = [point.tau for point in e.scales]
    looks: dict[str, dict[str, Any]] = {
        "test": {"color": "C2", "marker": kit.MARKER, "ms": 4, "label": "end of training"},
        "best": {"color": "C2", "ls": ":", "label": "best along training"},
        "linearised": {"color": kit.PALETTE.theory, "ls": kit.DASHED, "label": "linearised"},
    }
    for key, look in looks.items():
        axes[2].plot(tau, [1e3 * getattr(point, key) for point in e.scales], **look)
    axes[2].set(
        xscale="log", xlabel=r"scale $\tau$", ylabel=r"held-out loss $\times 10^3$", ylim=(0, None)
    )
    kit.panel_label(axes[2], 2, "Scale")
    handles = [
        axes[0].plot([], [], color=kit.PALETTE.sign(1), label="$b_j > 0$")[0],
        axes[0].plot([], [], color=kit.PALETTE.sign(-1), label="$b_j < 0$")[0],
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


SOON = {
    "still": (
        "At the large scale the data are fitted within a hundredth of the time, and neurons have"
        " turned as little by then."
    )
}
FIGURE = kit.Figure(
    passes={
        "early": SOON,
        "slow": SOON,
        "random_features": {
            "still": "The output layer alone fits these data, and the neurons do not turn at all."
        },
    },
    id="chizat2019-fig1",
    caption=(
        "Two layers of ReLUs fit three of a teacher. (a, b) Paths of the neurons in the plane, dots"
        " their ends, arrows the directions of the teacher's, from a small and a large scale tau,"
        " in the trial (of 16) whose teacher's neurons are farthest apart; dotted: the unit circle."
        " (c) Held-out loss against tau in 100 dimensions, and that of the linearised model at the"
        " same time."
    ),
    configs={
        **{
            role: kit.Wanted("chizat2019/plane.yaml", (f"initialization.scale={tau}",), TRIALS)
            for role, tau in PLANE.items()
        },
        **_wanted(SCALES),
    },
    presets={"full": dict(_wanted(MORE_SCALES))},
    nulls={"one scale": ("initialization.scale=0.1",)},
)
