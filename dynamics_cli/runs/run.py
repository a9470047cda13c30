"""A run directory, read-only, and the numbers that it amounts to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dynamics_cli.config import RunConfig
from dynamics_cli.config.changes import segments_of
from dynamics_cli.config.check import named_files
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import RunError, UsageError, did_you_mean, needing
from dynamics_cli.kinds import Column, Measure, Samples, Streams
from dynamics_cli.kinds.arrays import AVERAGE, averages_among
from dynamics_cli.kinds.base import loaded
from dynamics_cli.notebook import html_picture, html_table
from dynamics_cli.runs.changes import changed_files, told_of_file, warn_of_changes
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import check_config, read_config, read_info
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import Header, map_array
from dynamics_cli.runs.store.checkpoints import Checkpoint, load_checkpoint
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.text import cell

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
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
        self._names = names
        self._load = load

    def __getitem__(self, name: str) -> Array:
        """Return an array.

        Raises NotRecordedError: there is none of this name; the message lists those that there are.
        """
        if name not in self._names:
            meant = did_you_mean(str(name), self._names)
            raise NotRecordedError(
                f"{name!r} was not recorded{meant}; there is {', '.join(self._names) or 'nothing'}"
            )
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names) or 'nothing'}>"


def stamp(directory: Path) -> tuple[int, ...]:
    """Return which file `run.json` is: another when a run is started over or goes on; or none."""
    try:
        status = (directory / layout.INFO).lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns


def is_rewritten(directory: Path, before: tuple[int, ...]) -> bool:
    """Whether another process has written a run since `stamp` returned `before`, or begins to."""
    return stamp(directory) != before or (not layout.has_begun(directory) and is_locked(directory))


class Run:
    """A run as it was when first looked at; later rows are not seen.

    An unfinished run reads as its checkpoint counts it. Arrays are memory-mapped; each is compared
    with its checksum when first used, and a damaged array raises `CorruptRunError` instead of
    giving numbers.

    Attributes:
        path: the run directory.
        info: the contents of `run.json`.
        status: `complete`, `interrupted`, `diverged` or `failed`; `running` while a living process
            writes the run.
    """

    def __init__(self, path: str | Path, *, any_config: bool = False) -> None:
        """Look at a run directory; with `any_config` its config may be missing or edited.

        Raises RunError: it is not a run, is damaged, or was written by a later version of dyn.
        """
        self.path = Path(path)
        self._stamp = stamp(self.path)
        with self._steady():
            self.info: dict[str, Any] = read_info(self.path)
            self.status: str = self.info["status"]
            if self.status == "running" and not is_locked(self.path):
                self.info = read_info(self.path)  # it may just have ended
                self.status = self.info["status"]
                if self.status == "running":
                    self.status = "interrupted"
            if not any_config:
                check_config(self.path, self.info)
        self._loaded: dict[str, Array] = {}

    @contextmanager
    def _steady(self) -> Iterator[None]:
        """Let an error of reading say that another process is rewriting the run, if that is why.

        Readers take no lock, which the writer of a run holds for hours.
        """
        try:
            yield
        except (RunError, OSError) as error:
            if not is_rewritten(self.path, self._stamp):
                raise
            raise RunError(
                f"another process is writing {self.path}: try again when it has begun or ended"
            ) from error

    def __repr__(self) -> str:
        return f"<Run {self.path.name}: {self.status}, {self.iterations} iterations>"

    def _repr_html_(self) -> str:
        """Show the losses and how the run ended in a notebook; of replicas all losses."""
        picture = html_losses({"": self})
        numbers = end_of(self)
        if "replicas" not in self.info:
            numbers = final_numbers(self)
        rows = [(name.replace("_", " "), cell(value)) for name, value in numbers.items()]
        return f"<h4>{escape(self.path.name)}</h4>{picture}{html_table([], rows)}"

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config."""
        with self._steady():
            config = read_config(self.path, self.info)
        warn_of_changes(self.path, self.info, config)
        return config

    @property
    def hash(self) -> str | None:
        """Identity of the run (see `config.run_hash`)."""
        return self.info.get("hash")

    @property
    def ended(self) -> bool:
        """Whether nothing can continue the run."""
        return self.status in ("complete", "diverged")

    @property
    def finished(self) -> bool:
        """Whether the writer ended in order, so that the number of rows of every array is known."""
        return "rows" in self.info

    @property
    def iterations(self) -> int:
        """Updates made; of an unfinished run up to its checkpoint."""
        if self.info.get("iterations") is not None:
            return int(self.info["iterations"])
        return int(self._counted.meta.get("iteration", 0))

    @cached_property
    def _counted(self) -> Checkpoint:
        """What the end of the run, or its checkpoint, says of the arrays."""
        if self.finished:
            return Checkpoint(rows=self.info["rows"], crc32=self.info["crc32"])
        with self._steady():
            saved = load_checkpoint(self.path, self.info) or Checkpoint()
        return saved.model_copy(update={"arrays": {}})  # the state of the stepper may be large

    @property
    def final_loss(self) -> float:
        """Loss of the last state; NaN when it was not finite, or the run is unfinished."""
        value = self.info.get("final_loss")
        if value is None:
            return math.nan
        return float(value)

    @property
    def losses(self) -> Array:
        """Recorded losses (L,) float64."""
        return self._array(layout.LOSSES, np.float64)

    @property
    def loss_iterations(self) -> Array:
        """Iterations of the recorded losses (L,) int64."""
        return self._array(layout.LOSS_ITERATIONS, np.int64)

    @property
    def times(self) -> Array | None:
        """Times of the recorded losses (L,) float64; `None` where time is iterations x step."""
        if layout.TIMES not in self.array_names:
            return None
        return self._read(layout.TIMES)

    @property
    def snapshot_iterations(self) -> Array:
        """Iterations of the snapshots (K,) int64; measures are recorded there too."""
        return self._array(layout.SNAPSHOT_ITERATIONS, np.int64)

    @cached_property
    def parameters(self) -> Mapping[str, Array]:
        """Recorded weights and buffers by name, in the order of the network, each (K, *shape)."""
        return self._folder(layout.TRAJECTORY)

    @cached_property
    def measures(self) -> Mapping[str, Array]:
        """Recorded measures by name, in the order of the config, each (K, ...) float64."""
        return self._folder(layout.MEASURES)

    def state(self, i: int, *, average: bool = False) -> dict[str, Array]:
        """Weights and buffers of snapshot i (negative: from the end), as arrays of their own.

        With `average` the weights are the averages that `optimizer.average` keeps.

        Raises RunError: the run recorded no parameters, no averages, or no such snapshot.
        """
        count = len(self.snapshot_iterations)
        if not self.parameters:
            raise RunError(
                f"{self.path} has no recorded parameters (see record.parameters in its config)"
            )
        if not -count <= i < count:
            raise RunError(f"{self.path} has {count} snapshots, none with index {i}")
        arrays = {name: np.array(parameter[i]) for name, parameter in self.parameters.items()}
        if getattr(self.config.optimizer, "average", None) is None:
            if average:
                raise RunError(f"{self.path} keeps no averages (see optimizer.average)")
            return arrays
        averages = averages_among(arrays)
        now = {name: a for name, a in arrays.items() if not name.startswith(AVERAGE)}
        if not average:
            return now
        if not averages:
            raise RunError(f"{self.path} recorded no averages (see record.parameters)")
        return {**now, **averages}

    def index_of(self, iteration: int) -> int:
        """Index of the snapshot nearest to an iteration, the earlier of two.

        Raises RunError: the run has no snapshots yet.
        """
        steps = self.snapshot_iterations
        if not len(steps):
            raise RunError(f"{self.path} has no snapshots yet")
        return int(np.argmin(np.abs(steps - iteration)))

    def network(self, i: int, *, average: bool = False) -> Callable[[Array], Array]:
        """The network of snapshot i in evaluation mode: inputs (n, d) to outputs (n,) in float64.

        With `average` it has the averages of the weights.

        The function raises `UsageError` for inputs of another number of columns than the network
        takes.
        """
        architecture = loaded(self.config.architecture, "architecture")
        state = self.state(i, average=average)
        start = None
        if architecture.centered:
            start = self.state(0)
        h = architecture.function(state, start)

        def network(x: Array) -> Array:
            x = np.asarray(x)
            if x.ndim != 2:
                raise UsageError(
                    f"inputs have the shape {x.shape}, a network takes (samples, columns)"
                )
            shapes = architecture.shapes(x.shape[1])
            if any(shape != state[name].shape for name, shape in shapes.items() if name in state):
                raise UsageError(
                    f"inputs have {x.shape[1]} columns, this network takes another number of them;"
                    " np.column_stack([x, np.ones(len(x))]) adds the constant 1 of `append_bias`"
                )
            return h(x)

        return network

    def dataset(self, iteration: int = 0) -> Samples:
        """The data on which state `iteration` was trained and measured.

        They differ among states only where the data change on the way.

        Raises:
            RunError: a file of the data has changed since.
            DataMissingError: a file is gone.
        """
        section = loaded(self.config.dataset, "dataset")
        if iteration and data_changes(self.config):
            before = [part for part in segments_of(self.config) if part.first < iteration]
            section = loaded(before[-1].config.dataset, "dataset")
        named = {Path(file) for _, file in named_files({"dataset": section})}
        for file in changed_files(self.info):
            if file in named:
                raise RunError(told_of_file(file))
        return section.samples(Streams(self.config.seed))

    def columns(self) -> dict[str, Array]:
        """Return the columns of a table with a row for each recorded iteration.

        Numbers that were not recorded there are NaN.

        Columns are `iteration`, `loss`, and the measures by `name`, or `name.column` for measures
        of several numbers.

        Raises UsageError: the run is one of replicas.
        """
        if "replicas" in self.info:
            raise UsageError(f"{self.path} holds replicas: take one of them, {self.path.name}:0")
        series = {"loss": (self.loss_iterations, self.losses)}
        for name, values in self.measures.items():
            rows = values.reshape(len(values), -1)
            for k, column in enumerate(columns_of(self, name)):
                series[column.name] = (self.snapshot_iterations, rows[:, k])
        every = np.unique(np.concatenate([at for at, _ in series.values()]))
        columns = {"iteration": every}
        for name, (at, values) in series.items():
            columns[name] = np.asarray(values)
            if len(at) < len(every):
                columns[name] = np.full(len(every), np.nan, np.result_type(values, np.float32))
                columns[name][np.searchsorted(every, at)] = values
        return columns

    def to_pandas(self) -> DataFrame:
        """Return `columns` as a `pandas.DataFrame`.

        Raises UsageError: pandas is not installed, or the run is one of replicas.
        """
        with needing("Run.to_pandas", "pandas"):
            import pandas
        return pandas.DataFrame(self.columns())

    def check(self, name: str) -> Header:
        """Compare an array, such as `trajectory/hidden_weight`, with its checksum.

        Returns its header. Raises CorruptRunError: it is damaged, or rows are missing.
        """
        return self._counted.check(self.path, name, ended=self.finished)

    def check_all(self, usable: str = "") -> None:
        """Check every array now, not when it is first used; `usable` says the way out of damage.

        From then on the run stays as it is here, though another process may start it over.

        Raises CorruptRunError: an array is damaged.
        """
        try:
            _ = self.config
            for name in self.array_names:
                self._read(name)
        except CorruptRunError as error:
            raise CorruptRunError(error.file, error.problem, usable or error.usable) from error

    @property
    def array_names(self) -> list[str]:
        """Names of all arrays, such as `losses` or `trajectory/hidden_weight`."""
        return list(self._counted.rows)

    def _read(self, name: str) -> Array:
        if name not in self._loaded:
            with self._steady():
                header = self.check(name)
                file = layout.array_file(self.path, name)
                self._loaded[name] = map_array(file, header, self._counted.rows[name])
        return self._loaded[name]

    def _array(self, name: str, dtype: type) -> Array:
        if name not in self.array_names:
            return np.empty(0, dtype)
        return self._read(name)

    def _folder(self, folder: str) -> Mapping[str, Array]:
        inside = [
            name.removeprefix(f"{folder}/")
            for name in self.array_names
            if name.startswith(f"{folder}/") and name != layout.SNAPSHOT_ITERATIONS
        ]
        return Arrays(inside, lambda name: self._read(f"{folder}/{name}"))


