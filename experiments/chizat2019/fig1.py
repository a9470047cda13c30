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

PLANE = (0.1, 2.0)
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

    plane: dict[float, list[Trial]]
    scales: list[Scale]
    kinks: bool
    """Whether the activation of a network has kinks."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure neurons of all trials in the plane, tau -> trials, and losses of all scales,
    ascending.
    """
    scales = [_scale(run, tau) for tau, run in kit.by_values(runs, "scale {:g}").items()]
    plane = kit.by_values(runs, "tau = {:g}")
    return Evidence(
        plane={tau: [_plane(trial) for trial in replicas_of(run)] for tau, run in plane.items()},
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
    slope = kit.power([point.tau for point in lazy], [point.moved for point in lazy])
    ratios = [point.test / point.linearised for point in lazy]
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
            r"Stopping early does not save lazy training (best held-out loss at $\tau$ = 1 over the"
            " last at 0.03)",
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
                kit.farthest(ratios),
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
    teachers = [trial.teacher for trial in next(iter(e.plane.values()))]
    shown = int(np.argmin([np.max((T @ T.T)[np.triu_indices(3, 1)]) for T in teachers]))
    scales = [point.tau for point in e.scales]
    looks = {
        "test": ("end of training", "C2 joined"),
        "best": ("best along training", "C2 dotted"),
        "linearised": ("linearised", "theory dashed"),
    }
    figure = kit.charts(
        *(_paths(rf"$\tau$ = {tau:g}", trials[shown]) for tau, trials in e.plane.items()),
        kit.chart(
            "Scale",
            r"held-out loss $\times 10^3$",
            *(
                kit.line(scales, [1e3 * getattr(point, key) for point in e.scales], *look)
                for key, look in looks.items()
            ),
            xlabel=r"scale $\tau$",
            log="x",
            limits=(0, None),
        ),
    )
    for axes in figure.axes[:2]:
        axes.set_aspect("equal")
    return figure


def _paths(title: str, trial: Trial) -> kit.Chart:
    """Chart the paths of neurons, the directions of the teacher's, and the unit circle."""
    reach = 1.25 * max(1.0, float(np.abs(trial.paths).max()))
    half = np.linspace(0, np.pi, 200)
    circle = np.column_stack([np.sin(half), -np.sin(half)])
    roles = {1.0: "positive", -1.0: "negative"}
    paths = zip(np.moveaxis(trial.paths, 0, 2), trial.signs, strict=True)
    arrows = zip(0.95 * reach * trial.teacher, trial.teacher_signs, strict=True)
    return kit.chart(
        title,
        r"$|b_j|\,a_{j,2}$",
        [kit.Line(x=x, y=y, color=roles[sign], width=0.9, path=True) for (x, y), sign in paths],
        [kit.line((0, x), (0, y), look=f"{roles[sign]} dashed 1") for (x, y), sign in arrows],
        kit.line(np.cos(half), circle, look="theory dotted 0.8"),
        kit.entry("$b_j > 0$", "positive"),
        kit.entry("$b_j < 0$", "negative"),
        xlabel=r"$|b_j|\,a_{j,1}$",
        limits=(-reach, reach),
        limits_x=(-reach, reach),
    )


def _wanted(scales: tuple[float, ...]) -> dict[str, Any]:
    return kit.grid(
        "chizat2019/scales.yaml",
        {"initialization.scale": scales},
        "scale {:g}",
        lambda tau: f"optimizer.lr={min(10.0, 0.1 / tau**2)!r}",
    )


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
        "Two layers of ReLUs fit three of a teacher. (a, b) Paths of the neurons in the plane from"
        " hollow to full dots, dashed the directions of the teacher's, from a small and a large"
        " scale tau, in the trial (of 16) whose teacher's neurons are farthest apart; dotted: the"
        " unit circle. (c) Held-out loss against tau in 100 dimensions, and that of the linearised"
        " model at the same time."
    ),
    configs={
        **kit.grid(
            "chizat2019/plane.yaml", {"initialization.scale": PLANE}, "tau = {:g}", replicas=TRIALS
        ),
        **_wanted(SCALES),
    },
    presets={"full": _wanted(MORE_SCALES)},
    nulls={"one scale": ("initialization.scale=0.1",)},
)
