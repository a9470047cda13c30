"""Tables, numbers and JSON as people and other programs read them: on a terminal, in a notebook,
in a pipe.
"""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli.errors import needing

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
    """Rows of a result, each a mapping from column to value: `pandas.DataFrame(table)` takes it
    as it is.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order in which they first appear; not every row need have
        each.
        """
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

    def __str__(self) -> str:
        return text_table(self.columns, self.cells()) if self else "no rows"

    def __repr__(self) -> str:
        more = f"\nand {len(self) - _SHOWN} more rows" if len(self) > _SHOWN else ""
        return f"{Table(self[:_SHOWN])}{more}"


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int | None = None,
) -> str:
    """Return lines of columns under one line of header; cells of the widest column are broken so
    that the table fits.

    Where the columns do not fit beside one another, the cells of a row stand below one another.

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
        if widths[widest] < max(
            _LEAST, *(len(word) for text in columns[widest] for word in _held(text).split())
        ):
            named = (zip(header[1:], cells, strict=True) for _, *cells in rows)
            below = (pairs({name: text for name, text in row if text}, width=room) for row in named)
            return "\n".join(
                f"{row[0]}\n{textwrap.indent(text, '  ')}"
                for row, text in zip(rows, below, strict=True)
            )

    def line(cells: Sequence[str]) -> str:
        placed = [
            text.rjust(size) if k in right else text.ljust(size)
            for k, (text, size) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(placed).rstrip()

    lines = []
    for row in (header, ["-" * size for size in widths], *rows):
        broken = [wrapped(text, size) for text, size in zip(row, widths, strict=True)]
        height = max(map(len, broken))
        lines += [
            line([part[k] if k < len(part) else "" for part in broken]) for k in range(height)
        ]
    return "\n".join(lines)


def terminal_width() -> int:
    """Return the characters of a line of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def fitted(text: str) -> str:
    """Return a text in lines that fit the terminal."""
    return "\n".join(wrapped(text, terminal_width()))


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` characters; neither words nor numbers, units
    included, are broken.
    """
    if len(text) <= width:
        return [text]
    lines = textwrap.wrap(
        _held(text), max(width, 1), break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(_HOLD, " ") for line in lines] or [""]


def _held(text: str) -> str:
    return _IN_NUMBER.sub(_HOLD, text)


def pairs(items: Mapping[str, str], *, width: int | None = None) -> str:
    """Return names and their values, which are broken into lines of at most `width`, by default
    the terminal's.
    """
    left = max((len(name) for name in items), default=0)
    room = max((width or terminal_width()) - left - 2, _LEAST)
    return "\n".join(
        f"{name if k == 0 else '':<{left}}  {line}"
        for name, value in items.items()
        for k, line in enumerate(wrapped(value, room))
    )


def printable(text: str) -> str:
    """Return a text with control characters as escapes: a run of somebody else cannot steer the
    terminal.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return a text as `printable` does, with ends of lines as escapes too."""
    return printable(text).replace("\n", "\\n")


def cell(value: Any) -> str:
    """Return a value as a cell of a table shows it: floats with six digits, a dash for None, one
    line for text.
    """
    if value is None or isinstance(value, float):
        return number(value)
    return one_line(str(value))


def number(value: float | None) -> str:
    """Return a number of six digits at most; a dash for None."""
    return "-" if value is None else f"{value:.6g}"


def size(count: float) -> str:
    """Return a number of bytes for people: `1.5 MiB`."""
    power = 0
    while count >= 1024 and power < len(UNITS) - 1:
        count = count / 1024
        power = power + 1
    return f"{count:.0f} {UNITS[power]}" if power == 0 else f"{count:.1f} {UNITS[power]}"


def duration(seconds: float) -> str:
    """Return a time for people: `12 s`, `3 min`, `5.2 h`."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} days"


def shorten(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `...` in place of the rest, which begins
    after a whole word.
    """
    if len(text) <= most:
        return text
    start = text[: most - 3]
    return (
        start if " " not in start or text[most - 3] == " " else start.rpartition(" ")[0]
    ) + "..."


def to_json(document: Any) -> str:
    """Return one JSON document: numbers that are not finite are null, paths absolute."""
    import json

    text = json.dumps(jsonable(document, absolute=True), indent=2, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that it does not escape


def walked(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return `value` with mappings as dictionaries, sequences and arrays as lists, and `leaf` of
    all else.
    """
    if isinstance(value, Mapping):
        return {str(key): walked(item, leaf) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [walked(item, leaf) for item in value]
    if hasattr(
        value, "tolist"
    ):  # an array or a scalar of NumPy, a tensor, which commands that need none do not import
        return walked(value.tolist(), leaf)
    return leaf(value)


def jsonable(value: Any, *, absolute: bool = False) -> Any:
    """Return `value` as JSON knows it: NumPy's numbers and arrays as numbers and lists, non-finite
    numbers as `None`.

    Paths become text, `absolute` ones where asked for.
    """

    def leaf(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value.absolute() if absolute else value)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return walked(value, leaf)
