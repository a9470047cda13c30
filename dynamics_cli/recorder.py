"""Records a training loop that is not the program's as an ordinary run: `dyn.Recorder`.

`instruments.Instrument` measures the network, `runs.RunWriter` writes. Begin with `Recorder.step`.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.config.dump import flat, to_plain
from dynamics_cli.errors import InputError, UsageError
from dynamics_cli.instruments.instrument import Instrument, given_network, measuring
from dynamics_cli.instruments.modules import opened
from dynamics_cli.kinds import Kind, Loss, Problem, Snapshots, get_kind
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.history import History
from dynamics_cli.live import live_curves
from dynamics_cli.runs.info import Status, begun_info, read_config, read_info
from dynamics_cli.runs.run import FEW_NUMBERS
from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.store.layout import is_array_name
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.text import shorten

BATCH_LOSS = "batch_loss"
"""The measure that holds the losses given to `step`."""
_LONGEST = 20_000
"""Characters of the text of a module in a config."""


class _Times:
    """The states of a schedule, in order."""

    def __init__(self, schedule: Snapshots) -> None:
        self._schedule = schedule
        self._regular: int | None = 0
        self.next = 0

    def pass_by(self, iteration: int) -> None:
        """Let `next` be the first state after `iteration`."""
        while self._regular is not None and self._regular <= iteration:
            self._regular = self._schedule.next_after(self._regular)
        later = [i for i in self._schedule.include if i > iteration]
        if self._regular is not None:
            later.append(self._regular)
        self.next = min(later, default=sys.maxsize)


class Recorder:
    """Records a network in a training loop of your own as a run.

    `step` after each update counts it; at the times of `every` it measures a whole copy of the
    network and of the loss, as `dyn.measure` does, and writes. The network, its mode, gradients and
    hooks, and torch's random numbers stay as they are. Recorded losses are of all samples. State 0
    is measured here, the last state when the `with` block ends or at `close()`.

    Args:
        directory: the run directory; `outputs/runs/NAME` is found by its name.
        model: the module that is trained; it may be wrapped by `torch.compile` or for parallel
            training.
        x: inputs, as `dyn.measure` takes them.
        y: labels.
        loss: as `dyn.measure` takes it.
        optimizer: the optimizer of torch, whose name and numbers are kept; of Adam, AdamW and
            RMSprop `preconditioned_sharpness` reads the state.
        measures: as `dyn.measure` takes them; `at` gives a measure times of its own, among the
            recorded states too. Measures of the last update take the weights one step before a
            record is due; they are NaN at state 0, and at the end where no record was due.
        every: iterations between two records, a list of iterations, or a kind of snapshots such as
            `{"kind": "geometric", "ratio": 1.1}`.
        parameters: which weights are recorded: "none", "all", or names.
        test: held-out inputs and labels, for `test_loss` and `test_accuracy`.
        scalars: numbers of your own by name, as functions that are called when a record is due.
        seed: of random vectors; give the seed of your loop.
        device: where the copy of the network is measured.
        dtype: its precision, as in `dyn.measure`.
        name: of the run (default: the name of the directory).
        force: start over where the directory holds a run.
        live: draw the losses and the measures while they are recorded, as in `dyn.train`.

    Raises:
        UsageError: the directory holds a complete run, or one that no recorder wrote.
        LockedRunError: another process writes the run.
        InputError: model, data, loss and measures do not fit together; the message says why.
    """

    _job: RunConfig | None = None
    """The config of the job of a sweep that this run is, whose lock is held."""

    def __init__(
        self,
        directory: str | Path,
        model: nn.Module,
        x: Any,
        y: Any = None,
        *,
        loss: Any = "cross_entropy",
        optimizer: torch.optim.Optimizer | None = None,
        measures: Sequence[Any] = ("train_loss",),
        every: float | Sequence[int] | Mapping[str, Any] = 100,
        parameters: str | Sequence[str] = "none",
        test: tuple[Any, Any] | None = None,
        scalars: Mapping[str, Callable[[], float]] | None = None,
        seed: int = 0,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] | None = None,
        name: str | None = None,
        force: bool = False,
        live: bool = False,
    ) -> None:
        self.directory = Path(directory)
        self.iteration = 0
        self._model = opened(model)
        self._scalars = dict(scalars or {})
        self._batch_loss = math.nan
        x_test, y_test = test or (None, None)
        self._device = device
        with measuring(device):
            self._instrument = Instrument(
                model,
                x,
                y,
                loss=loss,
                measures=measures,
                x_test=x_test,
                y_test=y_test,
                optimizer=optimizer,
                seed=seed,
                device=device,
                dtype=dtype,
            )
        self._names = list(self._instrument.measures)
        names = [*self._names, *self._scalars, BATCH_LOSS]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"{twice[0]!r} is the name of two measures")
        if wrong := [name for name in self._scalars if not is_array_name(name)]:
            raise UsageError(
                f"scalars: {wrong[0]!r} cannot name a file: take letters, digits, '_', '-' and '.'"
            )
        if "train_loss" not in self._names:
            self._instrument.measures["train_loss"] = get_kind("measure", "train_loss")()  # type: ignore[assignment]
            self._instrument.memories["train_loss"] = {}
        if isinstance(loss, str | Mapping | Loss):
            loss = self._instrument.config.loss
        with measuring(device):
            self._config = self._described(
                name or self.directory.name, loss, optimizer, every, parameters
            )
        if isinstance(self._config.record.snapshots, dict):
            raise InputError(
                f"every: there is no kind of snapshots {self._config.record.snapshots['kind']!r}"
            )
        weights = self._instrument.network.shapes(1)
        groups = {"all": list(weights), "none": []}
        asked = self._config.record.parameters
        self._weights = groups[asked] if isinstance(asked, str) else list(asked)
        if wrong := [name for name in self._weights if name not in weights]:
            raise InputError(f"parameters: the model has no weight {wrong[0]!r}")
        self._every = _Times(self._config.record.snapshots)
        self._own_times = {
            name: _Times(measure.at)
            for name, measure in self._instrument.measures.items()
            if measure.at is not None
        }
        self._history: History[Problem] = History(self._instrument.updates)
        self._shapes: dict[str, list[int]] = {}
        self._due = 0
        self._seconds = 0.0
        self._began = time.monotonic()
        self._closed = False
        self._loss = math.nan
        self._writer: RunWriter | None = None
        self._open = ExitStack()
        if self._job is None:
            self._open.enter_context(run_lock(self.directory, wait=False))
        try:
            curves = live_curves(
                self.directory.name, self._config, live=live, hidden=["train_loss"]
            )
            self._listener = self._open.enter_context(curves)
            self._prepare(force, sys._getframe(1).f_code.co_filename)
        except BaseException:
            self._open.close()
            raise

    def _prepare(self, force: bool, loop: str) -> None:
        """Begin a run with state 0, unless an unfinished one waits for `load_state_dict`.

        `loop` is the file of the training loop.
        """
        info = None
        if self._job is None and not force:
            info = begun_info(self.directory)
        if info is not None:
            if read_config(self.directory, info).recorded is None:
                raise UsageError(
                    f"{self.directory} holds a run that no recorder wrote: give another directory"
                )
            if info["status"] in ("complete", "diverged"):
                raise UsageError(
                    f"{self.directory} holds a run that has ended: force=True starts over"
                )
            return
        about = {"device": str(next(self._model.parameters()).device), "backend": RECORDED}
        self._writer = self._begun(about, force, loop)
        self._listen()
        self._write(self._names)
        self._plan()
        self._keep()

    def _begun(self, about: Mapping[str, Any], force: bool, loop: str) -> RunWriter:
        return RunWriter.create(self.directory, self._config, about, force=force, loop=loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error)

    def step(self, *, loss: Tensor | float = math.nan) -> None:
        """Count an update that was made, and record the network where that is due.

        `loss` is the loss of the batch, recorded as `batch_loss`.

        Raises:
            UsageError: the directory holds an unfinished run, or the recorder is closed.
            RunError: the disk is full, not writable or failing.
            InputError: torch cannot compute a measure.
        """
        self.iteration += 1
        if self.iteration >= self._due:
            self._opened()
            self._batch_loss = _number(loss)
            times = self._own_times
            now = self.iteration
            self._write(
                [name for name in self._names if name not in times or times[name].next == now]
            )
            self._plan()
        self._keep()

    def note(self, words: str) -> None:
        """Mark the iteration reached so far on curves and pages of the run, in a few words.

        Raises:
            UsageError: `words` is no line of text, the directory holds an unfinished run, or the
                recorder is closed.
            RunError: the disk is full, not writable or failing.
        """
        if not isinstance(words, str) or not words.strip() or not words.isprintable():
            raise UsageError(f"a note is a line of text, not {words!r}")
        writer = self._opened()
        writer.notes = [*writer.notes, {"at": self.iteration, "words": words.strip()}]

    def _opened(self) -> RunWriter:
        """Return the writer; refuse a recorder that is closed, or has not gone on."""
        if self._closed:
            raise UsageError(f"{self.directory} holds a run that was closed")
        if self._writer is None:
            raise UsageError(
                f"{self.directory} holds an unfinished run: load_state_dict() continues it,"
                " force=True starts over"
            )
        return self._writer

    def _listen(self) -> None:
        """Let the curves of a notebook have what the writer records."""
        if self._writer is not None and self._listener is not None:
            self._writer.listen(self._listener)

    def _keep(self) -> None:
        """Keep a copy of the network where measures of the state that is due are of updates."""
        if self._history.wants(self.iteration, self._due):
            with measuring(self._device):
                self._history.keep(self.iteration, self._instrument.problem())

    def _plan(self) -> None:
        times = [self._every, *self._own_times.values()]
        for schedule in times:
            schedule.pass_by(self.iteration)
        self._due = min(schedule.next for schedule in times)

    def _write(self, names: Iterable[str]) -> None:
        """Write the current state with the measures of some names.

        From then on a kill does not lose it.
        """
        assert self._writer is not None
        now = self.iteration
        measured = dict.fromkeys(names)
        if "train_loss" not in self._own_times:
            measured["train_loss"] = None
        with measuring(self._device):
            problem = self._instrument.problem()
            weights = given_network(problem).weights()
            kept = {name: weights[name].astype(self._config.dtype)[None] for name in self._weights}
            before = self._history.before(now)
            if now == 0:
                self._instrument.start = problem
            preconditioner = self._instrument.preconditioner(problem)
            numbers = dict(self._instrument.at(problem, now, measured, before, preconditioner))
            if now == 0:
                self._instrument.start = None
        measures = {}
        for name in self._names:
            shape = self._shapes.setdefault(name, list(np.shape(numbers.get(name, 0.0))))
            row = numbers.get(name, np.full(shape, np.nan))
            if list(row.shape) != shape:
                raise InputError(
                    f"{name}: it gives numbers {row.shape}, before {tuple(shape)}, since other"
                    " weights are trained now: name the weights by `blocks`, or record another run"
                )
            measures[name] = row[None]
        scalars = {name: function() for name, function in self._scalars.items()}
        scalars[BATCH_LOSS] = self._batch_loss
        for name, value in scalars.items():
            measures[name] = np.array([_number(value)])
        self._batch_loss = math.nan
        if "train_loss" in numbers:
            self._loss = float(numbers["train_loss"])
            self._writer.append_losses([now], [self._loss])
        self._writer.append_snapshots([now], kept, measures)
        self._writer.checkpoint({}, {"iteration": now, "seconds": self.seconds()})

    def seconds(self) -> float:
        """Return the wall time since the first record, that before interruptions included."""
        return self._seconds + max(0.0, time.monotonic() - self._began)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint of the loop has to hold.

        It consists of tensors, numbers and texts, for `torch.save`.
        """
        first = vars(self._instrument).get("first")
        arrays = self._writer.arrays if self._writer is not None else {}
        return {
            "iteration": self.iteration,
            "seconds": self.seconds(),
            "loss": self._loss,
            "shapes": self._shapes,
            "rows": {name: header.rows for name, header in arrays.items()},
            "crc32": {name: header.crc32 for name, header in arrays.items()},
            "memories": {
                name: {key: torch.from_numpy(np.array(value)) for key, value in memory.items()}
                for name, memory in self._instrument.memories.items()
            },
            "start": first and given_network(first).state_dict(),
            "before": {
                iteration: given_network(problem).state_dict()
                for iteration, problem in self._history
            },
            "trained": self._instrument.trained,
            "notes": self._writer.notes if self._writer is not None else [],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the run in the directory, from the iteration of a former `state_dict()`.

        Later rows are dropped.

        Raises:
            UsageError: the directory holds no unfinished run, or one that recorded something else,
                or other data, another network, loss, optimizer or seed.
            RunError: the run is damaged, or has not come so far.
        """
        if self._writer is not None:
            raise UsageError(f"{self.directory} holds no unfinished run to continue")
        was = read_config(self.directory, read_info(self.directory))
        before = to_plain(was)
        now = to_plain(self._config)
        if before["record"] != now["record"]:
            raise UsageError(
                f"{self.directory} was recorded with other measures, times or parameters:"
                " force=True starts over"
            )
        if changed := _changes(before, now):
            raise UsageError(
                f"{self.directory} was recorded with {', '.join(changed)}: go on with these, or"
                " force=True starts over"
            )
        self.iteration = state["iteration"]
        self._seconds = state["seconds"]
        self._began = time.monotonic()
        self._loss = state["loss"]
        self._shapes = dict(state["shapes"])
        meta = {"iteration": self.iteration, "seconds": self._seconds}
        saved = Checkpoint(rows=state["rows"], crc32=state["crc32"], meta=meta)
        self._writer = RunWriter.reopen(self.directory, saved)
        self._listen()
        self._writer.notes = state.get("notes", [])
        self._instrument.start = state["start"]
        for name, memory in state["memories"].items():
            self._instrument.memories[name] = {
                key: value.numpy().copy() for key, value in memory.items()
            }
        self._instrument.trained = state.get("trained", self._instrument.trained)
        with measuring(self._device):
            for iteration, weights in state.get("before", {}).items():
                self._history.keep(iteration, self._instrument.problem(weights))
        self._writer.checkpoint({}, meta)
        self._plan()

    def close(self, error: BaseException | None = None) -> None:
        """Record the last state and end the run, after an error as interrupted or failed."""
        writer = self._writer
        self._closed = True
        try:
            if writer is None:
                return
            if error is None and writer.last_snapshot < self.iteration:
                self._write(self._names)
            status: Status = "complete"
            messages = []
            if isinstance(error, KeyboardInterrupt):
                status = "interrupted"
            elif error is not None:
                status = "failed"
                messages = [f"{type(error).__name__}: {error}"]
            elif not math.isfinite(self._loss):
                status = "diverged"
            writer.finish(
                status,
                iterations=self.iteration,
                final_loss=self._loss,
                seconds=self.seconds(),
                messages=messages,
            )
        finally:
            self._writer = None
            self._due = 0
            self._open.close()

    def _described(
        self, name: str, loss: Any, optimizer: Any, every: Any, parameters: str | Sequence[str]
    ) -> RunConfig:
        """Return the config of the run directory, in words and numbers where there is no kind."""
        instrument = self._instrument
        model = self._model
        weights = list(model.parameters())
        kind = weights[0].device.type
        descent = {}
        if optimizer is not None:
            descent = {"name": type(optimizer).__name__, **_plain_numbers(optimizer.defaults)}
        if isinstance(every, int | float):
            interval = int(every) if every == int(every) else every
            every = {"kind": "every", "interval": interval}
        elif not isinstance(every, Mapping):
            every = {"kind": "list", "include": list(every)}
        sections: dict[str, dict[str, Any]] = {
            "dataset": {
                "n": instrument.data.samples.n,
                "digest": instrument.data.digest(),
                "inputs": list(map(list, instrument.network.sample)),
            },
            "architecture": {
                "name": type(model).__name__,
                "weights": sum(w.numel() for w in weights),
                "trained": instrument.trained,
                "module": str(model)[:_LONGEST],
            },
            "initialization": {},
            "loss": {
                "name": getattr(loss, "__name__", type(loss).__name__),
                **_numbers_of(loss),
            },
            "optimizer": descent,
        }
        described: dict[str, Any] = {
            key: {"kind": RECORDED, **section} for key, section in sections.items()
        }
        if isinstance(loss, Kind):
            described["loss"] = loss.model_dump(exclude_none=True)
        measures = [
            measure.model_dump(exclude_none=True)
            for measure in instrument.config.record.measures or ()
        ]
        whole = {
            RECORDED: True if self._job is None else self._job.recorded,
            "name": re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or RECORDED,
            "seed": instrument.config.seed,
            "device": kind if kind in ("cpu", "cuda") else "auto",
            "dtype": "float64"
            if torch.float64 in {w.dtype.to_real() for w in weights}
            else "float32",
            **described,
            "record": {
                "snapshots": every,
                "measures": measures,
                "parameters": parameters if isinstance(parameters, str) else list(parameters),
            },
        }
        return load_config(whole, check_files_exist=False, lenient=True)


def _number(value: Any) -> float:
    """Return a number that the user gives; one of Python is not rounded to torch's dtype."""
    return float(value.item() if isinstance(value, Tensor) else value)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the settings of a run that a recorder does not go on with, with both their values.

    A setting that an older recorder did not keep is no change.
    """
    keys = ("seed", "dataset", "architecture", "loss", "optimizer")
    old = flat({key: before.get(key) for key in keys})
    new = flat({key: now.get(key) for key in keys})
    told = []
    for key, value in old.items():
        if key == "dataset.digest" and new.get(key) != value:
            told.append("other data")
        elif key in new and new[key] != value:
            told.append(f"{key} {shorten(str(value), 60)} (now {shorten(str(new[key]), 60)})")
    return told


def _plain_numbers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are numbers, or a few numbers."""
    numbers = {}
    for key, value in settings.items():
        if isinstance(value, Tensor):
            array = value.detach().cpu().numpy()
        else:
            array = np.array(value)
        if array.dtype.kind in "biuf" and array.size <= FEW_NUMBERS and np.isfinite(array).all():
            numbers[key] = array.tolist()
    return numbers


def _numbers_of(loss: Any) -> dict[str, Any]:
    """Return the numbers of a loss that is a module of torch, such as weights of classes."""
    if not isinstance(loss, nn.Module):
        return {}
    named = {key: value for key, value in vars(loss).items() if key != "training"}
    return _plain_numbers({**named, **dict(loss.named_buffers())})
