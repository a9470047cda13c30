"""Sweeps of a function: a job is a call with its settings, recorded as a run.

A sweep turns settings into run directories. Training a config is one way (`Task`), calling a
function another (`CallTask`); planning, shards, executors, tables and pictures are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.config.reader import Assignment, read_value
from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.kinds.base import RECORDED
from dynamics_cli.kinds.registry import load, place_of
from dynamics_cli.recorder import Recorder
from dynamics_cli.runs.info import begun_info
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.sweeps.columns import TAKEN
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.training.many.train import Task, asked_hash
from dynamics_cli.training.session import Obtained
from dynamics_cli.training.signals import Interrupted, SignalStop

SECTIONS = ("dataset", "architecture", "initialization", "loss", "optimizer")
_HERE: dict[str, Callable[..., Any]] = {}
"""Functions of this process by their names, `/folder/my_loop.py:train`."""


def _name_of(source: Callable[..., Any] | str) -> str:
    """Return file and name of a function, `/folder/my_loop.py:train`.

    Raises UsageError: it is not in a file, or inside of another function.
    """
    if isinstance(source, str):
        file, _, name = source.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    file, name = source.__code__.co_filename, source.__qualname__
    if not Path(file).is_file() or not name.isidentifier():
        raise UsageError(
            f"the function {name} cannot be found by other processes: write it to a file, outside"
            " of classes and functions"
        )
    named = f"{Path(file).absolute()}:{name}"
    _HERE[named] = source
    return named


def _function(named: str) -> Callable[..., Any]:
    """Return the function of a name.

    Raises:
        InputError: its file cannot be imported.
        UsageError: the file has no such function.
    """
    file, _, name = named.rpartition(":")
    if named in _HERE:
        return _HERE[named]
    module = vars(load(Path(file)))
    known = [key for key, value in module.items() if inspect.isfunction(value)]
    if name not in known:
        there = ", ".join(known) or "none"
        raise UsageError(
            f"{file} has no function {name!r}{did_you_mean(name, known)}; there is {there}"
        )
    return module[name]  # type: ignore[no-any-return]


def _sha256(named: str) -> str:
    file = named.rpartition(":")[0]
    with files.os_errors_as_run_errors(Path(file)):
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@dataclass(frozen=True)
class CallTask(Task):
    """A call of a function, recorded as a run."""

    apart = True

    def train(
        self,
        *,
        force: bool = False,
        under_way: Callable[[float], object] = lambda reached: None,
        messages: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Obtained:
        """Return the run of the call, which is made unless it has ended before.

        Raises:
            RunError: the function raised an exception, or gave something else than numbers.
            Interrupted: a signal came; the same call begins again.
        """
        assert self.directory is not None
        began = time.monotonic()
        with run_lock(self.directory, on_wait=messages):
            info = None if force else begun_info(self.directory)
            if info is not None:
                run = Run(self.directory)
                if run.info.get("asked") != self.asked({}):
                    raise UsageError(f"{self.directory} holds another run: move it away")
                if run.ended:
                    return Obtained(run, reused=True, seconds=0.0)
            self._call(began, again=info is not None, force=force)
        return Obtained(Run(self.directory), reused=False, seconds=time.monotonic() - began)

    def _call(self, began: float, *, again: bool, force: bool) -> None:
        """Call the function, and record what it does or returns."""
        assert self.directory is not None
        config = self.configs[0]
        assert isinstance(config.recorded, dict)
        named = config.recorded["function"]
        recorders: list[JobRecorder] = []

        def record(model: Any, x: Any, y: Any = None, **options: Any) -> Recorder:
            """Return the recorder of this job; the arguments are those of `Recorder`."""
            if recorders:
                raise UsageError("a job has one recorder")
            recorders.append(JobRecorder(self, again, model, x, y, force=force, **options))
            return recorders[0]

        error: BaseException | None = None
        try:
            with SignalStop() as stop:
                if _sha256(named) != config.recorded["sha256"]:
                    raise UsageError(f"{named} was edited since the sweep began")
                function = _function(named)
                given: list[Any] = [{**config.recorded["settings"], "seed": config.seed}]
                if len(inspect.signature(function).parameters) > 1:
                    given.append(record)
                returned = function(*given)
                if not recorders:
                    writer = self.writer(config, {}, again=again, force=force)
                    _write(writer, returned, time.monotonic() - began)
        except (Exception, KeyboardInterrupt) as failed:
            error = failed
            # native code that is interrupted while it is imported raises an ImportError
            if stop.received is not None or isinstance(failed, (KeyboardInterrupt, Interrupted)):
                number = stop.received or signal.SIGINT
                if isinstance(failed, Interrupted):  # by training inside of the function
                    number = failed.number
                told = f"{self.directory} was interrupted: the same call begins again"
                raise Interrupted(told, number) from None
            why = place_of(failed) or f"{type(failed).__name__}: {failed}"
            lines = "".join(traceback.format_exception(failed))
            files.save(self.directory / layout.TRACEBACK, lines.encode(errors="replace"))
            told = f"{self.directory}: {why} ({layout.TRACEBACK} there says more)"
            raise RunError(told) from failed
        finally:
            for recorder in recorders:
                recorder.close(error)

    def writer(
        self, config: RunConfig, about: Mapping[str, Any], *, again: bool, force: bool
    ) -> RunWriter:
        """Return the writer of the run, which begins anew where a call was interrupted."""
        assert self.directory is not None
        if again:
            return RunWriter.reopen(
                self.directory, Checkpoint(rows={}, crc32={}, meta={"iteration": 0})
            )
        own = asked_hash(self.configs[0], {})
        about = {"backend": RECORDED, **about, "hash": own, "asked": self.asked({})}
        return RunWriter.create(self.directory, config, about, force=force)


def _write(writer: RunWriter, returned: Any, seconds: float) -> None:
    """Write the numbers that a function returned, as measures of one state, and end the run.

    Raises UsageError: they are none, or have names that the table of a sweep takes.
    """
    if not isinstance(returned, Mapping):
        returned = {"value": returned}
    numbers = {}
    for name, value in returned.items():
        if name in TAKEN and name != "final_loss":
            raise UsageError(f"the table has a column {name!r} of its own: take another name")
        try:
            numbers[name] = np.asarray(value, np.float64)[None]
        except (TypeError, ValueError) as error:
            told = f"the function returned {name} = {value!r}, not a number: return numbers by name"
            raise UsageError(f"{told}, or record by its second argument") from error
    final_loss = float(numbers.pop("final_loss", np.array([np.nan]))[0])
    writer.append_snapshots([0], {}, numbers)
    writer.finish("complete", iterations=0, final_loss=final_loss, seconds=seconds)


class JobRecorder(Recorder):
    """The recorder of a call, which holds the lock of the run and knows its identity."""

    def __init__(
        self, task: CallTask, again: bool, model: Any, x: Any, y: Any, **options: Any
    ) -> None:
        assert task.directory is not None
        self._job = task.configs[0]
        self._task = task
        self._again = again
        options = {"seed": self._job.seed, "name": self._job.name, **options}
        super().__init__(task.directory, model, x, y, **options)

    def _begun(self, about: Mapping[str, Any], force: bool, loop: str) -> RunWriter:
        return self._task.writer(self._config, about, again=self._again, force=force)


class PlannedCalls(PlannedSweep):
    """The jobs of a sweep of a function."""

    task = CallTask

    def _written(self) -> dict[str, Any]:
        named = _name_of(self._source)
        _function(named)  # before anything is written
        self.loop = named.rpartition(":")[0]
        fixed = {}
        for text in self._overrides:
            key, _, value = text.partition("=")
            fixed[key.strip()] = read_value(value, "--set", key)
        plain = {
            RECORDED: {"function": named, "sha256": _sha256(named), "settings": fixed},
            "name": named.rpartition(":")[2],
            **{section: {"kind": RECORDED} for section in SECTIONS},
            **{key: value for key, value in self._settings.items() if value is not None},
        }
        self._base = load_config(plain, check_files_exist=False, lenient=True)
        return plain

    def _config_of(self, changes: Sequence[Assignment]) -> RunConfig:
        values = {".".join(change.path): change.value for change in changes}
        seed = values.pop("seed", self._base.seed)
        call = self.written[RECORDED]
        recorded = {**call, "settings": {**call["settings"], **values}}
        return self._base.model_copy(update={RECORDED: recorded, "seed": seed})