def html_losses(runs: Mapping[str, Run]) -> str:
    """Return a picture of the losses of runs by name for notebooks; empty without finite ones."""
    # Matplotlib takes long to import
    from dynamics_cli.plotting.chart import Chart, Line, draw_charts, look

    lines = [
        Line(x=run.loss_iterations, y=run.losses, name=name, **look(k))
        for k, (name, run) in enumerate(runs.items())
    ]
    chart = Chart(lines=lines, ylabel="loss")
    if not np.isfinite(chart.values).any():
        return ""
    return html_picture(draw_charts([chart])._repr_png_(), "loss over iterations")


def end_of(run: Run) -> dict[str, Any]:
    """Return status, iterations, final loss, seconds, device, backend by name; None if unknown."""
    end = {"status": run.status, "iterations": run.iterations, "final_loss": run.final_loss}
    if run.status != "diverged" and math.isnan(run.final_loss):
        end["final_loss"] = None
    return end | {name: run.info.get(name) for name in ("seconds", "device", "backend")}


def final_measures(run: Run) -> dict[str, float]:
    """Return the last recorded value of every measure; numbers of small arrays by `columns_of`.

    For a run that was interrupted, failed or stopped early, taken at the last state at which the
    measure was due.
    """
    final: dict[str, float] = {}
    for name in run.measures:
        values = run.measures[name]
        if not measures_last_state(run):
            values = due_rows(values)
        if len(values) and values[-1].size <= FEW_NUMBERS:
            last = values[-1].ravel().tolist()
            for column, value in zip(columns_of(run, name), last, strict=True):
                final[column.name] = value
    return final


