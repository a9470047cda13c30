"""Output of commands: data on stdout, messages and progress on stderr, JSON that any program can read."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

import click

from dynamics_cli.cli.guard import hang_up
from dynamics_cli.errors import RunError
from dynamics_cli.text import Table, cell, duration, number, size, terminal_width, text_table, to_json

if TYPE_CHECKING:
    from tqdm import tqdm


def emit(text: str) -> None:
    """Print data on stdout.

    Raises RunError: stdout cannot be written, e.g. a full disk behind `>`.
    """
    try:
        click.echo(text)
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
    emit(to_json(document) if as_json else text)


def emit_files(files: Iterable[object]) -> None:
    """Print one path a line."""
    for file in files:
        emit(str(file))


def say(text: str, *, quiet: bool = False) -> None:
    """Print a message on stderr."""
    if not quiet:
        with suppress(OSError):  # stderr may have gone away; the work goes on
            click.echo(text, err=True)


def named_cells(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return names as people write them -> values as a table shows them."""
    return {name.replace("_", " "): cell(value) for name, value in numbers.items()}


def run_table(runs: Table) -> str:
    """Return one line for each run; a narrow terminal shows the name of its folder, and fewer columns."""
    now, width = time.time(), terminal_width()
    header = ["run", "status", "iterations", "final loss", "size", "changed"]
    rows = [
        [
            str(run["path"]), run["status"], str(run["iterations"]), number(run["final_loss"]), size(run["size"]),
            f"{duration(max(now - run['modified'], 0))} ago",
        ]
        for run in runs
    ]  # fmt: skip
    if _widest(header, rows) > width:
        rows = [[name.rpartition("/")[2], *cells] for name, *cells in rows]
    while _widest(header, rows) > width and len(header) > 2:
        header, rows = header[:-1], [row[:-1] for row in rows]
    return text_table(header, rows, right=range(2, len(header)))


def _widest(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the characters of a line of the table when no cell is broken."""
    return sum(max(map(len, column)) for column in zip(header, *rows, strict=True)) + 2 * (len(header) - 1)


LOG_INTERVAL = 10.0
"""Seconds between two lines of progress where stderr is no terminal, and before the first."""


class _Bar:
    """A bar on stderr that appears with the first call, so that no work shows none."""

    def __init__(self, *, shown: bool) -> None:
        self.shown = shown
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self, **options: Any) -> tqdm[NoReturn]:
        """End the bar that is shown, and show a new bar."""
        from tqdm import tqdm

        self.close()
        # a terminal gets ten lines a second, a log file a line now and then, and none of work that is done at once
        terminal = sys.stderr.isatty()
        interval, delay = (0.1, 0.0) if terminal else (LOG_INTERVAL, LOG_INTERVAL)
        self._bar = tqdm(**options, mininterval=interval, delay=delay, dynamic_ncols=True, file=sys.stderr)
        return self._bar

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Write to the bar; once stderr has gone away there is none, and the work goes on."""
        try:
            yield
        except OSError:
            self.shown, self._bar = False, None

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            with self.heard():
                self._bar.close()
            self._bar = None

    def __exit__(self, *_: object) -> None:
        self.close()


class TrainingBar(_Bar):
    """Iterations, loss, rate and time left of a training run."""

    def __init__(self, total: int, *, label: str = "", shown: bool = True) -> None:
        super().__init__(shown=shown)
        self.total, self.label = total, label

    def __call__(self, iteration: int, loss: float) -> None:
        """Note that `iteration` has been reached, with the last loss that was looked at."""
        if not self.shown:
            return
        with self.heard():
            bar = self._bar
            if bar is None:  # a resumed run starts here: the rate counts from there on
                bar = self.begin(total=self.total, initial=iteration, desc=self.label or None, unit="it")
            if not math.isnan(loss):
                bar.set_postfix_str(f"loss {loss:.3e}", refresh=False)
            bar.update(iteration - bar.n)


class CountBar(_Bar):
    """Things that are counted, such as bytes, images or jobs."""

    def __init__(self, unit: str, *, shown: bool) -> None:
        super().__init__(shown=shown)
        self.unit, self._label = unit, ""

    def __call__(self, done: int, total: int | None, label: str = "") -> None:
        """Note that `done` of `total` (None: not known) are done; another label begins another bar."""
        if not self.shown:
            return
        with self.heard():
            bar = self._bar
            if bar is None or label != self._label:
                options = {"initial": done if self._bar is None else 0, "unit_scale": self.unit == "B"}
                bar = self.begin(total=total, desc=label or None, unit=self.unit, **options)
                self._label = label
            bar.update(done - bar.n)
