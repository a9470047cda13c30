"""A run directory, read-only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError, RunError, UsageError, did_you_mean
from dynamics_cli.runs import summary
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import check_config, old_owner, owner, read_config, read_info
from dynamics_cli.runs.steady import which_file
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.arrays import acknowledged_rows, check_array, read_array
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.runs.store.old_arrays import LAST_FORMAT, check_old_array, is_old

if TYPE_CHECKING:
    from dynamics_cli.datasets.samples import Samples

Array = NDArray[Any]

_TWO_LAYER = {f"{layout.TRAJECTORY}/hidden_weight": 2, f"{layout.TRAJECTORY}/output_weight": 1}
"""Parameters of a two-layer network -> axes that they have."""


class NotRecordedError(UsageError, KeyError):
    """A run has no array of this name."""

    __str__ = Exception.__str__


class Arrays(Mapping[str, Array]):
    """Arrays by name, read from the disk when asked for."""

    def __init__(self, names: list[str], load: Callable[[str], Array]) -> None:
        """Hold the names, and the function that reads one of them."""
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


class Run:
    """A run as it was when first looked at: what is appended later is not seen.

    An unfinished run reads as everything that was acknowledged. Arrays are memory-mapped; each is checked against its
    checksums when first used, and a damaged one raises `CorruptRunError` instead of giving numbers.

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
        return summary.html(self)

    def page(self) -> Any:
        """Return everything that the run can show as one HTML file, a `pages.Page`, which notebooks show too."""
        return import_module("dynamics_cli.pages").page_of([self])  # above this room: only when it is asked for

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config."""
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
        return min(len(self._read(name)) for name in reversed(present))  # the acknowledging one is read first

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
        architecture, state = self.config.architecture, self.state(i)
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
        from dynamics_cli.config.streams import Streams

        return self.config.dataset.samples(Streams(self.config.seed))

    def array_names(self) -> list[str]:
        """Names of all arrays, such as `losses` or `trajectory/hidden_weight`, missing ones included."""
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
        """Check one array against its checksum, and against the rows that it must have; return its rows.

        Raises CorruptRunError: it is damaged, or rows are missing.
        """
        path, whose, info = layout.array_file(self.path, name), owner(self.info, name), self.info
        rows, least = info.get("rows", {}).get(name), self._floor.get(name, 0)
        if info["format"] <= LAST_FORMAT and is_old(path):
            return check_old_array(path, old_owner(info, name), rows, info.get("seals", {}).get(name), least)
        return check_array(path, whose, rows, info.get("crc32", {}).get(name), least)

    def check_all(self, usable: str = "") -> None:
        """Check every array now, instead of when it is first used; `usable` says what can be done with a damaged one.

        From then on the run stays as it is here, though another process may start it over.

        Raises CorruptRunError: one is damaged.
        """
        try:
            # first what acknowledges: a run may be growing
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
            try:
                rows = self.check(name) if self._verify else None
                array = read_array(layout.array_file(self.path, name), rows)
            except CorruptRunError as error:
                if which_file(self.path) == self._file:
                    raise
                changed = "since it was opened another process has started it over, or gone on with it: open it again"
                raise RunError(f"{self.path}: {changed}") from error
            self._check_form(name, array)
            self._loaded[name] = array
        return self._loaded[name]

    def _check_form(self, name: str, array: Array) -> None:
        """Refuse an array of another type, or of other axes, than the writer of a run gives it."""
        replicas = "replicas" in self.info
        if name in (layout.LOSS_ITERATIONS, layout.SNAPSHOT_ITERATIONS):
            right = array.dtype == np.int64 and array.ndim == 1
            right = right and not (self._verify and (np.diff(array, prepend=-1) <= 0).any())
        elif name in (layout.LOSSES, layout.TIMES):
            right = array.dtype == np.float64 and array.ndim == (2 if replicas and name == layout.LOSSES else 1)
        elif name in _TWO_LAYER and self.config.architecture.kind == "two_layer":
            network = self.config.architecture
            several = name.endswith("output_weight") and getattr(network, "outputs", None) is not None
            neurons = 1 + replicas + several  # their axis
            right = array.ndim == neurons + _TWO_LAYER[name] and array.shape[neurons] == getattr(network, "width", 0)
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