def measures_last_state(run: Run) -> bool:
    """Return whether a run came to the end, where every measure is due and NaN is a result."""
    at_end = run.status == "complete" and not run.info.get("stopped_early")
    return at_end or run.status == "diverged"


def due_rows(values: NDArray[Any]) -> NDArray[Any]:
    """Return the rows (k, ...) of states at which a measure was due; its other rows are NaN."""
    due: NDArray[Any] = values[~np.isnan(values.reshape(len(values), -1)).all(1)]
    return due


def of_measure(config: RunConfig, name: str, ask: Callable[[Measure], T]) -> T | None:
    """Return the answer of a measure of the config; None where its kind is not loaded."""
    measures = (measure for measure in config.record.measures or () if isinstance(measure, Measure))
    return next((ask(measure) for measure in measures if measure.name == name), None)


def data_changes(config: RunConfig) -> list[int]:
    """Return the iterations from which a run is trained on other data."""
    return [change.at for change in config.changes or () if change.dataset is not None]


def last_settings(config: RunConfig) -> dict[str, Any]:
    """Return the sections of a config after its last change, as far as their kinds are loaded."""
    sections = dict(config)
    if config.changes:
        with suppress(ValidationError):
            sections = dict(segments_of(config)[-1].config)
    return sections


def columns_in(config: RunConfig, name: str, shape: Sequence[int]) -> list[Column]:
    """Return what labels the numbers, of a shape, that a measure gives at a state of a run.

    Several numbers have the labels of the measure, otherwise `1`, `2`, ...
    """
    last = last_settings(config)
    bound = of_measure(config, name, lambda measure: measure.bound(last))
    if not shape:
        return [Column(name, "", bound)]
    count = math.prod(shape)
    labels = list(of_measure(config, name, lambda measure: measure.columns(dict(config))) or ())
    if not len(set(labels)) == len(labels) == count:
        labels = [str(k + 1) for k in range(count)]
    return [Column(f"{name}.{label}", label, bound) for label in labels]


