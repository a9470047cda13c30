"""What a run amounts to: its final numbers, and everything that `dyn show` says of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.runs.store import layout

if TYPE_CHECKING:
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.bases import Measure
    from dynamics_cli.runs.run import Run

T = TypeVar("T")
FEW_NUMBERS = 16
"""Numbers of a measure that are told one by one."""


def end_of(run: Run) -> dict[str, Any]:
    """Return status, iterations, final loss, seconds, device and backend by name; None for what is not known."""
    told = {name: run.info.get(name) for name in ("seconds", "device", "backend")}
    known = run.status == "diverged" or not math.isnan(run.final_loss)
    return {"status": run.status, "iterations": run.iterations, "final_loss": run.final_loss if known else None, **told}


def final_measures(run: Run) -> dict[str, float]:
    """Return the last recorded value of every measure; of one of few numbers each, as `name.1` or `name.class 0`.

    Of an unfinished run it is that of the last state at which the measure was due.
    """
    final: dict[str, float] = {}
    for name, values in run.measures.items():
        if not run.finished:
            values = values[~np.isnan(values.reshape(len(values), -1)).all(1)]  # noqa: PLW2901
        if values.ndim == 1 and len(values):
            final[name] = float(values[-1])
        elif values.ndim > 1 and len(values) and values[-1].size <= FEW_NUMBERS:
            last = values[-1].ravel().tolist()
            final |= {f"{name}.{column}": value for column, value in zip(columns_of(run, name), last, strict=True)}
    return final


def recorded(config: RunConfig, name: str, ask: Callable[[Measure], T]) -> T | None:
    """Return the answer of a measure of the config; None where no kind of the name is registered here."""
    with suppress(InputError):  # of an unknown kind
        return next((ask(one) for one in config.record.measures or () if one.name == name), None)
    return None


def columns_of(run: Run, name: str) -> list[str]:
    """Return the names of the numbers of a measure: its own, otherwise `1`, `2`, ..."""
    return column_names(run.config, name, math.prod(run.measures[name].shape[1:]))


def column_names(config: RunConfig, name: str, count: int) -> list[str]:
    """Return the names of the `count` numbers of a measure of runs of a config, as `columns_of` does."""
    named = list(recorded(config, name, lambda one: one.columns(dict(config))) or ())
    return named if len(set(named)) == len(named) == count else [str(k + 1) for k in range(count)]


def measured(run: Run, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return iterations (k,) and values (k, c) of a measure, without states at which it was not due."""
    steps = np.asarray(run.snapshot_iterations)
    values = np.array(run.measures[name], dtype=np.float64).reshape(len(steps), -1)
    due = ~np.isnan(values).all(axis=1)  # a measure may have a schedule of its own
    return steps[due], values[due]


def final_numbers(run: Run) -> dict[str, Any]:
    """Return how a run ended, and its final measures, by name."""
    return {**end_of(run), **final_measures(run)}


def describe(run: Run) -> dict[str, Any]:
    """Return how a run ended, its identity, where it was made, its config and its files."""
    from dynamics_cli.config.dump import to_plain

    return {
        "path": run.path, **end_of(run), "measures": final_measures(run), "messages": run.info.get("messages", []),
        "hash": run.hash,
        **{name: run.info.get(name) for name in ("versions", "threads", "environment", "provenance")},
        **({"flow": run.info["flow"]} if "flow" in run.info else {}), "snapshots": len(run.snapshot_iterations),
        "losses": len(run.losses), "config": to_plain(run.config),
        "files": [run.path / name for name in file_sizes(run.path)],
    }  # fmt: skip


def file_sizes(directory: Path) -> dict[str, int]:
    """Return the size in bytes of every file below a run directory, without the lock's."""
    return {
        path.relative_to(directory).as_posix(): path.stat().st_size
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (layout.LOCK, layout.LOCK_HOLDER)
    }


def html(run: Run) -> str:
    """Return the final numbers as a small table, for notebooks."""
    from dynamics_cli.text import cell, html_table

    rows = [[name.replace("_", " "), cell(value)] for name, value in final_numbers(run).items()]
    return html_table([], [*rows, ["directory", str(run.path)]], caption=repr(run).strip("<>"))
