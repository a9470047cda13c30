"""Results as HTML for notebooks: small tables, curves and pictures, without a script."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

WIDTH = 320
HEIGHT = 120
"""Pixels of curves."""
MARGIN = 6
POINTS = 400
"""Points of a curve that are drawn at most."""
CURVES = 20
"""Curves that are drawn at most."""
DECADES = 3.0
"""Positive values that span more are drawn on a logarithmic axis."""
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of the curves, in turn."""
_WORD = re.compile(r"\W*[^\W\d]")


def html_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; the cells are escaped.

    Notebooks align cells to the right. A column that begins with a word is aligned to the left.
    """
    cells = list(rows)
    left = [bool(_WORD.match(str(cell))) for cell in (cells or [()])[0]]
    lines = [_row("th", header, left)] if header else []
    lines += [_row("td", row, left) for row in cells]
    return f"<table>{''.join(lines)}</table>"


def _row(name: str, cells: Sequence[object], left: Sequence[bool]) -> str:
    inside = ""
    for cell, at_left in zip_longest(cells, left):
        style = ' style="text-align:left"' if at_left else ""
        inside += f"<{name}{style}>{escape(str(cell))}</{name}>"
    return f"<tr>{inside}</tr>"


def html_curves(curves: Sequence[tuple[Any, Any]], title: str) -> str:
    """Return curves, each x and y of equal length, on common axes whose ends are written.

    Nothing is returned without finite numbers. Where y is positive and spans many decades, its
    axis is logarithmic.
    """
    drawn = [_thinned(x, y) for x, y in curves[:CURVES]]
    points = [point for curve in drawn for point in curve if math.isfinite(point[1])]
    if not points:
        return ""
    values = [y for _, y in points]
    low = min(values)
    high = max(values)
    log = spans_decades(low, high)
    left = min(x for x, _ in points)
    right = max(x for x, _ in points)

    def place(x: float, y: float) -> str:
        share = _share(math.log(y), math.log(low), math.log(high)) if log else _share(y, low, high)
        across = MARGIN + (WIDTH - 2 * MARGIN) * _share(x, left, right)
        down = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share
        return f"{across:.1f},{down:.1f}"

    lines = []
    for k, curve in enumerate(drawn):
        for piece in _finite_pieces(curve):
            color = COLORS[k % len(COLORS)]
            path = " ".join(place(x, y) for x, y in piece)
            lines.append(
                f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>'
            )
    axis = "logarithmic, " if log else ""
    caption = f"{title}: {axis}{low:.3g} to {high:.3g}, iteration {left:g} to {right:g}"
    said = escape(caption)
    axes = (
        f'<path d="M2 2V{HEIGHT - 2}H{WIDTH - 2}" fill="none" stroke="currentColor"'
        ' stroke-opacity="0.4"/>'
    )
    picture = (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{said}">{axes}{"".join(lines)}</svg>'
    )
    return f'<figure style="margin:0 0 8px">{picture}<figcaption>{said}</figcaption></figure>'


def spans_decades(low: float, high: float) -> bool:
    """Return whether values from `low` to `high` are drawn on a logarithmic axis."""
    return low > 0 and math.log10(high) - math.log10(low) > DECADES


def _thinned(x: Any, y: Any) -> list[tuple[float, float]]:
    """Return some points of a curve, evenly spread, first and last among them."""
    last = len(x) - 1
    if last < POINTS:
        chosen = range(len(x))
        return [(float(x[i]), float(y[i])) for i in chosen]
    return [
        (float(x[i]), float(y[i]))
        for i in sorted({round(k * last / (POINTS - 1)) for k in range(POINTS)})
    ]


def _share(value: float, low: float, high: float) -> float:
    if high == low:
        return 0.5
    return (value - low) / (high - low)


def _finite_pieces(curve: Sequence[tuple[float, float]]) -> list[Sequence[tuple[float, float]]]:
    """Return the stretches of a curve between numbers that are not finite."""
    gaps = [i for i, (_, y) in enumerate(curve) if not math.isfinite(y)]
    pieces = [curve[first + 1 : last] for first, last in pairwise([-1, *gaps, len(curve)])]
    return [piece for piece in pieces if piece]


def html_picture(file: Path) -> str:
    """Return a PNG file as a picture of the page itself."""
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    return f'<img src="{source}" alt="{escape(file.stem)}" style="max-width:100%"/>'


class Explanation(str):
    """A text that a notebook shows line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"
