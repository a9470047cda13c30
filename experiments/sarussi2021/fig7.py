"""Figure 7: two measures of clustering against epochs, MNIST pairs (0, 1) and (3, 5).

`dyn reproduce sarussi2021-fig7`. About 4 s, nearly all of them training; the runs are those of Figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, Interval, claim, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .curves import Curve, draw_over_epochs
from .fig2 import PAIRS
from .trajectory import ORIGIN, Clustering, clustering

ZERO = Interval(None, 0.1, "around 0: <= 10 % of the initial value")


@dataclass(frozen=True)
class Evidence:
    """Clustering of both pairs."""

    pairs: Mapping[str, Clustering]


def evidence(runs: Runs) -> Evidence:
    """Measure both at every epoch."""
    return Evidence({name: clustering(runs[name]) for name in PAIRS})


def claims(found: Evidence) -> list[Claim]:
    """Compare both measures with Appendix D.3."""
    listed = []
    for name, one in found.pairs.items():
        measures: dict[str, tuple[str, Floats]] = {
            "ratio": ("ratio 2r/||w_bar - u_bar||", one.ratio),
            "angle": ("largest angle within a group, degrees", one.angle),
        }
        for key, (text, values) in measures.items():
            listed.append(
                claim(
                    f"{name}-{key}",
                    f"Digits {PAIRS[name]}: {text}, converges to zero (final over initial value)",
                    "Appendix D.3, Figure 7",
                    expected=ZERO,
                    measured=float(values[-1] / values[0]),
                )
            )
            at_end = f"Digits {PAIRS[name]}: {text}, at the end"
            listed.append(finding(f"{name}-{key}-last", at_end, "Figure 7", measured=float(values[-1])))
    return listed


def draw(found: Evidence) -> Drawing:
    """Draw the ratio on the left, the angle on the right."""
    figure, axes = new_figure(2, 1, aspect=0.75, extra_height=0.25)
    colored = [(PAIRS[name], one, color) for (name, one), color in zip(found.pairs.items(), SERIES, strict=False)]
    ratio = [Curve(one.epochs, one.ratio, f"digits {name}", color) for name, one, color in colored]
    lines = draw_over_epochs(axes[0], ratio, r"ratio $2r/\|\bar w-\bar u\|$", log=True)
    panel_label(axes[0], 0, "clustering ratio")
    angle = [Curve(one.epochs, one.angle, f"digits {name}", color) for name, one, color in colored]
    draw_over_epochs(axes[1], angle, "largest angle (degrees)", log=True)
    panel_label(axes[1], 1, "largest angle in a group")
    figure_legend(figure, lines, columns=2)
    return figure


FIGURE = Figure(
    id="sarussi2021-fig7",
    caption=(
        "Clustering ratio 2r/||w_bar - u_bar|| (a) and largest angle between two neurons of one group (b) against "
        "epochs for two pairs of digits."
    ),
    configs={"0-1": "sarussi2021/mnist_01.yaml", "3-5": "sarussi2021/mnist_35.yaml"},
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
