"""What commands print: data on stdout, messages on stderr, JSON that any program can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from dynamics_cli.cli.guard import hang_up
from dynamics_cli.errors import RunError
from dynamics_cli.jsonable import jsonable

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def emit(text: str) -> None:
    """Print data on stdout.

    Raises:
        RunError: stdout cannot be written, e.g. a full disk behind `>`.

    """
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        hang_up()
        raise RunError(f"the output cannot be written: {error.strerror}") from error


def say(text: str, *, quiet: bool = False) -> None:
    """Print a message on stderr."""
    if not quiet:
        click.echo(text, err=True)


def emit_json(document: Any) -> None:
    """Print one JSON document: numbers that are not finite are null, paths absolute."""
    emit(json.dumps(jsonable(document, absolute=True), indent=2, allow_nan=False))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Return lines of columns under a header; the columns numbered in `right` are flushed right."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        placed = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(placed).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def pairs(items: Mapping[str, str]) -> str:
    """Return one line for each name and value."""
    width = max((len(name) for name in items), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in items.items())


def number(value: float | None) -> str:
    """Return a number of six digits at most; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.6g}"


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
