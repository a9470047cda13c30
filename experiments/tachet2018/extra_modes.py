"""Beyond the figures: closed forms of the appendix and random sampling, each beside networks really trained.

`dyn reproduce tachet2018-extra-modes`. About 8 s, nearly all of them training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label, place_legend
from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .appendix import classes_curves, layer_curves, orthogonal_curve
from .curves import draw_curves, mode_curve, trained_handle
from .extra_claims import extra_claims
from .theory.confidence_times import exact_time_ratio, time_ratio
from .trained import Curve, crossing, order, pattern_changes, step

SAMPLED = "tachet2018/sampled.yaml"
SEEDS = range(8)
STEPS = {"0.01": 2400, "0.001": 24000}
"""Step -> updates of the sampled runs."""
POINTS = (1, 2, 4, 8)
"""m of A.7."""
DELTA = 0.02
"""Corollary 3.3 is measured at the confidence 1 - delta."""


@dataclass(frozen=True)
class Evidence:
    """Curves by what they show."""

    layer: list[Curve]
    """A.4: three neurons on D_1, two on D_2."""
    classes: list[Curve]
    """A.2: three classes."""
    orthogonal: list[Curve]
    """A.7: m = 1, 2, 4, 8 points."""
    sampled: list[Curve]
    """Random sampling at the smaller step, both classes, first seed."""
    deviations: Floats
    """(steps, seeds) largest deviation of the sampled runs from the closed form, largest step first."""
    lemma: tuple[int, int]
    """Changes of activation patterns and output signs: lemma 3.1 (sampled, several points), lemma A.1 (C classes)."""
    coarse: tuple[float, float, float]
    """Order of convergence in the step: A.4, A.7, A.2."""
    ratio: tuple[float, float, float]
    """t2* / t1* of Corollary 3.3: trained, printed, exact."""

    @property
    def rates(self) -> Floats:
        """(4,) `d ln u / dt (1 + exp(u)) / (2 ||x||)` of the trained networks of A.7: `sqrt(m)`."""
        gains = []
        for one in self.orthogonal:
            u = np.log(one.P / (1 - one.P))
            middle = slice(len(u) // 4, 3 * len(u) // 4)
            rate = np.gradient(np.log(u), one.t) * (1 + np.exp(u)) / 2.0
            gains.append(float(np.median(rate[middle])))
        return np.array(gains)

    @property
    def sampling_order(self) -> float:
        """Power of the step with which the mean deviation of the sampled runs shrinks."""
        mean = self.deviations.mean(axis=1)
        sizes = [float(value) for value in STEPS]
        return order(float(mean[0]), float(mean[1]), (sizes[0], sizes[1]))


def evidence(runs: Runs) -> Evidence:
    """Compare every run with its closed form."""
    groups = {
        role: curves(runs[role])
        for role, curves in (("layer", layer_curves), ("layer, coarse", layer_curves), ("classes", classes_curves),
                             ("classes, coarse", classes_curves))
    }  # fmt: skip
    orthogonal = [orthogonal_curve(runs[f"m = {m}"]) for m in POINTS]
    worst = {role: max(one.error for one in curves) for role, curves in groups.items()}
    coarse_m = orthogonal_curve(runs["m = 4, coarse"])
    fine_m = orthogonal[POINTS.index(4)]
    sampled = [[_both(runs[f"sampled {lr}, seed {seed}"]) for seed in SEEDS] for lr in STEPS]
    first, second = sampled[-1][0]
    ratio_run = [mode_curve(runs["ratio"], label) for label in (1, -1)]
    t1, t2 = (crossing(one.t, one.P, 1 - DELTA) for one in ratio_run)
    lr = step(runs["layer"])
    return Evidence(
        layer=groups["layer"],
        classes=groups["classes"],
        orthogonal=orthogonal,
        sampled=[first, second],
        deviations=np.array([[max(one.error for one in pair) for pair in row] for row in sampled]),
        lemma=(pattern_changes(runs["lemma"]), pattern_changes(runs["classes"])),
        coarse=(
            order(worst["layer, coarse"], worst["layer"], (step(runs["layer, coarse"]), lr)),
            order(coarse_m.error, fine_m.error, (step(runs["m = 4, coarse"]), step(runs["m = 4"]))),
            order(worst["classes, coarse"], worst["classes"], (step(runs["classes, coarse"]), step(runs["classes"]))),
        ),
        ratio=(t2 / t1, float(time_ratio(1.0, 2.0, 0.75)), float(exact_time_ratio(DELTA, 0.04, 0.04, 1.0, 2.0, 0.75))),
    )


def _both(run: object) -> tuple[Curve, Curve]:
    return mode_curve(run, 1), mode_curve(run, -1)  # type: ignore[arg-type]


def draw(found: Evidence) -> Drawing:
    """Draw four panels of confidences."""
    figure, axes = new_figure(2, 2, width=TEXT_WIDTH, aspect=0.78)
    panels = (
        (found.layer, "Several neurons a class (A.4)"),
        (found.orthogonal, "$m$ orthogonal points (A.7)"),
        (found.classes, "Three classes, softmax (A.2)"),
        (found.sampled, "Classes drawn at random, $p_1=3/4$"),
    )
    for k, (panel, (curves, title)) in enumerate(zip(axes, panels, strict=True)):
        lines = draw_curves(panel, curves, values="P", label="$P_t$")
        panel.set_ylim(None, 1.01)
        panel_label(panel, k, title)
        place_legend(panel, [*lines, trained_handle()], "inside")
    return figure


def _orthogonal(m: int, *extra: str) -> Wanted:
    x = np.eye(8)[:m].tolist()
    return Wanted(
        "tachet2018/two_classes.yaml",
        (
            f"dataset.x={x}",
            f"dataset.y={[1] * m}",
            "architecture.width=1",
            "initialization.y=[[0.2], []]",
            f"initialization.z=[[{0.2 * float(np.sqrt(m))!r}], []]",
            "loss.reduction=sum",
            "optimizer.iterations=8000",
            "record.snapshots.interval=20",
            *extra,
        ),
    )


def _layer(*extra: str) -> Wanted:
    starts = ("initialization.y=[[0.1, 0.3, 0.05], [0.2, 0.6]]", "initialization.z=[[0.3, 0.1, 0.2], [0.1, 0.2]]")
    return Wanted("tachet2018/two_classes.yaml", ("architecture.width=5", *starts, *extra))


def _sampled(lr: str, updates: int, seed: int) -> Wanted:
    size = ("record.snapshots.interval=40",) if updates > 10000 else ("record.snapshots.interval=4",)
    return Wanted(SAMPLED, (f"optimizer.lr={lr}", f"optimizer.iterations={updates}", f"seed={seed}", *size))


COARSE = ("optimizer.lr=0.01", "optimizer.iterations=2400", "record.snapshots.interval=4")
FIGURE = Figure(
    id="tachet2018-extra-modes",
    caption=(
        "Not in the paper: the closed forms that it proves without a figure (A.2, A.4, A.7) and the effect of sampling "
        "the classes at random (p_1 = 3/4, step 0.001), as lines, with trained networks as dots."
    ),
    configs={
        "layer": _layer(),
        "layer, coarse": _layer(*COARSE),
        **{f"m = {m}": _orthogonal(m) for m in POINTS},
        "m = 4, coarse": _orthogonal(4, "optimizer.lr=0.01", "optimizer.iterations=800", "record.snapshots.interval=2"),
        "classes": "tachet2018/classes.yaml",
        "classes, coarse": Wanted(
            "tachet2018/classes.yaml",
            ("optimizer.lr=0.01", "optimizer.iterations=900", "record.snapshots.interval=2"),
        ),
        "lemma": "tachet2018/lemma.yaml",
        "ratio": Wanted(
            SAMPLED,
            (
                "optimizer.kind=gd",
                "initialization.y=[[0.2], [0.28284271247461906]]",
                "initialization.z=[[0.2], [0.1414213562373095]]",
                "optimizer.lr=2.0e-3",
                "optimizer.iterations=30000",
            ),
        ),
        **{f"sampled {lr}, seed {seed}": _sampled(lr, n, seed) for lr, n in STEPS.items() for seed in SEEDS},
    },
    origin={"closed forms": "stated", "data, starts, steps": "assumed", "seeds": "assumed"},
    evidence=evidence,
    claims=extra_claims,
    draw=draw,
)
