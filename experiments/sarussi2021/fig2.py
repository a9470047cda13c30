"""Figure 2: MNIST pairs (0, 1) and (3, 5), clustering ratio and points outside the linear regime against epochs.

`dyn reproduce sarussi2021-fig2`. About 10 s, nearly all of them training. Beside the paper's two pairs: how the result
for (3, 5) depends on the slope of leaky ReLU, which the paper does not print.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.layout import figure_legend, panel_label, place_legend
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .curves import DASHED, Curve, draw_over_epochs
from .trajectory import ORIGIN, SMALL, Clustering, clustering

PAIRS = {"0-1": "(0, 1)", "3-5": "(3, 5)"}
SLOPES = (0.2, 0.35, 0.5, 0.65, 0.8)
ASSUMED = 0.5
"""The slope at which the claims about (3, 5) are checked, that of the config."""


@dataclass(frozen=True)
class Evidence:
    """Clustering of both pairs, and of (3, 5) for several slopes."""

    pairs: Mapping[str, Clustering]
    slopes: Mapping[float, Clustering]
    small_step: Clustering
    """(3, 5) with slope 0.2 and a tenth of the step."""


def evidence(runs: Runs) -> Evidence:
    """Measure ratio and shares at every epoch."""
    pairs = {name: clustering(runs[name]) for name in PAIRS}
    slopes = {slope: pairs["3-5"] if slope == ASSUMED else clustering(runs[role(slope)]) for slope in SLOPES}
    return Evidence(pairs, slopes, clustering(runs["small-step"]))


def role(slope: float) -> str:
    """Return the role of the run of (3, 5) with a slope."""
    return f"3-5-slope-{slope:g}"


def claims(found: Evidence) -> list[Claim]:
    """Compare the last shares with Section 5.1; the other slopes are findings."""
    listed = []
    for name, title in PAIRS.items():
        one = found.pairs[name]
        for part, share in (("training", one.outside_train), ("held-out", one.outside_test)):
            listed.append(
                claim(
                    f"{name}-{part}",
                    f"Digits {title}: the share of {part} points outside the linear regime converges to zero",
                    "Section 5.1, Figure 2",
                    expected=less_than(SMALL),
                    measured=float(share[-1]),
                )
            )
        listed.append(
            finding(f"{name}-ratio", f"Digits {title}: final clustering ratio", "Eq. 7", measured=float(one.ratio[-1]))
        )
    for slope, one in found.slopes.items():
        text = f"Digits (3, 5), slope {slope:g}: share of training points outside the linear regime"
        last, least = float(one.outside_train[-1]), int(one.outside_train.argmin())
        listed.append(finding(f"slope-{slope:g}", f"{text} at the end", "slope not printed", measured=last))
        note = f"{text}, least of all epochs (epoch {one.epochs[least]:g})"
        listed.append(
            finding(f"slope-{slope:g}-least", note, "slope not printed", measured=float(one.outside_train[least]))
        )
    usual = found.slopes[SLOPES[0]]
    at = int(abs(usual.epochs - found.small_step.epochs[-1] / 10).argmin())
    for key, text, share in (
        ("small-step", "a tenth of the step", found.small_step.outside_train[-1]),
        ("usual-step", f"the usual step after the same time (epoch {usual.epochs[at]:g})", usual.outside_train[at]),
    ):
        note = f"Digits (3, 5), slope {SLOPES[0]:g}: share of training points outside the linear regime, {text}"
        listed.append(finding(key, note, "step not printed", measured=float(share)))
    return listed


def draw(found: Evidence) -> Drawing:
    """Draw ratio, shares, and the dependence on the slope."""
    figure, axes = new_figure(3, 1, width=7.0, aspect=0.85, extra_height=0.3)
    colors = dict(zip(PAIRS, SERIES, strict=False))
    pairs = found.pairs.items()
    ratio = [Curve(one.epochs, one.ratio, f"digits {PAIRS[name]}", colors[name]) for name, one in pairs]
    handles = draw_over_epochs(axes[0], ratio, r"ratio $2r/\|\bar w-\bar u\|$", log=True)
    panel_label(axes[0], 0, "clustering ratio")
    train = [Curve(one.epochs, one.outside_train, f"{PAIRS[name]} training", colors[name]) for name, one in pairs]
    test = [Curve(one.epochs, one.outside_test, f"{PAIRS[name]} held-out", colors[name], DASHED) for name, one in pairs]
    handles = draw_over_epochs(axes[1], [*train, *test], "share outside", share=True)
    panel_label(axes[1], 1, "points outside linear regime")
    shades = dict(zip(SLOPES, ("#440154", "#3B528B", "#21918C", "#5EC962", "#D9B600"), strict=True))
    slopes = [Curve(one.epochs, one.outside_train, f"{s:g}", shades[s]) for s, one in found.slopes.items()]
    lines = draw_over_epochs(axes[2], slopes, "share outside", share=True)
    legend = place_legend(axes[2], lines, "inside", columns=1)
    if legend is not None:
        legend.set_title(r"slope $\alpha$")
    panel_label(axes[2], 2, "(3, 5) training, by slope")
    figure_legend(figure, handles, columns=4)
    return figure


FIGURE = Figure(
    id="sarussi2021-fig2",
    caption=(
        "Clustering ratio 2r/||w_bar - u_bar|| (a) and share of training and held-out points outside the linear regime "
        "of Theorem 5.1 (b) against epochs, for two pairs of digits and small initialisation; (c), not in the paper: "
        "the share of training points for digits (3, 5) and several slopes of leaky ReLU."
    ),
    configs={
        "0-1": "sarussi2021/mnist_01.yaml",
        "3-5": "sarussi2021/mnist_35.yaml",
        **{
            role(slope): Wanted("sarussi2021/mnist_35.yaml", (f"architecture.slope={slope:g}",))
            for slope in SLOPES
            if slope != ASSUMED
        },
        "small-step": Wanted(
            "sarussi2021/mnist_35.yaml",
            (
                f"architecture.slope={SLOPES[0]:g}",
                "optimizer.lr=0.001",
                "optimizer.epochs=200",
                "record.snapshots.interval=20000",
            ),
        ),
    },
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
