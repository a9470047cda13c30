"""A run directory, read-only, and the numbers that it amounts to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import RunConfig
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import DynError, RunError, UsageError, did_you_mean
from dynamics_cli.kinds import Samples, Streams
from dynamics_cli.kinds.base import loaded
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.export import Exported
from dynamics_cli.runs.info import check_config, owner, read_config, read_info
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.arrays import acknowledged_rows, check_array, read_array
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.text import cell, html_table

Array = NDArray[Any]
FEW_NUMBERS = 16
"""Numbers of a measure that are shown each, at most."""


class NotRecordedError(UsageError, KeyError):
    """A run has no array of this name."""

    __str__ = Exception.__str__


class Arrays(Mapping[str, Array]):
    """Arrays by name, read from the disk when asked for."""

    def __init__(self, names: list[str], load: Callable[[str], Array]) -> None:
        """Hold the names, and the function that reads the array of a name."""
        self._names, self._load = names, load

    def __getitem__(self, name: str) -> Array:
        """Return an array.

        Raises NotRecordedError: there is none of this name; the message lists those that there are.
        """
        if name not in self._names:
            there = ", ".join(self._names) or "nothing"
            raise NotRecordedError(f"{name!r} was not recorded{did_you_mean(str(name), self._names)}; there is {there}")
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names) or 'nothing'}>"


def which_file(directory: Path) -> tuple[int, ...]:
    """Return which file `run.json` is: another one when a run is started over, or goes on; nothing in between."""
    try:
        status = (directory / layout.INFO).lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns


def is_rewritten(directory: Path, before: tuple[int, ...]) -> bool:
    """Whether another process has written a run since `which_file` returned `before`, or is starting it over."""
    return which_file(directory) != before or (not before and is_locked(directory))


@contextmanager
def rewriting_told(directory: Path, before: tuple[int, ...]) -> Iterator[None]:
    """Let the error of reading a run say that another process is rewriting it, where that is the reason.

    Readers take no lock, which the writer of a run holds for hours.
    """
    try:
        yield
    except (RunError, OSError) as error:
        if not is_rewritten(directory, before):
            raise
        raise RunError(f"another process is writing {directory}: try again when it has begun or ended") from error


class Run(Exported):
    """A run as it was when first looked at; later rows are not seen.

    An unfinished run reads as everything that was acknowledged. Arrays are memory-mapped; each is checked against its
    checksums when first used, and a damaged array raises `CorruptRunError` instead of giving numbers.

    Attributes:
        path: the run directory.
        info: the contents of `run.json`.
        status: `complete`, `interrupted`, `diverged` or `failed`; `running` while a living process writes the run.
    """

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        """Look at a run directory; without `verify` checksums of config and arrays are not read.

        Raises RunError: it is not a run, is damaged, or was written by a newer version.
        """
        self.path = Path(path)
        self._file = which_file(self.path)
        with rewriting_told(self.path, self._file):
            self.info: dict[str, Any] = read_info(self.path)
            self.status: str = self.info["status"]
            if self.status == "running" and not is_locked(self.path):
                self.info = read_info(self.path)  # it may just have ended
                self.status = "interrupted" if self.info["status"] == "running" else self.info["status"]
            if verify:
                check_config(self.path, self.info)
        self._verify = verify
        self._loaded: dict[str, Array] = {}

    def __repr__(self) -> str:
        return f"<Run {self.path.name}: {self.status}, {self.iterations} iterations>"

    def _repr_html_(self) -> str:
        """Return the final numbers as a small table, for notebooks."""
        rows = [[name.replace("_", " "), cell(value)] for name, value in final_numbers(self).items()]
        return html_table([], [*rows, ["directory", str(self.path)]], caption=repr(self).strip("<>"))

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config."""
        with rewriting_told(self.path, self._file):
            return read_config(self.path, self.info)

    @property
    def hash(self) -> str | None:
        """Identity of the run (see `config.run_hash`)."""
        return self.info.get("hash")

    @property
    def finished(self) -> bool:
        """Whether the writer ended in order, so that the number of rows of every array is known."""
        return isinstance(self.info.get("rows"), dict)

    @property
    def iterations(self) -> int:
        """Updates made; in an unfinished run up to the last recorded state."""
        if self.info.get("iterations") is not None:
            return int(self.info["iterations"])
        recorded = (self.loss_iterations, self.snapshot_iterations)
        return max((int(numbers[-1]) for numbers in recorded if len(numbers)), default=0)

    @property
    def final_loss(self) -> float:
        """Loss of the last state; NaN when it was not finite, or the run is unfinished."""
        value = self.info.get("final_loss")
        return math.nan if value is None else float(value)

    @cached_property
    def _loss_rows(self) -> int:
        present = [name for name in layout.LOSS_GROUP if self._has(name)]
        if not present or not self._has(layout.LOSSES):
            return 0
        return min(len(self._read(name)) for name in reversed(present))  # the acknowledging array is read first

    @property
    def losses(self) -> Array:
        """Recorded losses (L,) float64."""
        return self._group(layout.LOSSES, self._loss_rows, np.float64)

    @property
    def loss_iterations(self) -> Array:
        """Iterations of the recorded losses (L,) int64."""
        return self._group(layout.LOSS_ITERATIONS, self._loss_rows, np.int64)

    @property
    def times(self) -> Array | None:
        """Times of the recorded losses (L,) float64; `None` where time is iterations x step."""
        return self._group(layout.TIMES, self._loss_rows, np.float64) if self._has(layout.TIMES) else None

    @cached_property
    def snapshot_iterations(self) -> Array:
        """Iterations of the snapshots (K,) int64."""
        if not self._has(layout.SNAPSHOT_ITERATIONS):
            return np.empty(0, np.int64)
        return self._read(layout.SNAPSHOT_ITERATIONS)

    @property
    def measure_iterations(self) -> Array:
        """Iterations of the recorded measures (K,) int64: those of the snapshots."""
        return self.snapshot_iterations

    @cached_property
    def parameters(self) -> Mapping[str, Array]:
        """Recorded parameters by name, in the order of the network, each (K, *shape)."""
        return self._folder(layout.TRAJECTORY)

    @cached_property
    def measures(self) -> Mapping[str, Array]:
        """Recorded measures by name, in the order of the config, each (K, ...) float64."""
        return self._folder(layout.MEASURES)

    def state(self, i: int) -> dict[str, Array]:
        """Parameters of snapshot i (negative: from the end), as arrays of their own.

        Raises RunError: the run recorded no parameters, or no such snapshot.
        """
        count = len(self.snapshot_iterations)
        if not self.parameters:
            raise RunError(f"{self.path} has no recorded parameters (see record.parameters in its config)")
        if not -count <= i < count:
            raise RunError(f"{self.path} has {count} snapshots, none with index {i}")
        return {name: np.array(parameter[i]) for name, parameter in self.parameters.items()}

    def index_of(self, iteration: int, exact: bool = False) -> int:
        """Index of the snapshot nearest to an iteration, the earlier of two.

        Raises:
            UsageError: with `exact`, when this iteration has no snapshot.
            RunError: the run has no snapshots yet.
        """
        steps = self.snapshot_iterations
        if not len(steps):
            raise RunError(f"{self.path} has no snapshots yet")
        i = int(np.argmin(np.abs(steps - iteration)))
        if exact and steps[i] != iteration:
            raise UsageError(f"{self.path} has no snapshot at iteration {iteration}; the nearest is at {steps[i]}")
        return i

    def network(self, i: int) -> Callable[[Array], Array]:
        """The network of snapshot i, as a function from inputs (n, d) to outputs (n,) in float64.

        The function raises `UsageError` for inputs of another number of columns than the network takes.
        """
        architecture, state = loaded(self.config.architecture, "architecture"), self.state(i)
        h = architecture.function(state, self.state(0) if architecture.centered else None)

        @cache
        def takes(d: int) -> bool:
            with suppress(DynError):
                shapes = architecture.shapes(d)
                return all(shapes.get(name) == weight.shape for name, weight in state.items())
            return False

        def network(x: Array) -> Array:
            x = np.asarray(x)
            if x.ndim != 2:
                raise UsageError(f"inputs have the shape {x.shape}, a network takes (samples, columns)")
            if takes(x.shape[1]):
                return h(x)
            bias = ": the last one is the constant 1 of the bias, np.column_stack([x, np.ones(len(x))])"
            why = bias if takes(x.shape[1] + 1) else ""
            raise UsageError(f"inputs have {x.shape[1]} columns, this network takes another number of them{why}")

        return network

    def dataset(self) -> Samples:
        """The data on which the run was trained."""
        return loaded(self.config.dataset, "dataset").samples(Streams(self.config.seed))

    def array_names(self) -> list[str]:
        """Names of all arrays, such as `losses` or `trajectory/hidden_weight`, missing arrays included."""
        if self.finished:
            return list(self.info["rows"])
        losses, snapshots = [layout.LOSSES, layout.LOSS_ITERATIONS], [layout.SNAPSHOT_ITERATIONS]
        for name in self.info.get("arrays", ()):
            (losses if name in layout.LOSS_GROUP else snapshots).append(name)
        names: list[str] = []
        for expected, found in ((losses, layout.loss_arrays), (snapshots, layout.snapshot_arrays)):
            # The key of a group is made first and gets its rows last. Going on without a checkpoint deletes it first.
            there, key = found(self.path), expected[0]
            begun = acknowledged_rows(layout.array_file(self.path, key)) > 0
            lost = there and key not in there and not self.info.get("resumptions")
            names += [*there, *(expected if begun or lost else ())]
        return list(dict.fromkeys([*names, *self._floor]))

    def check(self, name: str) -> int:
        """Check an array against its checksum and the rows that it must have; return its rows.

        Raises CorruptRunError: it is damaged, or rows are missing.
        """
        path, whose, info = layout.array_file(self.path, name), owner(self.info, name), self.info
        rows, least = info.get("rows", {}).get(name), self._floor.get(name, 0)
        return check_array(path, whose, rows, info.get("crc32", {}).get(name), least)

    def check_all(self, usable: str = "") -> None:
        """Check every array now, instead of when it is first used; `usable` says the way out of damage.

        From then on the run stays as it is here, though another process may start it over.

        Raises CorruptRunError: an array is damaged.
        """
        try:
            # first the arrays that acknowledge rows: a run may be growing
            _ = self.config, self._loss_rows, self.snapshot_iterations
            for name in self._names:
                self._read(name)
            for folder in (self.parameters, self.measures):
                for name in folder:
                    _ = folder[name]
        except CorruptRunError as error:
            raise CorruptRunError(error.file, error.problem, usable or error.usable) from error

    @cached_property
    def _floor(self) -> dict[str, int]:
        """Rows that each array of an unfinished run has at least."""
        if self.finished:
            return {}
        found = load_checkpoint(self.path, self.info.get("config_sha256"))
        return found.rows if found else {}

    def _has(self, name: str) -> bool:
        return name in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.array_names())

    def _read(self, name: str) -> Array:
        if name not in self._loaded:
            with rewriting_told(self.path, self._file):
                rows = self.check(name) if self._verify else None
                array = read_array(layout.array_file(self.path, name), rows)
            self._check_form(name, array)
            self._loaded[name] = array
        return self._loaded[name]

    def _check_form(self, name: str, array: Array) -> None:
        """Refuse an array of another type, or of other axes, than the writer of a run gives it."""
        replicas = "replicas" in self.info
        names: tuple[str, ...] = getattr(self.config.architecture, "matrices", ())  # none of a kind that is not loaded
        if name in (layout.LOSS_ITERATIONS, layout.SNAPSHOT_ITERATIONS):
            right = array.dtype == np.int64 and array.ndim == 1
            right = right and not (self._verify and (np.diff(array, prepend=-1) <= 0).any())
        elif name in (layout.LOSSES, layout.TIMES):
            right = array.dtype == np.float64 and array.ndim == (2 if replicas and name == layout.LOSSES else 1)
        elif (weight := name.removeprefix(f"{layout.TRAJECTORY}/")) in names:
            shape = self.config.architecture.shapes(1)[weight]  # but for the columns of the first, those of the inputs
            found = array.shape[1 + replicas :]
            right = len(found) == len(shape) and found[0] == shape[0] and (weight == names[0] or found == shape)
        else:
            right = array.ndim > replicas
        if not right:
            problem = f"it holds {array.dtype} of shape {array.shape}, which dyn never writes there"
            raise CorruptRunError(layout.array_file(self.path, name), problem)

    def _group(self, name: str, rows: int, dtype: type) -> Array:
        return self._read(name)[:rows] if rows else np.empty(0, dtype)

    def _folder(self, folder: str) -> Mapping[str, Array]:
        prefix = f"{folder}/"
        order = {name: k for k, name in enumerate(self.info.get("arrays") or self.info.get("rows", ()))}
        names = sorted(self._names - {layout.SNAPSHOT_ITERATIONS}, key=lambda name: (order.get(name, len(order)), name))
        found = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        return Arrays(found, lambda name: self._snapshots(prefix + name))

    def _snapshots(self, name: str) -> Array:
        count = len(self.snapshot_iterations)
        rows = self._read(name)
        if len(rows) < count:
            raise CorruptRunError(layout.array_file(self.path, name), f"it has {len(rows)} rows of {count} snapshots")
        return rows[:count]


def load_run(path: str | Path, *, verify: bool = True) -> Run:
    """Open a run directory for reading.

    Raises RunError: it is not a run, is damaged, or was written by a newer version.
    """
    return Run(path, verify=verify)


def end_of(run: Run) -> dict[str, Any]:
    """Return status, iterations, final loss, seconds, device and backend by name; None for unknown values."""
    told = {name: run.info.get(name) for name in ("seconds", "device", "backend")}
    known = run.status == "diverged" or not math.isnan(run.final_loss)
    return {"status": run.status, "iterations": run.iterations, "final_loss": run.final_loss if known else None, **told}


def final_measures(run: Run) -> dict[str, float]:
    """Return the last recorded value of every measure; small arrays as `name.1` or `name.class 0`, a number each.

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


def columns_of(run: Run, name: str) -> list[str]:
    """Return the names of the numbers of a measure: its own, otherwise `1`, `2`, ..."""
    return column_names(run.config, name, math.prod(run.measures[name].shape[1:]))


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
    return {
        "path": run.path, **end_of(run), "measures": final_measures(run), "messages": run.info.get("messages", []),
        "hash": run.hash,
        **{name: run.info.get(name) for name in ("versions", "threads", "provenance")},
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
