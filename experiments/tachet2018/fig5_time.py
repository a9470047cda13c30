"""Figure 5, right: time to reach a confidence under the hinge loss and under cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .theory.confidence_times import cross_entropy_time, hinge_time
from .trained import TRAINED, ModeCurve, dots, largest_error, mode_curve

CONFIG = "tachet2018/two_classes.yaml"
U0 = 0.04
"""Initial logit y0 z0 of D_1, norm 1, in both runs."""
LEVELS = np.array([0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
"""Confidences at which trained networks are timed."""
END = 10.0
"""Time that the inset shows; the hinge network is trained until 2.5, where it has long stopped."""
SUM = "loss.reduction=sum"


@dataclass(frozen=True)
class Evidence:
    """Closed forms, and the times (2, levels) of trained networks beside them."""

    confidence: kit.Floats
    cross_entropy: kit.Floats
    hinge: kit.Floats
    trained: kit.Floats
    theory: kit.Floats
    curves: tuple[ModeCurve, ModeCurve]


def evidence(runs: kit.Runs) -> Evidence:
    """Evaluate the closed forms and time the trained networks."""
    curves = (mode_curve(runs["cross-entropy"], 1), mode_curve(runs["hinge"], 1))
    confidence = 0.5 + 0.4999 * np.linspace(0.03, 1.0, 400)
    return Evidence(
        confidence=confidence,
        cross_entropy=cross_entropy_time(1 - confidence, U0),
        hinge=hinge_time(confidence, U0),
        trained=np.array(
            [[kit.crossing(curve.t, curve.P, float(level)) for level in LEVELS] for curve in curves]
        ),
        theory=np.array([cross_entropy_time(1 - LEVELS, U0), hinge_time(LEVELS, U0)]),
        curves=curves,
    )


def claims(e: Evidence) -> list[kit.Claim]:
    entropy, hinge = e.curves
    ratios = (e.trained[1] / e.trained[0])[LEVELS >= 0.8]
    limit = float(hinge_time(1.0, U0))
    early, late = cross_entropy_time(np.array([1e-6, 1e-7]), U0)
    return [
        kit.claim(
            "times",
            "Trained networks take the time of the closed form (largest relative difference)",
            "Section 5, A.5; limit of small steps",
            kit.at_most(1e-3),
            np.abs(e.trained / e.theory - 1).max(),
        ),
        kit.claim(
            "overlay",
            "Their outputs follow Eqs. 3 and 6 (largest difference)",
            "Theorems 3.2 and 5.1, inset of Figure 5",
            kit.at_most(1e-3),
            largest_error([entropy, hinge]),
        ),
        kit.claim(
            "hinge-faster",
            "The hinge loss converges much faster: in less than half the time (largest ratio of "
            "trained times, hinge to cross-entropy, from 80 % on)",
            "Section 5, Figure 5 right",
            kit.less_than(0.5),
            ratios.max(),
        ),
        kit.claim(
            "hinge-finite",
            "t* of the hinge loss stays finite up to the confidence 1 (trained network there over"
            " closed form)",
            "Section 5, Figure 5 right",
            kit.near(1.0, 1e-3),
            kit.crossing(hinge.t, hinge.P, 1.0) / limit,
        ),
        kit.theory(
            "diverges",
            "t* of cross-entropy diverges as the confidence goes to 1 (factor per tenfold smaller "
            r"$\delta$: about 10)",
            "Section 5, Figure 5 right; Eq. 15: Ei(log(1/delta)) ~ 1 / (delta log(1/delta))",
            kit.around(10 * 6 / 7),
            late / early,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, (axes,) = kit.new_figure(aspect=0.78, extra_height=0.15)
    inset = axes.inset_axes((0.14, 0.5, 0.48, 0.44))
    times = [TRAINED]
    solutions = []
    looks = {"cross-entropy": "measured", "hinge": "C1"}
    for (name, look), exact, trained, curve in zip(
        looks.items(), (e.cross_entropy, e.hinge), e.trained, e.curves, strict=True
    ):
        times += [
            kit.line(e.confidence, exact, name, look),
            kit.line(LEVELS, trained, look=f"{look} hollow"),
        ]
        at = np.searchsorted(curve.t, np.arange(0.2, END, 0.7))
        theory = np.append(curve.P_theory, curve.P_theory[-1])
        solutions += [
            kit.line([*curve.t, END], theory, look=f"{look} 1.1"),
            dots(curve.t, curve.P, at, look),
        ]
    shown = kit.chart(
        "",
        r"time $t^*$ to reach $\delta$",
        *times,
        xlabel=r"confidence $\delta$",
        limits=(0, 30),
        limits_x=(0.5, 1.005),
    )
    handles = kit.panel(axes, 0, shown)
    axes.set_title("", loc="left")
    small = kit.chart("", r"$P_t$ or $u_t$", *solutions, log="none", xlabel="$t$")
    kit.draw_chart(inset, small)
    inset.set(xlim=(0, END), ylim=(0, 1.05), xticks=[0, 5, 10], yticks=[0, 0.5, 1])
    inset.tick_params(labelsize=6.5)
    inset.set_xlabel("$t$", fontsize=7, labelpad=0)
    inset.set_ylabel(r"$P_t$ or $u_t$", fontsize=7, labelpad=1)
    kit.figure_legend(figure, handles, columns=3)
    return figure


FIGURE = kit.Figure(
    id="tachet2018-fig5-time",
    caption=(
        "Time at which sigmoid(u) under cross-entropy, and u itself under the hinge loss, reaches a"
        " confidence. Inset: the solutions of Eqs. 3 and 6. Dots are trained networks."
    ),
    configs={
        "cross-entropy": kit.Wanted(CONFIG, (SUM, "optimizer.lr=5.0e-4")),
        "hinge": kit.Wanted(
            CONFIG,
            (
                SUM,
                "loss.kind=hinge",
                "optimizer.lr=5.0e-4",
                "optimizer.iterations=5000",
                "record.snapshots.interval=2",
            ),
        ),
    },
)
