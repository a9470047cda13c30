"""The directory of a sweep: its description `sweep.json`, its table `results.csv`, checking both, and comparing two."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError, Finding, Run, list_runs, verify_run
from dynamics_cli.runs.errors import unreadable_as_corrupt
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.sealed import check_entries, read_sealed, seal

SWEEP = "sweep.json"
RESULTS = "results.csv"
SHARDS = "shards"
TABLE = {"table": RESULTS, "columns": "columns.npz"}
"""Key of a checksum in `sweep.json` -> its file: the table, and its columns as arrays."""
ENDINGS = ("complete", "diverged", "failed")


@dataclass(frozen=True)
class Column:
    """A column of the table that is neither a setting nor a measure."""

    name: str
    dtype: Any
    """Objects, which may be long texts, are no part of `columns.npz`."""
    empty: Any
    """Its value for a job that has none."""
    of: Callable[[Run], Any]
    """Its value for a run, or its values for the runs that were trained together."""
    final: bool = False
    """Whether it is a number that pictures draw."""

    def plain(self, value: Any) -> Any:
        """Return a value, None for a number that is not there."""
        return None if value == self.empty != "" else value


def _place(run: Run) -> str:
    return f"{run.path.parent.name}/{run.path.name}"


def _losses(run: Run) -> list[float]:
    return [math.nan if loss is None else loss for loss in run.info.get("replica_losses", [run.final_loss])]


COLUMNS = (
    Column("status", "U8", "", lambda run: run.info.get("replica_statuses", run.status)),
    Column("iterations", np.int64, -1, lambda run: run.info.get("replica_iterations", run.iterations), final=True),
    Column("final_loss", np.float64, math.nan, _losses, final=True),
    Column("path", object, "", _place),
    Column("replica", np.int32, -1, lambda run: [*range(len(run.info["replicas"]))] if "replicas" in run.info else -1),
    Column("hash", object, "", lambda run: run.hash or ""),
    Column("message", object, "", lambda run: ""),
)
"""Measures stand after the last final number."""
MEASURES_AT = 1 + max(k for k, column in enumerate(COLUMNS) if column.final)
FIXED = ("job", "seed", *(column.name for column in COLUMNS if not column.final))
"""Columns of a table that are neither settings nor final numbers."""
_READ = ("job", "seed", "status", "path", "replica", "message")
"""Columns that every table has, those of earlier versions too."""
FORMAT = 1
_AGAIN = "the runs are files of their own; the same `dyn sweep` again only reads them and writes the table"
_TRAINED = "the same `dyn sweep` again trains what is missing"
_DELETE = f"the runs are files of their own; delete {SWEEP}, and the same `dyn sweep` again only reads them"


def is_sweep(directory: Path) -> bool:
    """Whether a directory is that of a sweep."""
    return files.exists(directory / SWEEP)


def read_sweep(directory: Path) -> dict[str, Any]:
    """Return the description of a sweep.

    Raises:
        RunError: it is not a sweep, or a newer version of dyn wrote it.
        CorruptRunError: its description is damaged.
    """
    path = directory / SWEEP
    try:
        described = read_sealed(path, FORMAT, _DELETE)
    except OSError as error:
        raise RunError(f"{directory} is not the directory of a sweep ({SWEEP}: {error.strerror})") from error
    check_entries(path, described, _Described, _DELETE)
    return _placed(described, lambda folder: str(directory / folder))


class _Axis(BaseModel):
    """An axis in `sweep.json`."""

    model_config = ConfigDict(strict=True)

    key: str
    values: list[Any]
    log: bool
    folder: str = "."
    leader: str = Field("", alias="with")


class _Described(BaseModel):
    """The entries of `sweep.json` that are read again."""

    model_config = ConfigDict(strict=True)

    hash: str
    name: str
    axes: list[_Axis]
    computed: dict[str, str] = {}
    seeds: layout.Count
    jobs: layout.Count
    batches: list[Annotated[int, Field(gt=0)]] = []
    table: str = ""
    columns: str = ""
    record: Literal["light", "ends", "config"] = "light"
    config: dict[str, Any] = {}


def write_sweep(directory: Path, described: Mapping[str, Any]) -> None:
    """Write the description of a sweep, with a checksum, in one indivisible step.

    Raises:
        RunError: it cannot be written.
    """
    from_here = _placed(described, lambda folder: os.path.relpath(folder, directory))  # both may move together
    files.save(directory / SWEEP, seal({"format": FORMAT, **from_here}))


def _placed(described: Mapping[str, Any], place: Callable[[str], str]) -> dict[str, Any]:
    """Return a description in which the folders of files that are swept are written another way."""
    axes = [axis | ({"folder": place(axis["folder"])} if "folder" in axis else {}) for axis in described["axes"]]
    return {**described, "axes": axes}


def table_seals(directory: Path) -> dict[str, str]:
    """Return the checksums of the table and its columns, which the description of the sweep keeps."""
    return {key: hashlib.sha256(files.read(directory / name)).hexdigest() for key, name in TABLE.items()}


def shard_table(k: int, n: int) -> str:
    """Return the name of the table of a shard, below the directory of its sweep."""
    return f"{SHARDS}/{k:05d}-of-{n:05d}.csv"


def remove_shards(directory: Path) -> None:
    """Delete the tables of shards, when the whole table is there."""
    for path in (directory / SHARDS).glob("*.csv"):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        (directory / SHARDS).rmdir()


def read_rows(directory: Path) -> list[dict[str, str]]:
    """Return the rows of a sweep in the order of its jobs; of an unfinished sweep the jobs that have ended.

    Raises:
        RunError: it is not a sweep, or no job has ended yet.
        CorruptRunError: a table cannot be read, or is not the table that the sweep wrote.
    """
    described = read_sweep(directory)
    if "table" in described:
        texts = {directory / RESULTS: read_table(directory).decode()}
    else:
        paths = [path for path in [directory / RESULTS, *sorted((directory / SHARDS).glob("*.csv"))] if path.exists()]
        texts = {path: _read(path).decode() for path in paths}
    rows: dict[int, dict[str, str]] = {}
    needed = {*_READ, *(axis["key"] for axis in described["axes"]), *described.get("computed", {})}
    for path, text in texts.items():
        for row in csv.DictReader(io.StringIO(text, newline="")):
            if not needed <= set(row) or None in row.values() or not _numbered(row):
                raise CorruptRunError(path, "it has not the columns of this sweep", _AGAIN)
            number = int(row["job"])
            if number not in rows or rows[number]["status"] == "failed":
                rows[number] = row
    if not rows:
        raise RunError(f"no job of {directory} has ended yet")
    return [rows[number] for number in sorted(rows)]


def _numbered(row: Mapping[str, Any]) -> bool:
    """Whether a row says which job it is of, and the place of its run among replicas if there are several."""
    return str(row["job"]).isdecimal() and (row["replica"] == "" or str(row["replica"]).isdecimal())


def check_place(directory: Path, row: Mapping[str, str]) -> None:
    """Raise `CorruptRunError` unless the run of a row of the table is where the table says, and is that run."""
    path = directory / row["path"]
    if not files.exists(path / layout.INFO):
        raise CorruptRunError(path, f"the run of job {row['job']} of this sweep is gone", _TRAINED)
    if row.get("hash") and read_info(path).get("hash") != row["hash"]:
        problem = f"it holds another run than that of job {row['job']} of this sweep; was it moved there?"
        raise CorruptRunError(path, problem, f"move or delete it; {_TRAINED}")


def read_table(directory: Path, key: str = "table") -> bytes:
    """Return the table of a sweep, or its `columns`, as they were written.

    Raises:
        RunError: there is none yet.
        CorruptRunError: it is not the table that the sweep wrote.
    """
    path, expected = directory / TABLE[key], read_sweep(directory).get(key)
    if not path.exists():
        if expected is None:
            raise RunError(f"{directory} has no {path.name} yet: the sweep is not finished")
        raise CorruptRunError(path, "it is missing", _AGAIN)
    if hashlib.sha256(data := _read(path)).hexdigest() != expected:
        raise CorruptRunError(path, "it is not the table that the sweep wrote; was it edited?", _AGAIN)
    return data


def _read(path: Path) -> bytes:
    with unreadable_as_corrupt(path, _AGAIN):
        return files.read(path)


def verify_sweep(directory: Path) -> list[Finding]:
    """Check every checksum of a sweep: its description, its table, and every run below it.

    Returns the damages found.
    """
    findings = []
    for key in TABLE:
        try:
            if key in read_sweep(directory):  # without it the sweep has not ended yet
                read_table(directory, key)
        except RunError as error:
            findings.append(Finding.of(error, directory))
    wrong = {run.path: verify_run(run.path) for run in list_runs(directory)}
    with suppress(RunError):  # told above; or no job has ended yet
        ended = {(row["path"], row.get("hash")): row for row in read_rows(directory) if row["status"] != "failed"}
        for row in ended.values():  # each run once
            if not wrong.setdefault(directory / row["path"], []):
                try:
                    check_place(directory, row)
                except CorruptRunError as error:
                    wrong[directory / row["path"]] = [Finding.of(error, directory)]
    return [*findings, *chain(*wrong.values())]


def cell_of(value: Any) -> Any:
    """Return a value as the table holds it: lists, mappings and truth values as JSON."""
    return json.dumps(value) if isinstance(value, list | dict | bool) else value


def number_of(text: str) -> float:
    """Return a cell of the table as a number, NaN where it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
