"""Results as HTML for notebooks: small tables and pictures, without a script."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest

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


def html_picture(png: bytes, said: str) -> str:
    """Return a PNG as a picture of the page itself; `said` stands for it where it is not seen.

    It has 300 dots an inch, of which a screen shows half.
    """
    width = int.from_bytes(png[16:20], "big") // 2
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<img src="data:image/png;base64,{data}" alt="{escape(said)}"'
        f' width="{width}" style="max-width:100%"/>'
    )


class Explanation(str):
    """A text that a notebook shows line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"
