"""Tables as figures: three rules, no boxes, columns as wide as their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.figure import Figure
from matplotlib.table import Table

from dynamics_cli.plotting.style import TEXT_WIDTH, new_figure, styled

FONT = 8.0
ROW = 0.2
"""Height of a row in inches."""
ALIGNMENTS: dict[str, Literal["left", "center", "right"]] = {
    "l": "left",
    "c": "center",
    "r": "right",
}


@styled
def table_figure(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    align: str | None = None,
    width: float = TEXT_WIDTH,
) -> Figure:
    """Return a table with a line of `header` and `rows` as a figure, `width` in inches.

    `align` is one of `l`, `c`, `r` for each column (default: the first left, the others right).
    Raises ValueError for rows of unequal lengths.
    """
    columns = len(header)
    if columns == 0 or any(len(row) != columns for row in rows):
        raise ValueError(
            f"every row of a table with {columns} columns needs a cell for each column"
        )
    align = align or "l" + "r" * (columns - 1)
    if len(align) != columns or set(align) - set(ALIGNMENTS):
        raise ValueError(f"align must be {columns} letters out of l, c and r, not {align!r}")
    height = ROW * (1 + len(rows))
    figure, (axes,) = new_figure(width=width, aspect=height / width)
    axes.axis("off")
    table = Table(axes, loc="center")
    table.auto_set_font_size(False)
    table.edges = "open"
    for r, row in enumerate([header, *rows]):
        for c, text in enumerate(row):
            look: dict[str, Any] = {"text": text, "loc": ALIGNMENTS[align[c]]}
            cell = table.add_cell(r, c, 1 / columns, 1 / (1 + len(rows)), **look)
            cell.set(linewidth=0.7, capstyle="projecting")
            cell.visible_edges = ""
            if r == len(rows):
                cell.visible_edges = "B"
            if r == 0:
                cell.set_text_props(weight="bold")
                cell.visible_edges = "TB"
    table.set_fontsize(FONT)
    table.auto_set_column_width(list(range(columns)))
    axes.add_table(table)
    return figure
