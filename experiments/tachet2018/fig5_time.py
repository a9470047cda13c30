"""Figure 5, right: time to reach a confidence under the hinge loss and under cross-entropy.

`dyn reproduce tachet2018-fig5-time`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import PALETTE, new_figure
from dynamics_cli.reproduction.claims import Claim, around, at_most, claim, finding, less_than, near
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .curves import mode_curve, trained_handle
from .theory.confidence_times import cross_entropy_time, hinge_time
from .trained import Curve, crossing

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
    """Times in closed form and of trained networks, and the two learning curves."""

    confidence: Floats
    """(k,) from 1/2 to almost 1."""
    cross_entropy: Floats
    """(k,)"""
    hinge: Floats
    """(k,)"""
    trained: Floats
    """(2, levels) times of the trained networks: cross-entropy, hinge."""
    theory: Floats
    """(2, levels)"""
    curves: tuple[Curve, Curve]
    hinge_limit: float
    """Time at which the hinge loss is 0."""
    growth: float
    """Factor by which the time of cross-entropy grows from 1 - 1e-6 to 1 - 1e-7."""


def evidence(runs: Runs) -> Evidence:
    """Evaluate the closed forms and time the trained networks."""
    curves = (mode_curve(runs["cross-entropy"], 1), mode_curve(runs["hinge"], 1))
    confidence = 0.5 + 0.4999 * np.linspace(0.03, 1.0, 400)
    ends = cross_entropy_time(np.array([1e-6, 1e-7]), U0)
    return Evidence(
        confidence=confidence,
        cross_entropy=cross_entropy_time(1 - confidence, U0),
        hinge=hinge_time(confidence, U0),
        trained=np.array([[crossing(one.t, one.P, float(level)) for level in LEVELS] for one in curves]),
        theory=np.array([cross_entropy_time(1 - LEVELS, U0), hinge_time(LEVELS, U0)]),
        curves=curves,
        hinge_limit=float(hinge_time(1.0, U0)),
        growth=float(ends[1] / ends[0]),
    )


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5."""
    entropy, hinge = found.curves
    high = found.confidence >= 0.8
    return [
        claim(
            "times",
            "Trained networks take the time of the closed form (largest relative difference)",
            "Section 5, A.5; limit of small steps",
            expected=at_most(1e-3),
            measured=float(np.abs(found.trained / found.theory - 1).max()),
        ),
        claim(
            "overlay",
            "Their outputs follow Eqs. 3 and 6 (largest difference)",
            "Theorems 3.2 and 5.1, inset of Figure 5",
            expected=at_most(1e-3),
            measured=max(entropy.error, hinge.error),
        ),
        claim(
            "hinge-faster",
            "The hinge loss converges much faster (largest ratio of the times, hinge to cross-entropy, from 80 % on)",
            "Section 5, Figure 5 right",
            expected=less_than(1),
            measured=float((found.hinge / found.cross_entropy)[high].max()),
        ),
        claim(
            "hinge-finite",
            "t* of the hinge loss stays finite up to the confidence 1 (trained network there over closed form)",
            "Section 5, Figure 5 right",
            expected=near(1.0, 1e-3),
            measured=crossing(hinge.t, hinge.P, 1.0) / found.hinge_limit,
        ),
        claim(
            "diverges",
            "t* of cross-entropy diverges as the confidence goes to 1 (factor per tenfold smaller delta: about 10)",
            "Section 5, Figure 5 right; Eq. 15: Ei(log(1/delta)) ~ 1 / (delta log(1/delta))",
            expected=around(10 * 6 / 7),
            measured=found.growth,
        ),
        finding("hinge-time", "Time at which the hinge loss is 0 (u0 = 0.04)", "Eq. 6", measured=found.hinge_limit),
        finding(
            "low",
            "At low confidence cross-entropy is ahead: largest confidence at which its time is the shorter one",
            "Figure 5 right",
            measured=float(found.confidence[found.cross_entropy < found.hinge].max(initial=0.5)),
        ),
    ]


def draw(found: Evidence) -> Drawing:
    """Draw times against confidence, and the two solutions as an inset."""
    figure, (axes,) = new_figure(aspect=0.78, extra_height=0.15)
    lines = []
    for k, (times, name, color) in enumerate(_series(found)):
        lines += axes.plot(found.confidence, times, color=color, label=name)
        axes.plot(LEVELS, found.trained[k], "o", ms=3, mfc="white", mec=color, mew=0.9)
    axes.set(xlim=(0.5, 1.005), ylim=(0, 30), xlabel=r"confidence $\delta$", ylabel=r"time $t^*$ to reach $\delta$")
    _inset(axes.inset_axes((0.14, 0.5, 0.48, 0.44)), found)
    figure_legend(figure, [*lines, trained_handle()], columns=3)
    return figure


def _series(found: Evidence) -> list[tuple[Floats, str, str]]:
    return [
        (found.cross_entropy, "cross-entropy", PALETTE.measured),
        (found.hinge, "hinge", PALETTE.highlight),
    ]


def _inset(axes: Axes, found: Evidence) -> None:
    for curve, (_, _, color) in zip(found.curves, _series(found), strict=True):
        axes.plot(np.append(curve.t, END), np.append(curve.P_theory, curve.P_theory[-1]), color=color, lw=1.1)
        dots = np.searchsorted(curve.t, np.arange(0.2, END, 0.7))
        dots = dots[dots < len(curve.t)]
        axes.plot(curve.t[dots], curve.P[dots], "o", ms=2, mfc="white", mec=color, mew=0.7)
    axes.set(xlim=(0, END), ylim=(0, 1.05), xticks=[0, 5, 10], yticks=[0, 0.5, 1])
    axes.tick_params(labelsize=6.5)
    axes.set_xlabel("$t$", fontsize=7, labelpad=0)
    axes.set_ylabel(r"$P_t$ or $u_t$", fontsize=7, labelpad=1)


FIGURE = Figure(
    id="tachet2018-fig5-time",
    caption=(
        "Time at which sigmoid(u) under cross-entropy, and u itself under the hinge loss, reaches a confidence. Inset: "
        "the solutions of Eqs. 3 and 6. Dots are trained networks."
    ),
    configs={
        "cross-entropy": Wanted(CONFIG, (SUM, "optimizer.lr=5.0e-4")),
        "hinge": Wanted(
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
    origin={"losses": "stated", "norm": "assumed", "u0": "assumed", "step": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
