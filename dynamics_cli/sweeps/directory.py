"""The directory of a sweep: description `sweep.json`, table `results.csv`, runs; and its check."""

from __future__ import annotations

import json
import math
import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Self, SupportsFloat

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.runs.code import Code
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.find import runs_below
from dynamics_cli.runs.replica import replicas_of
from dynamics_cli.runs.run import (
    FEW_NUMBERS,
    Run,
    columns_in,
    due_rows,
    html_losses,
    measures_last_state,
)
from dynamics_cli.runs.store import files, manifest
from dynamics_cli.runs.store.locks import is_locked, run_lock
from dynamics_cli.runs.store.sealed import read_form, write_sealed
from dynamics_cli.runs.verify import Fault, faults_of_copies, verify_run
from dynamics_cli.sweeps.columns import column_numbers
from dynamics_cli.text import Table

if TYPE_CHECKING:
    from pandas import DataFrame

SWEEP = "sweep.json"
RESULTS = "results.csv"
PARTS = "parts"
"""Folder of the parts that are, or were, at work."""
PART = "part.json"
ENDED = ("complete", "diverged")
ENDINGS = (*ENDED, "failed")
CURVES = 7
"""Jobs whose losses a notebook shows: a colour each."""
MOST_READ = 10**8
"""Jobs of a sweep that is read: a file could name more than fit into memory."""
MOST_TOLD = 100
"""Values of a setting that a message names."""
PLACE = ("path", "replica", "hash")
"""Columns that say where the run of a job is, which depends on the parts in which the sweep was
begun; the file of the table leaves them out.
"""
LAST = (*PLACE, "message")
FIXED = ("job", "seed", "status", *LAST)
"""Columns that are neither settings nor final numbers."""
_AGAIN = "move or delete what is there, and the same `dyn sweep` trains the missing jobs"
_DELETE = (
    f"the runs are files of their own; delete {SWEEP}, and the same `dyn sweep` again only reads"
    " them"
)


_JOB = re.compile(r"(jobs|batches)/[0-9]{6,}")
"""The place of a run below its sweep."""
_TYPES = {
    "job": int,
    "seed": int,
    "status": str,
    "path": str,
    "message": str,
    "replica": int | None,
    "hash": str | None,
}
"""Types of columns of the table whose cells are not only shown."""


class SweptAxis(BaseModel):
    """A swept setting in a file."""

    key: str
    values: list[Any]
    log: bool


class _Table(BaseModel):
    """The table of a sweep whose jobs have all ended."""

    columns: list[str]
    rows: list[list[Any]]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not {*FIXED, "final_loss"} <= {*self.columns}:
            raise ValueError("a column is missing")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a row has no cell for each column")
        for name, type_ in _TYPES.items():
            place = self.columns.index(name)
            if not all(isinstance(row[place], type_) for row in self.rows):
                raise ValueError(f"column {name} holds something else")
        place = self.columns.index("path")
        if not all(_JOB.fullmatch(row[place]) for row in self.rows):
            raise ValueError("the path of a row is not that of a job")
        return self


class _ConfigForm(BaseModel):
    """What a sweep reads of its config without loading it."""

    model_config = ConfigDict(extra="allow")

    seed: int = 0
    record: dict[str, Any] = {}
    changes: list[Any] | None = None


def _check_config(config: dict[str, Any]) -> dict[str, Any]:
    _ConfigForm.model_validate(config, strict=True)
    return config


