"""The table of a sweep by column: which settings have several values, families of jobs, the curves of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import RunError
from dynamics_cli.plotting.chart import LOG_RANGE
from dynamics_cli.plotting.layout import format_number
from dynamics_cli.plotting.time_axis import LogAxes
from dynamics_cli.runs.run import columns_of, measured
from dynamics_cli.sweeps.directory import Sweep, text_of
from dynamics_cli.sweeps.table import COLUMNS, FIXED
from dynamics_cli.text import shorten

Floats = NDArray[np.float64]
WITHOUT_CURVES = {*COLUMNS} - {"final_loss"}
"""Columns of a run as a whole; they are drawn by name alone."""


class SweepTable:
    """The results of a sweep by column; of an unfinished sweep, of the jobs that have ended."""

    def __init__(self, sweep: Sweep, log: LogAxes | None = None, *, where: Mapping[str, Any] | None = None) -> None:
        """Read the table of a sweep, of the rows that have the values of `where`; `log` as in `dyn plot`.

        Raises:
            RunError: no job has ended yet.
            UsageError: there is no such column, or no row has the values.
        """
        self.sweep, self.log, self.described = sweep, log, sweep.described
        self.where = dict(where or {})
        self.rows = sweep.chosen(where)
        if not self.rows:
            raise RunError(f"no job of {sweep.path} has ended yet")
        axes = self.described["axes"]
        self.settings = [*(axis["key"] for axis in axes), *self.described["computed"]]
        self.free = [axis["key"] for axis in axes if len(self.values(axis["key"])) > 1]
        """Settings that have several values; others are computed."""

    @property
    def measures(self) -> list[str]:
        """Names of the final numbers that the table has: measures that the config asks for, the final loss, others."""
        asked = bool((self.described["config"].get("record") or {}).get("measures"))
        hidden = (*FIXED, *self.settings, "iterations")
        names = [name for name in self.rows.columns if name not in hidden]
        return sorted(names, key=lambda name: (name in WITHOUT_CURVES, (name == "final_loss") == asked))

    @property
    def columns(self) -> list[str]:
        """Names of all columns that can be drawn."""
        return list(dict.fromkeys([*self.settings, "seed", *self.measures]))

    @property
    def main(self) -> str:
        """The setting that curves are drawn over: the first with several values, numbers before words."""
        free = self.free or self.settings or ["seed"]
        return str(next((key for key in free if self.numeric(key)), free[0]))

    def values(self, key: str) -> list[Any]:
        """Return the different values of a column in their order."""
        return list({text_of(row[key]): row[key] for row in self.rows}.values())

    def column(self, name: str) -> Floats:
        """Return a column as numbers, NaN where a job has none."""
        return np.array([row[name] if _is_number(row[name]) else np.nan for row in self.rows], np.float64)

    def numeric(self, key: str) -> bool:
        """Whether a column holds numbers only; a failed job may have none."""
        values = [value for value in self.values(key) if value is not None]
        return bool(values) and all(map(_is_number, values))

    def places(self, key: str) -> tuple[Floats, list[str] | None]:
        """Return where rows stand on an axis of a column: its numbers, or the numbers of its words, and these."""
        if self.numeric(key):
            return self.column(key), None
        words = [text_of(value) for value in self.values(key)]
        return np.array([float(words.index(text_of(row[key]))) for row in self.rows]), words

    def logarithmic(self, key: str) -> bool:
        """Whether a column is spaced by ratios, or spans so much that only a logarithmic axis shows it."""
        values = self.column(key)[np.isfinite(self.column(key))]
        if not self.numeric(key) or not len(values) or values.min() <= 0:
            return False
        spaced = any(axis["key"] == key and axis["log"] for axis in self.described["axes"])
        return bool(spaced or values.max() > LOG_RANGE * values.min())

    def families(self, keys: Sequence[str], among: Sequence[int] | None = None) -> dict[str, list[int]]:
        """Return the rows by their values of some columns, named as a legend says them; by default of all rows."""
        families: dict[str, list[int]] = {}
        values = {key: self.values(key) for key in keys}
        digits = {key: 3 if len({_short(value) for value in many}) == len(many) else 17 for key, many in values.items()}
        for k in range(len(self.rows)) if among is None else among:
            name = ", ".join(f"{_last(key)} {_short(self.rows[k][key], digits[key])}" for key in keys)
            families.setdefault(name, []).append(k)
        return families

    def curve(self, k: int, measure: str) -> tuple[Floats, Floats]:
        """Return the iterations and the losses that the job of row k recorded, or another measure; nothing if none."""
        if self.rows[k]["status"] == "failed":
            return np.zeros(0), np.zeros(0)
        run = self.sweep.run(self.rows[k]["job"])
        if measure == "final_loss":
            return np.asarray(run.loss_iterations, float), np.asarray(run.losses)
        for name in (name for name in run.measures if measure.startswith(name)):
            columns = [name] if run.measures[name].ndim == 1 else [f"{name}.{part}" for part in columns_of(run, name)]
            if measure in columns:
                steps, values = measured(run, name)
                return np.asarray(steps, float), values[:, columns.index(measure)]
        return np.zeros(0), np.zeros(0)

    def note(self, drawn: Sequence[str]) -> str:
        """Return the hidden parts of a picture of some columns: other settings, seeds, jobs that have not ended."""
        left = [f"{key} ({len(self.values(key))})" for key in self.free if key not in drawn]
        if (seeds := len(self.values("seed"))) > 1 and "seed" not in (*drawn, *self.free):
            left.append(f"{seeds} seeds")
        lost = sum(row["status"] in ("diverged", "failed") for row in self.rows)
        parts = [f"median over {', '.join(left)}"] if left else []
        parts += [f"where {key} = {_short(text)}" for key, text in self.where.items()]
        parts += [f"{len(self.rows)} of {self.described['jobs']} jobs"] * (len(self.rows) < self.described["jobs"])
        parts += [f"{lost} jobs diverged or failed"] if lost else []
        return "; ".join(parts + [f"{k} = {text}" for k, text in self.described["computed"].items() if k not in drawn])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any, digits: int = 3) -> str:
    return format_number(value, digits) if _is_number(value) else shorten(text_of(value), 24)


def _last(key: str) -> str:
    """Return the last word of a key, which legends show; of a kind with its section."""
    above, _, last = key.rpartition(".")
    return above.rpartition(".")[2] if last == "kind" and above else last
