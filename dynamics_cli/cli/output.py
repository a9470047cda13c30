"""Output of commands: data on stdout, messages and progress on stderr, JSON for programs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

import click

from dynamics_cli.cli.guard import hang_up
from dynamics_cli.errors import RunError
from dynamics_cli.text import (
    Table,
    cell,
    duration,
    number,
    printable,
    size,
    terminal_width,
    text_table,
    to_json,
)

if TYPE_CHECKING:
    from tqdm import tqdm


def emit(text: str) -> None:
    """Print data on stdout.

    Raises RunError: stdout cannot be written, e.g. a full disk behind `>`.
    """
    try:
        click.echo(printable(text))
    except BrokenPipeError:
        raise
    except OSError as error:
        hang_up()
        raise RunError(f"the output cannot be written: {error.strerror}") from error


def emit_json(document: Any) -> None:
    """Print one JSON document: numbers that are not finite are null, paths absolute."""
    emit(to_json(document))


def emit_either(document: Any, text: str, *, as_json: bool) -> None:
    """Print a document as JSON, or as the text that people read."""
    if as_json:
        text = to_json(document)
    emit(text)


def emit_files(files: Iterable[object]) -> None:
    """Print one path a line."""
    for file in files:
        emit(str(file))


def say(text: str, *, quiet: bool = False) -> None:
    """Print a message on stderr."""
    if not quiet:
        with suppress(OSError):  # stderr may have gone away; the work goes on
            click.echo(printable(text), err=True)


def named_cells(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return names as people write them -> values as a table shows them."""
    return {name.replace("_", " "): cell(value) for name, value in numbers.items()}


def run_table(runs: Table) -> str:
    """Return one line for each run."""
    now = time.time()
    header = ["run", "status", "iterations", "final loss", "size", "changed"]
    rows = [
        [
            str(run["path"]),
            run["status"],
            str(run["iterations"]),
            number(run["final_loss"]),
            size(run["size"]),
            f"{duration(max(now - run['modified'], 0))} ago",
        ]
        for run in runs
    ]
    return folder_table(header, rows)


def say_problems(folders: Table) -> None:
    """Say on stderr why runs or sweeps that are listed cannot be read."""
    from dynamics_cli.runs.find import DAMAGED

    for row in folders:
        if row["status"] == DAMAGED:
            say(f"note: {row['problem']}")


def folder_table(header: list[str], rows: list[list[str]]) -> str:
    """Return one line for each folder; a narrow terminal has its name and fewer columns."""

    def too_wide() -> bool:
        widest = sum(max(map(len, column)) for column in zip(header, *rows, strict=True))
        return widest + 2 * (len(header) - 1) > terminal_width()

    if too_wide():
        rows = [[name.rpartition("/")[2], *cells] for name, *cells in rows]
    while too_wide() and len(header) > 2:
        header = header[:-1]
        rows = [row[:-1] for row in rows]
    return text_table(header, rows, right=range(2, len(header)))


LOG_INTERVAL = 10.0
"""Seconds between two lines of progress where stderr is no terminal, and before the first."""
FRACTION = "{l_bar}{bar}| {n:.10g}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
"""tqdm's own form of a bar, for parts of things too."""


class CountBar:
    """Things that are counted, such as images or jobs, on stderr, from the first call on."""

    def __init__(
        self, unit: str, *, total: int | None = None, label: str = "", shown: bool
    ) -> None:
        self.unit = unit
        self.total = total
        self.label = label
        self.shown = shown
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            if self._bar is not None:
                self._bar.close()

    def __call__(self, done: float, total: int | None, note: str = "") -> None:
        """Note that `done` of `total` (None: not known) are done.

        What was done before the first call has no rate. A smaller number than before is not shown.
        """
        if not self.shown:
            return
        try:
            if self._bar is None:
                from tqdm import tqdm

                # a terminal gets ten lines a second, a log file a line now and then, and none of
                # work done at once
                interval = LOG_INTERVAL
                delay = LOG_INTERVAL
                form = FRACTION
                if sys.stderr.isatty():
                    interval = 0.1
                    delay = 0.0
                else:
                    form += "\n"
                self._bar = tqdm(
                    total=total,
                    initial=done,
                    desc=self.label or None,
                    unit=self.unit,
                    mininterval=interval,
                    delay=delay,
                    bar_format=form if total else None,
                    dynamic_ncols=True,
                    file=sys.stderr,
                )
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(max(0, round(done, 2) - self._bar.n))
        except OSError:  # stderr has gone away; the work goes on
            self.shown = False
            self._bar = None


class TrainingBar(CountBar):
    """Iterations, loss, rate and time left of a training run."""

    def __init__(self, total: int, *, label: str = "", shown: bool = True) -> None:
        super().__init__("it", total=total, label=label, shown=shown)

    def __call__(self, iteration: int, loss: float, note: str = "") -> None:  # type: ignore[override]
        """Note that `iteration` has been reached, with the last loss that was looked at."""
        note = f"loss {loss:.3e}"
        if math.isnan(loss):
            note = ""
        super().__call__(iteration, self.total, note)
