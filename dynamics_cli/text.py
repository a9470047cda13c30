"""Tables, numbers and JSON as people and other programs read them."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import needing
from dynamics_cli.notebook import html_table

if TYPE_CHECKING:
    from pandas import DataFrame

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LEAST = 14
"""Characters that a column keeps which gives way."""
_IN_NUMBER = re.compile(r"(?<=\d) (?=\d|(?:s|min|h|days|B|[KMGTP]iB)\b)")
_HOLD = "\0"
"""The space in `60 000` and `5.2 h`, and the character in its place while lines are broken."""
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]",
)
"""Characters that steer a terminal or the direction of text, but tabs and ends of lines."""
_SHOWN = 50
"""Rows of a table that Python and notebooks show."""


class Table(list[dict[str, Any]]):
    """Rows of a result, each a mapping from column to value, as `pandas.DataFrame` takes them."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order in which they first appear in a row."""
        return list(dict.fromkeys(name for row in self for name in row))

    def column(self, name: str) -> list[Any]:
        """Return one column, None where a row has no such entry."""
        return [row.get(name) for row in self]

    def to_pandas(self) -> DataFrame:
        """Return the table as a `pandas.DataFrame`.

        Raises UsageError: pandas is not installed.
        """
        with needing("to_pandas", "pandas"):
            from pandas import DataFrame
        return DataFrame(self)

    def cells(self) -> list[list[str]]:
        """Return the rows as text, in the order of `columns`."""
        return [[cell(row.get(name)) for name in self.columns] for row in self]

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        shown = html_table(self.columns, Table(self[:_SHOWN]).cells())
        if len(self) > _SHOWN:
            shown += f"<p>and {len(self) - _SHOWN} more rows</p>"
        return shown

    def __str__(self) -> str:
        if not self:
            return "no rows"
        return text_table(self.columns, self.cells())

    def __repr__(self) -> str:
        text = str(Table(self[:_SHOWN]))
        if len(self) > _SHOWN:
            text += f"\nand {len(self) - _SHOWN} more rows"
        return text


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int | None = None,
) -> str:
    """Return lines of columns under one line of header.

    Cells of the widest column are broken so that the table fits. Where the columns do not fit
    beside one another, the cells of a row stand below one another.

    Args:
        header: names of the columns.
        rows: one cell for each column.
        right: numbers of the columns that are flushed right, whose cells are never broken.
        width: most characters of a line, by default the terminal's width.

    Raises:
        ValueError: the rows are of unequal lengths.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError(
            f"every row of a table with {len(header)} columns needs a cell for each column"
        )
    room = (width or terminal_width()) - 2 * (len(header) - 1)
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    if sum(widths) > room:
        widest = max((k for k in range(len(widths)) if k not in right), key=widths.__getitem__)
        widths[widest] -= sum(widths) - room
        words = _held("\n".join(columns[widest])).split()
        if widths[widest] < max(_LEAST, *map(len, words)):
            blocks = []
            for head, *cells in rows:
                named = zip(header[1:], cells, strict=True)
                below = pairs({name: text for name, text in named if text}, width=room)
                blocks.append(f"{head}\n{textwrap.indent(below, '  ')}")
            return "\n".join(blocks)

    form = "  ".join(f"{{:{'>' if k in right else '<'}{size}}}" for k, size in enumerate(widths))
    lines = []
    for row in (header, ["-" * size for size in widths], *rows):
        broken = map(wrapped, row, widths)
        for parts in zip_longest(*broken, fillvalue=""):
            lines.append(form.format(*parts).rstrip())
    return "\n".join(lines)


def terminal_width() -> int:
    """Return the characters of a line of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def fitted(text: str) -> str:
    """Return a text in lines that fit the terminal."""
    return "\n".join(wrapped(text, terminal_width()))


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` characters; words and numbers stay whole."""
    if len(text) <= width:
        return [text]
    lines = textwrap.wrap(
        _held(text), max(width, 1), break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_HOLD, " ") for line in lines] or [""]


def _held(text: str) -> str:
    return _IN_NUMBER.sub(_HOLD, text)


def pairs(items: Mapping[str, str], *, width: int | None = None) -> str:
    """Return names and values, broken into lines of at most `width`, by default the terminal's."""
    left = max(map(len, items), default=0)
    room = max((width or terminal_width()) - left - 2, _LEAST)
    lines = []
    for name, value in items.items():
        for part in wrapped(value, room):
            lines.append(f"{name:<{left}}  {part}")
            name = ""  # noqa: PLW2901 - it stands before the first line
    return "\n".join(lines)


def printable(text: str) -> str:
    """Return a text with control characters as escapes, which cannot steer the terminal."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return a text as `printable` does, with ends of lines as escapes too."""
    return printable(text).replace("\n", "\\n")


def cell(value: Any) -> str:
    """Return a value as a cell of a table: floats of six digits, a dash for None, one line."""
    if value is None or isinstance(value, float):
        return number(value)
    return one_line(str(value))


def counted(counts: Mapping[str, int]) -> str:
    """Return `3 complete, 1 failed`, without what is not there."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def plural(count: int, noun: str) -> str:
    """Return `1 label`, `2 labels`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def number(value: float | None) -> str:
    """Return a number of six digits at most; a dash for None."""
    if value is None:
        return "-"
    return f"{value:.6g}"


def size(count: float) -> str:
    """Return a number of bytes for people: `1.5 MiB`."""
    power = 0
    while count >= 1024 and power < len(UNITS) - 1:
        count = count / 1024
        power = power + 1
    return f"{count:.{min(power, 1)}f} {UNITS[power]}"


def duration(seconds: float) -> str:
    """Return a time for people: `12 s`, `3 min`, `5.2 h`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def shorten(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `...` for what follows a whole word."""
    if len(text) <= most:
        return text
    start = text[: most - 3]
    if text[most - 3] != " " and " " in start:
        start, _, _ = start.rpartition(" ")
    return start + "..."


def to_json(document: Any) -> str:
    """Return one JSON document: numbers that are not finite are null, paths absolute."""
    import json

    text = json.dumps(jsonable(document, absolute=True), indent=2, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that it does not escape


def walked(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return `value` as dictionaries and lists, with `leaf` of all else."""
    if isinstance(value, Mapping):
        return {str(key): walked(item, leaf) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [walked(item, leaf) for item in value]
    # an array or a scalar of NumPy, a tensor, which commands that need none do not import
    if hasattr(value, "tolist"):
        return walked(value.tolist(), leaf)
    return leaf(value)


def jsonable(value: Any, *, absolute: bool = False) -> Any:
    """Return `value` as JSON knows it: lists for arrays, `None` for non-finite numbers.

    Paths become text, `absolute` ones where asked for.
    """

    def leaf(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value.absolute() if absolute else value)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    return walked(value, leaf)