def columns_of(run: Run, name: str) -> list[Column]:
    """Return what labels the numbers of a measure of a run."""
    return columns_in(run.config, name, run.measures[name].shape[1:])


def measured(run: Run, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return iterations (k,) and values (k, c) of a measure, at the states where it was due."""
    steps = np.asarray(run.snapshot_iterations)
    values = np.array(run.measures[name], dtype=np.float64).reshape(len(steps), -1)
    due = ~np.isnan(values).all(axis=1)  # a measure may have a schedule of its own
    return steps[due], values[due]


def curve_of(run: Run, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return iterations (k,) and values (k,) of `loss`, a measure, or its number `name.column`.

    States at which a measure was not due are left out; both are empty where the run has no such
    curve.

    Raises UsageError: the measure has several numbers, and `name` chooses none.
    """
    if name == "loss":
        return np.asarray(run.loss_iterations), np.asarray(run.losses)
    if name in run.measures:
        steps, values = measured(run, name)
        if values.shape[1] == 1:
            return steps, values[:, 0]
        columns = columns_of(run, name)
        raise UsageError(f"{name} has {len(columns)} numbers; name one, such as {columns[0].name}")
    for measure in run.measures:
        if name.startswith(f"{measure}."):
            names = [column.name for column in columns_of(run, measure)]
            if name in names:
                steps, values = measured(run, measure)
                return steps, values[:, names.index(name)]
    return np.zeros(0, np.int64), np.zeros(0)


def final_numbers(run: Run) -> dict[str, Any]:
    """Return how a run ended, and its final measures, by name."""
    return {**end_of(run), **final_measures(run)}


def describe(run: Run) -> dict[str, Any]:
    """Return how a run ended, its identity, where it was made, its config and its files."""
    return {
        "path": run.path,
        **end_of(run),
        "measures": final_measures(run),
        "messages": run.info.get("messages", []),
        "hash": run.hash,
        **{name: run.info.get(name) for name in ("versions", "threads", "provenance")},
        "snapshots": len(run.snapshot_iterations),
        "losses": len(run.losses),
        "config": to_plain(run.config),
        "files": [run.path / name for name in file_sizes(run.path)],
    }


def file_sizes(directory: Path) -> dict[str, int]:
    """Return the size in bytes of every file below a run directory, without the lock."""
    return {
        path.relative_to(directory).as_posix(): status.st_size
        for path, status in files.sizes(directory).items()
        if path.name not in layout.LOCKS
    }