class SweepDescription(BaseModel):
    """`sweep.json`."""

    hash: str
    name: str
    axes: list[SweptAxis]
    computed: dict[str, str]
    points: list[list[Any]]
    seeds: int = Field(ge=1, le=MOST_READ)
    jobs: int = Field(ge=1, le=MOST_READ)
    record: str
    labels: dict[str, str] = {}
    columns: dict[str, str] = {}
    config: Annotated[dict[str, Any], AfterValidator(_check_config)]
    code: Code = Code()
    hashes: list[str] = []
    """The hash of each job (`run_hash`), shortened; none in sweeps of a former version."""
    batches: list[list[int]]
    """The jobs that are trained as one run, by runs; those that are left out are trained alone."""
    table: _Table | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.jobs != self.seeds * len(self.points):
            raise ValueError("the number of jobs is not that of points and seeds")
        if any(len(point) != len(self.axes) + len(self.computed) for point in self.points):
            raise ValueError("a point has no value for each setting")
        numbers = [number for batch in self.batches for number in batch]
        if len({*numbers}) != len(numbers) or any(k not in range(self.jobs) for k in numbers):
            raise ValueError("a batch has jobs that are not there, or are in another batch")
        if not all(self.batches) or len(self.hashes) not in (0, self.jobs):
            raise ValueError("a batch has no jobs, or a job no hash")
        if self.table is not None:
            if not {*self.settings} <= {*self.table.columns}:
                raise ValueError("the table lacks a setting")
            place = self.table.columns.index("job")
            if any(row[place] not in range(self.jobs) for row in self.table.rows):
                raise ValueError("the table has a job that is not there")
        return self

    @property
    def settings(self) -> list[str]:
        """Swept and computed settings, in the order of the values of a point."""
        return [*(axis.key for axis in self.axes), *self.computed]

    def settings_of(self, job: int) -> dict[str, Any]:
        """Return swept and computed settings of a job."""
        return dict(zip(self.settings, self.points[job // self.seeds], strict=True))

    def owns(self, run: Run, numbers: Sequence[int]) -> bool:
        """Whether a run was trained as these jobs, on data and with code as planned."""
        return not self.hashes or run.info.get("asked") == [self.hashes[k] for k in numbers]

    def write(self, directory: Path) -> None:
        """Write the description of the sweep in a directory.

        Raises RunError: it cannot be written.
        """
        written = self.model_dump(exclude_none=True, by_alias=True)
        write_sealed(directory / SWEEP, written, indent=None)


def is_sweep(directory: Path) -> bool:
    """Whether a directory holds a sweep."""
    return files.exists(directory / SWEEP)


def read_sweep(directory: Path) -> SweepDescription:
    """Return the description of a sweep.

    Raises:
        RunError: it is not a sweep, or a later version of dyn wrote it.
        CorruptRunError: its description is damaged.
    """
    path = directory / SWEEP
    try:
        return read_form(path, SweepDescription, _DELETE)
    except OSError as error:
        raise RunError(
            f"{directory} is not the directory of a sweep ({SWEEP}: {error.strerror})"
        ) from error


def write_table(directory: Path, described: SweepDescription, rows: Table) -> None:
    """Write the table of a sweep whose jobs have all ended: as CSV, then into the description.

    Raises:
        RunError: it cannot be written.
    """
    described.table = _Table(columns=rows.columns, rows=[[*row.values()] for row in rows])
    manifest.write_listed(directory, {RESULTS: _csv_of(described.table)})
    described.write(directory)


def _csv_of(table: _Table, without: Collection[str] = PLACE) -> bytes:
    """Return the contents of `results.csv`, given the table in the description."""
    kept = [k for k, name in enumerate(table.columns) if name not in without]
    names = [table.columns[k] for k in kept]
    return files.csv_of(names, ([text_of(row[k]) for k in kept] for row in table.rows))


def directory_of(numbers: Sequence[int]) -> str:
    """Return the run directory of jobs that are trained as one run, below that of the sweep."""
    folder = "jobs" if len(numbers) == 1 else "batches"
    return f"{folder}/{numbers[0]:06d}"


def runs_of(described: SweepDescription) -> list[list[int]]:
    """Return the jobs of a sweep by the runs as which they are trained."""
    alone = sorted({*range(described.jobs)}.difference(*described.batches))
    return [*described.batches, *([number] for number in alone)]


def parts_of(
    directory: Path, numbers: Sequence[int], failed: Collection[str] = ()
) -> list[Sequence[int]]:
    """Return jobs of one run, or each alone where they were trained after that run failed.

    `failed` has the places of runs that failed, perhaps without leaving a directory.
    """
    if len(numbers) == 1:
        return [numbers]
    alone = [[number] for number in numbers]
    places = map(directory_of, alone)
    if any(place in failed or files.exists(directory / place) for place in places):
        with suppress(CorruptRunError):
            if ended_run(directory, numbers) is None:
                return [*alone]
    return [numbers]


def run_at(directory: Path, numbers: Sequence[int]) -> Run | None:
    """Return the run in the place of jobs, whatever its status; None without one.

    Raises CorruptRunError: it is damaged.
    """
    path = directory / directory_of(numbers)
    if not files.exists(path):
        return None
    try:
        run = Run(path)
    except CorruptRunError:
        raise
    except RunError:  # no run yet, or one that another process is writing
        return None
    return run if len(run.info.get("replicas", [0])) == len(numbers) else None


def ended_run(directory: Path, numbers: Sequence[int]) -> Run | None:
    """Return the run in the place of jobs whose training has ended; raises as `run_at`."""
    run = run_at(directory, numbers)
    return run if run is not None and run.ended else None


def _own_run(directory: Path, described: SweepDescription, numbers: Sequence[int]) -> Run | None:
    """Return `run_at`; raises CorruptRunError also where a run that has ended is of other jobs."""
    run = run_at(directory, numbers)
    if run is not None and run.ended and not described.owns(run, numbers):
        raise _lost(run.path, numbers[0])
    return run


def _lost(path: Path, job: int, what: str = "was exchanged: another run stands there") -> RunError:
    return CorruptRunError(path, f"the run of job {job} of this sweep {what}", _AGAIN)


def ended_rows(
    directory: Path,
    described: SweepDescription,
    failed: Mapping[str, str] = MappingProxyType({}),
    configs: Sequence[RunConfig] = (),
    *,
    seen: Callable[[Sequence[int], Run | None], object] = lambda jobs, run: None,
) -> Table:
    """Return a row for each job that has ended, in order; None for numbers that are not finite.

    Args:
        directory: that of the sweep.
        described: its description.
        failed: the places of runs that failed, and why.
        configs: the config of each job; without them they are read from the runs.
        seen: called with the jobs of each run that is opened and the run, or None without one.

    Raises CorruptRunError: a run is damaged, or not one of this sweep.
    """
    rows: dict[int, dict[str, Any]] = {}
    for whole in runs_of(described):
        for numbers in parts_of(directory, whole, failed):
            place = directory_of(numbers)
            if place in failed:
                each = [{"status": "failed", "message": failed[place]} for _ in numbers]
            else:
                run = _own_run(directory, described, numbers)
                seen(numbers, run)
                if run is None or not run.ended:
                    continue
                each = _numbers(run, described, numbers, configs)
            for number, ended in zip(numbers, each, strict=True):
                point = described.settings_of(number)
                seed = point.get("seed", described.config.get("seed", 0)) + number % described.seeds
                job = {"job": number, **point, "seed": seed}
                rows[number] = {**job, **ended, "path": place}
    settings = [key for key in described.settings if key != "seed"]
    before = ["job", *settings, "seed", "status", "iterations", "final_loss", *described.columns]
    measures = dict.fromkeys(name for number in sorted(rows) for name in rows[number])
    names = [*before, *(name for name in measures if name not in (*before, *LAST)), *LAST]
    return Table({name: row.get(name) for name in names} for row in map(rows.pop, sorted(rows)))


def _numbers(
    run: Run,
    described: SweepDescription,
    jobs: Sequence[int],
    configs: Sequence[RunConfig] = (),
) -> list[dict[str, Any]]:
    """Return how the jobs of a run ended, their final numbers, and numbers of their curves.

    `configs` is as in `ended_rows`.
    """
    if configs:  # reading them from files takes longer than all the rest
        run.config = configs[jobs[0]]
    columns = _columns(run, len(jobs))
    networks: Sequence[Run] = [run] * len(jobs)
    if described.columns and "replicas" in run.info:
        networks = replicas_of(run)
    each = []
    for values, job, network in zip(
        zip(*columns.values(), strict=True), jobs, networks, strict=True
    ):
        numbers = dict(zip(columns, values, strict=True))
        messages = list[str]()
        if numbers["status"] == "diverged":
            messages.append(f"the loss is not finite at iteration {numbers['iterations']}")
        if described.columns:
            if configs:
                network.config = configs[job]
            of_curves, why = column_numbers(described.columns, described.settings_of(job), network)
            numbers |= {name: _finite(value) for name, value in of_curves.items()}
            messages += why
        each.append({**numbers, "message": "; ".join(messages)})
    return each


def _last_numbers(network: Run, measure: str) -> np.ndarray:
    """Return the last numbers (k,) of a measure of a network; NaN where it diverged or has none."""
    recorded = network.measures[measure]
    none = np.full(math.prod(recorded.shape[1:]), np.nan)
    if network.status == "diverged":
        return none
    values = recorded if measures_last_state(network) else due_rows(recorded)
    return np.asarray(values[-1], float).ravel() if len(values) else none


def _columns(run: Run, jobs: int) -> dict[str, list[Any]]:
    """Return the final numbers of the jobs of a run by column, equal however it was trained.

    Pictures draw the first behind `final_loss` by default. A new name goes into `columns.TAKEN`.
    """
    together = "replicas" in run.info
    columns: dict[str, list[Any]] = {
        "status": run.info.get("replica_statuses", [run.status]),
        "iterations": run.info.get("replica_iterations", [run.iterations]),
        "final_loss": run.info.get("replica_losses", [run.final_loss]),
    }
    networks: Sequence[Run] = replicas_of(run) if together else [run]
    for measure, recorded in run.measures.items():
        last = np.array([_last_numbers(network, measure) for network in networks])
        if last.size and last.shape[1] <= FEW_NUMBERS:
            names = [measure]
            if shape := recorded.shape[1 + together :]:
                names = [column.name for column in columns_in(run.config, measure, shape)]
            for k, name in enumerate(names):
                columns[name] = last[:, k].tolist()
    finite = {column: list(map(_finite, values)) for column, values in columns.items()}
    replicas = list(range(jobs)) if together else [None]
    return {**finite, "replica": replicas, "hash": [run.hash] * jobs}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class _Part(BaseModel):
    """`part.json`: a process that trains a part of a sweep."""

    part: str
    """`3/50`; `1/1` of the whole sweep."""
    host: str
    process: int
    workers: int


@contextmanager
def part_at_work(
    directory: Path, part: int, parts: int, workers: int, messages: Callable[[str], None] | None
) -> Iterator[None]:
    """Say that this process trains a part, as long as it does; a second one waits.

    Raises CorruptRunError: a file of the name of `part.json` is somebody else's.
    """
    place = directory / PARTS / f"{part}-of-{parts}"
    about = _Part(
        part=f"{part}/{parts}", host=socket.gethostname(), process=os.getpid(), workers=workers
    )
    with run_lock(place, on_wait=messages):
        file = place / PART
        if files.exists(file):  # of a part that was killed
            read_form(file, _Part)
        write_sealed(file, about.model_dump())
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


class Sweep:
    """A sweep in its directory, finished or not."""

    def __init__(self, directory: Path) -> None:
        """Open a sweep.

        Raises:
            RunError: it is not a sweep.
            CorruptRunError: its description is not what the sweep wrote.
        """
        self.path = directory
        self.described = read_sweep(directory)
        self._runs: dict[str, Sequence[Run]] = {}

    def _repr_html_(self) -> str:
        """Show the losses of the first jobs and the first rows of the table in a notebook."""
        begun = [row for row in self.rows if row["status"] != "failed"]
        picture = html_losses({f"job {row['job']}": self.run(row) for row in begun[:CURVES]})
        told = self.describe()
        said = f"{told['status']}: {told['ended']} of {told['jobs']} jobs have ended"
        title = f"<h4>{escape(told['name'])}</h4><p>{said}</p>"
        left_out = {"path", "replica", "hash"}
        if not told["messages"]:
            left_out.add("message")
        numbers = [
            {name: value for name, value in row.items() if name not in left_out}
            for row in self.rows
        ]
        return f"{title}{picture}{Table(numbers)._repr_html_()}"

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended, and stand in the table."""
        return self.described.table is not None

    @property
    def table(self) -> Path:
        """The file of the table, which a finished sweep has."""
        return self.path / RESULTS

    @cached_property
    def rows(self) -> Table:
        """A row for each job that has ended: settings, seed, end, final numbers, and its run.

        Those of an unfinished sweep are computed from its runs.
        """
        if (table := self.described.table) is not None:
            return Table(dict(zip(table.columns, row, strict=True)) for row in table.rows)
        return self._looked[0]

    @cached_property
    def _looked(self) -> tuple[Table, Counter[str], float]:
        """Rows of an unfinished sweep, its jobs by status, and the seconds of their training."""
        statuses = Counter[str]()
        seconds = list[float]()

        def note(jobs: Sequence[int], run: Run | None) -> None:
            statuses[run.status if run else "waiting"] += len(jobs)
            if run:
                seconds.append(run.info.get("seconds") or 0.0)

        return ended_rows(self.path, self.described, seen=note), statuses, sum(seconds)

    def counts(self) -> dict[str, int]:
        """Return how many jobs ended in which way."""
        statuses = Counter(row["status"] for row in self.rows)
        return {name: statuses[name] for name in ENDINGS}

    def _parts(self) -> list[_Part]:
        """Return the parts that are at work."""
        at_work = []
        for place in sorted((self.path / PARTS).glob("*")):
            if is_locked(place):
                with suppress(OSError, RunError):  # it has only begun
                    at_work.append(read_form(place / PART, _Part))
        return at_work

    def describe(self) -> dict[str, Any]:
        """Return how far the sweep is: settings, jobs by how they ended, and by their messages.

        Of an unfinished sweep also the jobs that have not ended by status, the seconds of training
        so far and those that are `left` for the parts at work (None before a job has ended), and
        these parts.
        """
        progress = {}
        described = self.described
        messages = Counter(row["message"] for row in self.rows if row["message"])
        status = "unfinished"
        if self.finished:
            status = "complete"
        else:
            parts = self._parts()
            if parts or is_locked(self.path):
                status = "running"
            _, statuses, seconds = self._looked
            left = None
            if ended := len(self.rows):
                at_once = sum(part.workers for part in parts) or 1
                left = seconds / ended * (described.jobs - ended) / at_once
            progress = {
                "others": {k: n for k, n in statuses.items() if k not in ENDED},
                "seconds": seconds,
                "left": left,
                "parts": [part.model_dump() for part in parts],
            }
        return {
            "path": self.path,
            "name": described.name,
            "status": status,
            "jobs": described.jobs,
            "ended": len(self.rows),
            **self.counts(),
            "seeds": described.seeds,
            "settings": {axis.key: axis.values for axis in described.axes},
            "computed": described.computed,
            "columns": described.columns,
            "messages": dict(messages.most_common()),
            **progress,
            "table": self.table if self.finished else None,
            "modified": (self.path / SWEEP).stat().st_mtime,
        }

    @cached_property
    def _row_of(self) -> dict[int, dict[str, Any]]:
        return {row["job"]: row for row in self.rows}

    def run(self, job: int | Mapping[str, Any]) -> Run:
        """Return the run of the job of this number, or of a row of `rows`.

        Raises RunError: the job failed, has not ended, or its run is gone.
        """
        number = job if isinstance(job, int) else job["job"]
        row = self._row_of.get(number)
        if row is None:
            raise RunError(
                f"no job {number} of {self.path} has ended; there are {self.described.jobs}, from 0"
            )
        if row["status"] == "failed":
            raise RunError(f"job {number} of {self.path} failed: {row['message']}")
        if row["path"] not in self._runs:
            run = self.run_of(row)
            self._runs[row["path"]] = [run] if row["replica"] is None else replicas_of(run)
        runs = self._runs[row["path"]]
        place = row["replica"] or 0
        if place not in range(len(runs)):
            raise _lost(self.path / row["path"], number)
        return runs[place]

    def run_of(self, row: Mapping[str, Any]) -> Run:
        """Return the run, perhaps of several networks, in the place of a row.

        Raises CorruptRunError: it is gone, or exchanged.
        """
        path = self.path / row["path"]
        if not files.exists(path):
            raise _lost(path, row["job"], "is gone")
        run = Run(path)
        if run.hash != row["hash"]:
            raise _lost(path, row["job"])
        return run

    def runs(self, where: Mapping[str, Any] | None = None) -> list[Run]:
        """Return the runs of jobs with these settings, such as `{"optimizer.lr": 0.1}`.

        Raises:
            UsageError: there is no such setting, or no job has this value.
            CorruptRunError: a run is gone, damaged, or exchanged with another.
        """
        return [self.run(row) for row in self.chosen(where) if row["status"] != "failed"]

    def chosen(self, where: Mapping[str, Any] | None = None) -> Table:
        """Return the rows that have these values.

        Raises UsageError: there is no such column, or no row has the value.
        """
        rows = self.rows
        for key, value in (where or {}).items():
            if key not in self.rows.columns:
                known = ", ".join(self.rows.columns)
                raise UsageError(
                    f"no column {key!r} here; there are"
                    f" {known}{did_you_mean(key, self.rows.columns)}"
                )
            values = dict.fromkeys(text_of(row[key]) for row in rows)
            rows = Table(row for row in rows if is_same(text_of(row[key]), text_of(value)))
            if not rows:
                raise UsageError(
                    f"no job has {key} {text_of(value)}; there are"
                    f" {', '.join([*values][:MOST_TOLD])}"
                )
        return rows

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of `rows` by name."""
        return {name: self.rows.column(name) for name in self.rows.columns}

    def to_pandas(self) -> DataFrame:
        """Return `rows` as a `pandas.DataFrame`.

        Raises UsageError: pandas is not installed.
        """
        return self.rows.to_pandas()


def verify_sweep(
    directory: Path, check_run: Callable[[Path], list[Fault]] = verify_run
) -> list[Fault]:
    """Check every checksum of a sweep: its description, and every run of it or below it.

    Jobs that failed, and jobs whose runs are gone or exchanged, are findings too. `check_run`
    checks a run directory.
    """
    wrong = {path: check_run(path) for path in runs_below(directory)}
    damaged = {path for path, faults in wrong.items() if faults}
    try:
        sweep = Sweep(directory)
        kept = sweep.described.code.kept.values()
        findings = [*faults_of_copies(directory, kept), *_faults(sweep, damaged)]
    except RunError as error:
        findings = [Fault.of(error, directory)]
    return [*findings, *chain.from_iterable(wrong.values())]


def _faults(sweep: Sweep, looked: set[Path]) -> Iterator[Fault]:
    """Yield what is wrong with the table of a sweep, and with its runs but those `looked` at."""
    if not sweep.finished:
        for numbers in runs_of(sweep.described):
            if sweep.path / directory_of(numbers) not in looked:
                try:
                    _own_run(sweep.path, sweep.described, numbers)
                except RunError as error:
                    yield Fault.of(error, sweep.path)
        return
    yield from _table_faults(sweep)
    for row in sweep.rows:
        path = sweep.path / row["path"]
        if row["status"] == "failed":
            yield Fault(path, f"job {row['job']} failed: {row['message']}")
        elif path not in looked:
            looked.add(path)
            try:
                sweep.run_of(row)
            except RunError as error:
                yield Fault.of(error, sweep.path)


def _table_faults(sweep: Sweep) -> Iterator[Fault]:
    """Yield that `results.csv` is not the table of the description, which is the one read."""
    assert sweep.described.table is not None
    again = f"the numbers are in {SWEEP}: `dyn export {sweep.path} FILE.csv` writes them"
    try:
        # a former version wrote the places of runs too
        known = [_csv_of(sweep.described.table, without) for without in (PLACE, ())]
        if files.read(sweep.table) not in known:
            yield Fault(sweep.table, f"it is not what the sweep wrote; was it edited? ({again})")
    except OSError as error:
        yield Fault(sweep.table, f"it cannot be read: {error.strerror} ({again})")


def text_of(value: Any) -> str:
    """Return a value as a CSV file holds it: NaN as nothing; lists, mappings, booleans as JSON."""
    if value is None or (isinstance(value, SupportsFloat) and math.isnan(value)):
        return ""
    if isinstance(value, list | dict | bool):
        return json.dumps(value)
    return str(value)


def is_same(cell: str, text: str) -> bool:
    """Return whether two texts are the same, or the same number."""
    try:
        return cell == text or math.isclose(float(cell), float(text), rel_tol=1e-9)
    except ValueError:
        return False
