"""Figure 6: Figure 2 for more pairs of digits.

`dyn reproduce sarussi2021-fig6`. About 11 s, nearly all of them training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, finding, less_than
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .curves import DASHED, Curve, draw_over_epochs
from .trajectory import ORIGIN, SMALL, Clustering, clustering

PAIRS = ((1, 7), (2, 3), (4, 9), (5, 8), (6, 0))
"""The captions that say which pairs the paper shows are lost; these cover all ten digits."""
STEEP = 0.8
"""A second slope, nearer to a linear network: what becomes of the pairs that fail at that of the config, 0.5."""


@dataclass(frozen=True)
class Evidence:
    """Clustering of every pair."""

    pairs: Mapping[tuple[int, int], Clustering]
    steep: Mapping[tuple[int, int], Clustering]
    """The same with slope `STEEP`."""


def role(pair: tuple[int, int], steep: bool = False) -> str:
    """Return the role of the run of a pair of digits."""
    return f"{pair[0]}-{pair[1]}" + (f"-slope-{STEEP:g}" if steep else "")


def wanted(pair: tuple[int, int], *more: str) -> Wanted:
    """Return the run of a pair of digits."""
    return Wanted("sarussi2021/mnist_35.yaml", (f"dataset.digits=[{pair[0]}, {pair[1]}]", *more))


def evidence(runs: Runs) -> Evidence:
    """Measure ratio and shares at every epoch."""
    first, second = ({pair: clustering(runs[role(pair, steep)]) for pair in PAIRS} for steep in (False, True))
    return Evidence(first, second)


def claims(found: Evidence) -> list[Claim]:
    """Compare the last shares with Appendix D.2."""
    listed = []
    for pair, one in found.pairs.items():
        for part, share in (("training", one.outside_train), ("held-out", one.outside_test)):
            listed.append(
                claim(
                    f"{role(pair)}-{part}",
                    f"Digits {pair}: the network enters the linear regime (share of {part} points outside)",
                    "Appendix D.2, Figure 6",
                    expected=less_than(SMALL),
                    measured=float(share[-1]),
                )
            )
        ratio = float(one.ratio[-1])
        steep = found.steep[pair]
        for part, share in (("training", steep.outside_train), ("held-out", steep.outside_test)):
            text = f"Digits {pair}, slope {STEEP:g}: share of {part} points outside the linear regime"
            last = float(share[-1])
            listed.append(finding(f"{role(pair, True)}-{part}", text, "slope not printed", measured=last))
        listed.append(finding(f"{role(pair)}-ratio", f"Digits {pair}: final clustering ratio", "Eq. 7", measured=ratio))
    return listed


def draw(found: Evidence) -> Drawing:
    """Draw ratio, shares, and shares for the second slope."""
    figure, axes = new_figure(3, 1, width=7.0, aspect=0.85, extra_height=0.45)
    colors = dict(zip(PAIRS, SERIES, strict=False))
    ratio = [Curve(one.epochs, one.ratio, str(pair), colors[pair]) for pair, one in found.pairs.items()]
    draw_over_epochs(axes[0], ratio, r"ratio $2r/\|\bar w-\bar u\|$", log=True)
    panel_label(axes[0], 0, "clustering ratio")
    for k, (shown, title) in enumerate(
        ((found.pairs, "outside, slope 0.5"), (found.steep, f"outside, slope {STEEP:g}")), 1
    ):
        curves = []
        for pair, one in shown.items():
            curves.append(Curve(one.epochs, one.outside_train, f"{pair} training", colors[pair]))
            curves.append(Curve(one.epochs, one.outside_test, f"{pair} held-out", colors[pair], DASHED))
        lines = draw_over_epochs(axes[k], curves, "share outside", share=True)
        panel_label(axes[k], k, title)
    figure_legend(figure, lines, columns=5)
    return figure


FIGURE = Figure(
    id="sarussi2021-fig6",
    caption=(
        "Clustering ratio (a) and share of training and held-out points outside the linear regime (b) against epochs, "
        "for further pairs of digits and slope 0.5; (c), not in the paper: the shares for slope 0.8."
    ),
    configs={
        **{role(pair): wanted(pair) for pair in PAIRS},
        **{role(pair, True): wanted(pair, f"architecture.slope={STEEP:g}") for pair in PAIRS},
    },
    origin=ORIGIN | {"pairs": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
