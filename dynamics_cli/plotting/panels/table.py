"""Tables as figures: three rules, no boxes, columns as wide as their text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dynamics_cli.plotting.layout import text_size
from dynamics_cli.plotting.style import TEXT_WIDTH, styled

FONT = 8.0
ROW_GAP = 5.0
COLUMN_GAP = 12.0
MARGIN = 6.0


@styled
def draw_table(
    axes: Axes,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    align: str | None = None,
    width: float = TEXT_WIDTH,
) -> tuple[float, float]:
    """Draw a table with one line of `header` and the given `rows`, at most `width` inches wide where words allow it.

    `align` is one of `l`, `c`, `r` for each column (default: the first left, the others right where they hold only
    numbers, else left). Long cells are broken into lines. The axes are used for their coordinates only: x and y become
    points from the top left corner; their ends are returned. Raises ValueError for rows of unequal lengths.
    """
    columns = len(header)
    if columns == 0 or any(len(row) != columns for row in rows):
        raise ValueError(f"every row of a table with {columns} columns must have as many cells")
    align = align or _alignment(header, rows)
    if len(align) != columns or set(align) - set("lcr"):
        raise ValueError(f"align must be {columns} letters out of l, c and r, not {align!r}")
    widths = _column_widths([header, *rows], width * 72 - 2 * MARGIN)
    lines = [[_wrap(cell, w) for cell, w in zip(row, widths, strict=True)] for row in [header, *rows]]
    total = sum(widths) + COLUMN_GAP * (columns - 1) + 2 * MARGIN

    axes.axis("off")
    y, edges = MARGIN, [MARGIN / 2]
    for number, row in enumerate(lines):
        height = max(text_size(cell or " ", FONT)[1] for cell in row)
        _draw_row(axes, row, widths, align, y + height / 2, bold=number == 0)
        y += height + ROW_GAP
        if number == 0:
            edges.append(y - ROW_GAP / 2 + 0.5)
            y += 2.0
    edges.append(y - ROW_GAP / 2)
    for edge, weight in zip(edges, (1.0, 0.5, 1.0), strict=True):
        axes.plot([0, total], [edge, edge], color="black", lw=weight, clip_on=False)
    axes.set(xlim=(0, total), ylim=(y, 0))
    return total, y


@styled
def table_figure(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str | None = None, width: float = TEXT_WIDTH
) -> Figure:
    """Return a figure of exactly the size that the table of `draw_table` needs."""
    figure = Figure(figsize=(1, 1))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    points = draw_table(axes, header, rows, align=align, width=width)
    figure.set_size_inches(points[0] / 72, points[1] / 72)
    return figure


def _draw_row(axes: Axes, row: Sequence[str], widths: Sequence[float], align: str, y: float, *, bold: bool) -> None:
    x = MARGIN
    for cell, width, how in zip(row, widths, align, strict=True):
        at, ha = {"l": (x, "left"), "c": (x + width / 2, "center"), "r": (x + width, "right")}[how]
        weight = "bold" if bold else "normal"
        axes.text(at, y, cell, ha=ha, va="center", fontsize=FONT, fontweight=weight, clip_on=False)
        x += width + COLUMN_GAP


def _alignment(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return `r` for the columns, after the first, that hold only numbers."""
    return "l" + "".join(
        "r" if rows and all(_is_number(row[k]) for row in rows) else "l" for k in range(1, len(header))
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("\N{MINUS SIGN}", "-").replace("\N{THIN SPACE}", "") or "0")
    except ValueError:
        return False
    return True


def _column_widths(table: Sequence[Sequence[str]], available: float) -> list[float]:
    """Return widths in points: natural where they fit, otherwise the widest columns share the rest equally."""
    natural = [
        max(text_size(cell or " ", FONT, "bold" if row == 0 else "normal")[0] for row, cell in enumerate(column))
        for column in zip(*table, strict=True)
    ]
    room = available - COLUMN_GAP * (len(natural) - 1)
    if sum(natural) <= room:
        return natural
    widths, open_ = list(natural), set(range(len(natural)))
    while open_:
        share = (room - sum(widths[k] for k in range(len(widths)) if k not in open_)) / len(open_)
        narrow = {k for k in open_ if natural[k] <= share}
        if not narrow:
            for k in open_:
                widths[k] = max(share, 40.0)
            break
        open_ -= narrow
    return widths


def _wrap(cell: str, width: float) -> str:
    """Break `cell` into lines that fit `width` points; mathtext is never broken."""
    size = text_size(cell or " ", FONT)[0]
    if size <= width * 1.001 or "$" in cell:
        return cell
    characters = max(4, int(len(cell) * width / size))
    while characters > 4:
        wrapped = textwrap.fill(cell, characters, break_long_words=False, break_on_hyphens=False)
        if text_size(wrapped, FONT)[0] <= width:
            return wrapped
        characters -= 1
    return textwrap.fill(cell, characters, break_long_words=False, break_on_hyphens=False)
