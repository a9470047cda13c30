"""Words on panels: letters and titles, notes, legends outside the data, numbers and ticks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from dynamics_cli.plotting.style import PALETTE, SMALL, styled

LegendPlace = Literal["below", "inside", "none"]
"""`below` the panel (never covers data), `inside` where Matplotlib finds the emptiest corner, or no
legend.
"""

THIN_SPACE = "\N{THIN SPACE}"
FEW_DECADES = 2.5
"""Decades of a logarithmic axis with too few powers of ten for its labels."""
ROOM = 40
"""Characters of all labels of an axis, with gaps."""
MINUS = "\N{MINUS SIGN}"


def format_number(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` significant digits, `3.51e-6`; a whole number as `300 000`."""
    if value == int(value) and abs(value) < 1e9:
        text = f"{int(value):,}".replace(",", THIN_SPACE)
    else:
        text = re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.{digits}g}")
    return text.replace("-", MINUS)


@styled
def panel_label(axes: Axes, letter: str | int, title: str = "") -> Text:
    """Write `(a) title` above the left end of the panel. `letter` may be its number, 0 for a."""
    if isinstance(letter, int):
        letter = chr(ord("a") + letter)
    return axes.set_title(f"({letter}) {title}".rstrip(), loc="left")


def panel_labels(axes: Iterable[Axes], *titles: str) -> None:
    """Write `(a) title`, `(b) title`, ... above panels, one for each title."""
    for k, (panel, title) in enumerate(zip(axes, titles, strict=False)):
        panel_label(panel, k, title)


@styled
def note(axes: Axes, text: str) -> Text:
    """Add a short remark in brackets to the x label, where it covers nothing."""
    return axes.set_xlabel(f"{axes.get_xlabel()}  ({text})")


@styled
def figure_note(figure: Figure, parts: Iterable[str]) -> None:
    """Write what readers must know above all panels, in small grey letters."""
    text = textwrap.fill("; ".join(filter(None, parts)), round(14.5 * figure.get_figwidth()))
    if text:
        figure.suptitle(text, fontsize=SMALL, color=PALETTE.unsigned)
        lines = 1 + text.count("\n")  # which panels need not make room for
        figure.set_figheight(figure.get_figheight() + lines * 1.3 * SMALL / 72)


def ticks_at(values: Iterable[float], *, log: bool = False, room: float = ROOM) -> dict[float, str]:
    """Return labels of ticks at these values, none where some would touch in so many characters.

    On a logarithmic axis of less than `FEW_DECADES`, where few powers of ten are, every second or
    third has a label.
    """
    at = np.array(sorted(values), np.float64)
    names = [format_number(value) for value in at]
    if len(at) < 2 or (log and at[0] <= 0):
        return dict(zip(at.tolist(), names, strict=True))
    places = np.log10(at) if log else at
    places = (places - places[0]) / (places[-1] - places[0]) * room
    widths = np.array([len(name) for name in names])
    few = log and at[-1] <= 10**FEW_DECADES * at[0]
    for step in range(1, len(at) if few else 2):
        gaps = np.diff(places[::step]) - (widths[::step][1:] + widths[::step][:-1]) / 2
        if (gaps >= 1).all():
            return dict(zip(at[::step].tolist(), names[::step], strict=True))
    return {}


def set_axis_label(axis: Axis, label: str, limits: tuple[float, float]) -> None:
    """Label an axis of few round ticks; beyond 0.001 and 10 000 the label has a power of ten.

    `limits` are those that the axis has or will have. (Matplotlib's own "1e-5" sits where titles
    are.)
    """
    largest = max(map(abs, limits))
    power = 0
    if 0 < largest < np.inf and not 1e-3 <= largest < 1e4:
        power = int(np.floor(np.log10(largest)))
        label = rf"{label} [$10^{{{power}}}$]"
    axis.set_major_locator(
        MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10], symmetric=limits[0] == -limits[1])
    )
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{round(value / 10.0**power, 9):.6g}".replace("-", MINUS))
    )
    axis.set_label_text(label)


@styled
def place_legend(
    axes: Axes, handles: Sequence[Artist], where: LegendPlace = "below", *, columns: int = 2
) -> Legend | None:
    """Add a legend of `handles`; `below` it hangs 29 points under the axes, clear of labels."""
    if not handles or where == "none":
        return None
    if where == "inside":
        return axes.legend(handles=list(handles), loc="best")
    shift = ScaledTranslation(0, -29 / 72, axes.figure.dpi_scale_trans)
    return axes.legend(
        handles=list(handles),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + shift,
        ncols=min(columns, len(handles)),
        borderaxespad=0.0,
    )


@styled
def figure_legend(figure: Figure, handles: Sequence[Artist], *, columns: int = 4) -> Legend | None:
    """Add one legend for all panels under the figure; of equal labels the first handle stays."""
    by_label: dict[str, Artist] = {}
    for handle in handles:
        by_label.setdefault(str(handle.get_label()), handle)
    if not by_label:
        return None
    return figure.legend(
        handles=[*by_label.values()],
        loc="outside lower center",
        ncols=min(columns, len(by_label)),
    )
