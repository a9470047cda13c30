"""Theorem 4.1, SGD has a small loss after a bounded number of epochs from any start; Appendix K,
a bias changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import InfeasibleError, least_distance
from dynamics_cli.plotting.scene import draw_scene

from .groups import (
    ALIKE,
    ANY_SLOPE,
    LINEAR,
    SEPARABLE,
    SLIPS,
    SMALL,
    SOON,
    Groups,
    Plane,
    plane,
    read_groups,
)
from .theory.clustering import outside_linear_regime, signs_differ
from .theory.convergence import epochs_bound

CONFIG = "sarussi2021/gaussians.yaml"
SCALES = {"small": 1e-3, "one": 1.0, "large": 10.0, "huge": 100.0}
"""Role -> initial scale."""
EPSILONS = np.array([0.1, 0.03, 0.01, 0.003, 0.001, 0.0003])
"""Losses to be reached; every start is above the first."""


def with_bias() -> kit.Wanted:
    """Return the run on two Gaussians on one ray from the origin, which no line through the
    origin separates.
    """
    rng = np.random.default_rng(0)
    near, far = (np.round(rng.normal((first, 0.0), 0.35, (50, 2)), 3) for first in (1.5, 3.5))
    x = json.dumps(np.concatenate([near, far]).tolist())
    y = [1.0] * 50 + [-1.0] * 50
    return kit.Wanted(
        CONFIG,
        ("dataset.kind=points", f"dataset.x={x}", f"dataset.y={y}", "dataset.append_bias=true"),
    )


@dataclass(frozen=True)
class Followed:
    """The losses that a run reaches."""

    epochs: kit.Floats
    """After which the mean loss has been at most each of `EPSILONS`; NaN for never."""
    bound: kit.Floats
    """The number of epochs that the proof gives for each of `EPSILONS`."""
    least: float
    """The least mean loss."""


@dataclass(frozen=True)
class Evidence:
    """Runs of all scales, and the run with a bias."""

    followed: Mapping[str, Followed]
    """By scale."""
    plane: Plane
    """Of the run with a bias, as all that follows."""
    needed: bool
    """Whether no line through the origin separates its points."""
    bias_loss: float
    """The mean loss at the end."""
    bias_outside: float
    """Share of points outside the linear regime at the end."""
    bias_differ: int
    """Points that the network and the classifier `w_bar - u_bar` decide differently."""


def evidence(runs: kit.Runs) -> Evidence:
    """Count epochs to each loss of `EPSILONS` by scale, beside the bound, and read the run with
    a bias.
    """
    followed = {role: _follow(runs[role]) for role in SCALES}
    biased = read_groups(runs["bias"])
    points = biased.data.x
    try:
        least_distance(biased.data.y[:, None] * points[:, :2])
        needed = False
    except InfeasibleError:
        needed = True
    return Evidence(
        followed=followed,
        plane=plane(biased),
        needed=needed,
        bias_loss=float(_losses(biased)[-1]),
        bias_outside=float(outside_linear_regime(points, *biased.last).mean()),
        bias_differ=int(signs_differ(points, *biased.last, biased.alpha).sum()),
    )


def _losses(groups: Groups) -> kit.Floats:
    """Return the mean loss at all states (K,)."""
    return np.asarray(np.logaddexp(0.0, -groups.margins).mean(axis=-1))


def _follow(run: kit.Run) -> Followed:
    """Count the epochs of a run to each of `EPSILONS`, beside the bound."""
    groups = read_groups(run)
    losses = _losses(groups)
    reached = [losses <= epsilon for epsilon in EPSILONS]
    epochs = [groups.epochs[np.argmax(below)] if below.any() else np.nan for below in reached]
    bound = epochs_bound(
        EPSILONS,
        groups.data.x,
        groups.data.y,
        np.concatenate([groups.W[0], groups.U[0]]),
        alpha=groups.alpha,
        v=groups.v,
        lr=run.config.optimizer.lr,  # type: ignore[attr-defined]
    )
    return Followed(epochs=np.array(epochs), bound=bound, least=float(losses.min()))


def power(epochs: kit.Floats) -> float:
    """Return the fitted power with which epochs grow in `1 / EPSILONS`; NaN if one is not reached.

    A large start may have these losses at once: 0 epochs fit no power, and grow with none.
    """
    if not np.isfinite(epochs).all():
        return np.nan
    later = epochs > 0
    if np.count_nonzero(later) < 2:
        return 0.0
    return kit.power(1 / EPSILONS[later], epochs[later])


def claims(e: Evidence) -> list[kit.Claim]:
    late = e.plane.groups.late[-1]
    ratios = np.array([run.epochs / run.bound for run in e.followed.values()])
    powers = [power(run.epochs) for run in e.followed.values()]
    return [
        *[
            kit.claim(
                f"reached-{role}",
                f"Initial scale {scale:g}: SGD reaches a loss of {EPSILONS[-1]:g} (least mean"
                " loss)",
                "Theorem 4.1: any initialisation scale",
                kit.at_most(float(EPSILONS[-1])),
                e.followed[role].least,
            )
            for role, scale in SCALES.items()
        ],
        kit.claim(
            "bound",
            "It does so within the number of epochs that the proof gives (largest share of the"
            " bound, all scales and losses)",
            "Theorem 4.1, Appendix B; constants derived again, see epochs_bound",
            kit.at_most(1.0),
            ratios.max(),
        ),
        kit.claim(
            "polynomial",
            r"Epochs grow with a power of $1/\epsilon$ not above that of the bound (largest fitted"
            r" power)",
            "Theorem 4.1, Appendix B",
            kit.at_most(2.0),
            np.max(powers),
        ),
        kit.theory(
            "bias-needed",
            "No line through the origin separates the second data set (1: none)",
            "Appendix K",
            kit.exactly(1),
            e.needed,
        ),
        kit.claim(
            "bias-separated",
            "With a bias SGD separates it (training accuracy)",
            "Theorem 4.1, Appendix K",
            kit.exactly(1),
            e.plane.groups.accuracy,
        ),
        kit.claim(
            "bias-outside",
            "With a bias and a small start no point ends outside the linear regime (share)",
            "Section 5.1, Appendix K",
            kit.less_than(SMALL),
            kit.given(late, e.bias_outside),
        ),
        kit.claim(
            "bias-linear",
            r"Its network decides as the classifier $\bar w - \bar u$ (points decided differently)",
            "Theorem 5.1, Appendix K",
            kit.exactly(0),
            kit.given(late, e.bias_differ),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the epochs to the smallest loss by scale, the bound, and the final loss with a
    bias.
    """
    epochs = {
        f"scale {scale:g}: epochs to a loss of {EPSILONS[-1]:g}": float(e.followed[role].epochs[-1])
        for role, scale in SCALES.items()
    }
    bound = {"bound of the smallest scale": float(e.followed["small"].bound[-1])}
    return {**epochs, **bound, "final loss with a bias": e.bias_loss}


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.85, extra_height=0.3)
    handles = kit.panel(
        axes[0],
        0,
        kit.chart(
            "Epochs to a loss",
            "epochs",
            [
                kit.line(EPSILONS, e.followed[role].epochs, f"scale {scale:g}", "joined")
                for role, scale in SCALES.items()
            ],
            kit.line(
                EPSILONS, e.followed["small"].bound, "bound, small scale", "theory dashed 1.2"
            ),
            xlabel=r"loss $\epsilon$",
            log="xy",
        ),
    )
    axes[0].invert_xaxis()
    handles += draw_scene(axes[1], e.plane.regions, 0).handles
    kit.panel_label(axes[1], 1, "With a bias")
    kit.figure_legend(figure, handles, columns=4)
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-theorem41",
    caption=(
        "Not a figure of the paper: (a) epochs of SGD after which the mean loss has been below a"
        " value, for four initial scales, and the number that the proof of Theorem 4.1 gives. (b) A"
        " network with a bias on two classes that no line through the origin separates"
        " (Appendix K)."
    ),
    configs={
        **{
            role: kit.Wanted(CONFIG, () if scale == 1e-3 else (f"initialization.scale={scale:g}",))
            for role, scale in SCALES.items()
        },
        "bias": with_bias(),
    },
    nulls={"data": SLIPS},
    passes={
        "linear": {
            "reached-* bound polynomial": ANY_SLOPE,
            "bias-separated": SEPARABLE,
            "bias-outside": ALIKE,
            "bias-linear": LINEAR,
        },
        "early": {"bias-separated": SOON},
        "slow": {"bias-separated": SOON},
    },
)
