"""Tables, numbers and JSON as people and other programs read them: on a terminal, in a notebook, in a pipe."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LEAST_FIRST, _LEAST_OTHER = 28, 14
"""Characters that columns keep which give way: the first of them, and each of the others."""
_HTML_ROWS, _HTML_CHARACTERS = 50, 200
"""Rows of a table, and characters of a cell, that a notebook shows."""


class Table(list[dict[str, Any]]):
    """Rows of a result, each a mapping from column to value: `pandas.DataFrame(table)` takes it as it is."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order in which they first appear; not every row need have each."""
        return list(dict.fromkeys(name for row in self for name in row))

    def column(self, name: str) -> list[Any]:
        """Return one column, None where a row has no such entry.

        Raises:
            KeyError: no row has it.
        """
        if name not in self.columns:
            raise KeyError(name)
        return [row.get(name) for row in self]

    def cells(self) -> list[list[str]]:
        """Return the rows as text, in the order of `columns`."""
        return [[cell(row.get(name)) for name in self.columns] for row in self]

    def __str__(self) -> str:
        return text_table(self.columns, self.cells()) if self else "no rows"

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.cells()) if self else "<p>no rows</p>"


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int | None = None,
    flexible: Sequence[int] = (0,),
) -> str:
    """Return lines of columns under one line of header.

    Args:
        header: names of the columns.
        rows: as many cells each.
        right: numbers of the columns that are flushed right.
        width: most characters of a line, where words allow it; None for no limit.
        flexible: numbers of the columns whose cells are broken into lines to fit the width.

    Raises:
        ValueError: the rows are of unequal lengths.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"every row of a table with {len(header)} columns must have as many cells")
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if width is not None:
        widths = _fit(widths, width - 2 * (len(header) - 1), flexible)

    def line(cells: Sequence[str]) -> str:
        placed = [
            text.rjust(size) if k in right else text.ljust(size)
            for k, (text, size) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(placed).rstrip()

    lines = [line(header), line(["-" * size for size in widths])]
    for row in rows:
        broken = [_wrapped(text, size) for text, size in zip(row, widths, strict=True)]
        height = max(map(len, broken))
        lines += [line([part[k] if k < len(part) else "" for part in broken]) for k in range(height)]
    return "\n".join(lines)


def _fit(natural: Sequence[int], room: int, flexible: Sequence[int]) -> list[int]:
    """Return column widths: the widest flexible column gives way until all fit, none below what a word needs."""
    widths = list(natural)
    least = {k: min(natural[k], _LEAST_FIRST if k == flexible[0] else _LEAST_OTHER) for k in flexible}
    while sum(widths) > room:
        able = [k for k in flexible if widths[k] > least[k]]
        if not able:
            break
        widths[max(able, key=lambda k: widths[k])] -= 1
    return widths


def _wrapped(text: str, size: int) -> list[str]:
    return textwrap.wrap(text, size, break_on_hyphens=False) or [""] if len(text) > size else [text]


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a small HTML table, everything escaped; of many rows the first are shown."""
    from html import escape

    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(shorten(text, _HTML_CHARACTERS))}</{tag}>" for text in cells) + "</tr>"

    head = f"<caption>{escape(caption)}</caption>" if caption else ""
    head += f"<thead>{line(header, 'th')}</thead>" if header else ""
    more = f"<p>and {len(rows) - _HTML_ROWS} more rows</p>" if len(rows) > _HTML_ROWS else ""
    body = "".join(line(row, "td") for row in rows[:_HTML_ROWS])
    return f"<table>{head}<tbody>{body}</tbody></table>{more}"


def pairs(items: Mapping[str, str]) -> str:
    """Return one line for each name and value."""
    width = max((len(name) for name in items), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in items.items())


def cell(value: Any) -> str:
    """Return a value as a cell of a table shows it: floats with six digits, a dash for what is not there."""
    return number(value) if value is None or isinstance(value, float) else str(value)


def number(value: float | None) -> str:
    """Return a number of six digits at most; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"


def size(count: float) -> str:
    """Return a number of bytes for people: `1.5 MiB`."""
    power = 0
    while count >= 1024 and power < len(UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.0f} {UNITS[power]}" if power == 0 else f"{count:.1f} {UNITS[power]}"


def duration(seconds: float) -> str:
    """Return a time for people: `12 s`, `3 min`, `5.2 h`."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} days"


def shorten(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `...` in place of the rest."""
    return text if len(text) <= most else text[: most - 3] + "..."


def to_json(document: Any) -> str:
    """Return one JSON document: numbers that are not finite are null, paths absolute."""
    import json

    return json.dumps(jsonable(document, absolute=True), indent=2, allow_nan=False)


def jsonable(value: Any, *, absolute: bool = False) -> Any:
    """Return `value` as JSON knows it: NumPy's numbers and arrays as numbers and lists, non-finite numbers as `None`.

    Paths become text, `absolute` ones where asked for.
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, absolute=absolute) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, absolute=absolute) for item in value]
    if isinstance(value, Path):
        return str(value.absolute() if absolute else value)
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy, which commands that need none do not import
        return jsonable(value.tolist(), absolute=absolute)
    return None if isinstance(value, float) and not math.isfinite(value) else value
