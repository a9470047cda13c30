"""The one writer of a run directory, and its arrays that grow together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.config import RunConfig, to_yaml
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.kinds.registry import KindSource, foreign_sources
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import (
    FORMAT,
    Info,
    Status,
    owner,
    provenance,
    read_config,
    read_info,
    write_info,
)
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import ArrayWriter, read_array
from dynamics_cli.runs.store.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from dynamics_cli.text import size


class RunWriter:
    """Writes a run directory; the caller holds its lock (`run_lock`) as long as the writer lives.

    Attributes:
        directory: the run directory.
        config: the resolved config.
        resumed: the checkpoint from which a reopened run goes on; `None` for a run that starts at iteration 0.
        losses, snapshots: the arrays; their `rows` are the numbers of recorded losses and snapshots.
        last_loss, last_snapshot: iteration of the last recorded loss and snapshot; -1 before the first.
    """

    def __init__(self, directory: Path, config: RunConfig, info: Info, resumed: Checkpoint | None = None) -> None:
        """Use `create` or `reopen` instead."""
        self.directory, self.config, self.resumed = directory, config, resumed
        self._info, self._lock_file, self._lock = info, directory / layout.LOCK, None
        with suppress(OSError):
            self._lock = self._lock_file.stat()
        self.losses = ArrayGroup(directory, layout.LOSSES, info)
        self.snapshots = ArrayGroup(directory, layout.SNAPSHOT_ITERATIONS, info)
        self.last_loss = self.last_snapshot = -1

    @classmethod
    def create(cls, directory: Path, config: RunConfig, info: Mapping[str, Any] | None = None) -> RunWriter:
        """Start a run in a directory without one (`clear_run` makes it so).

        `config` is the resolved config. `info` goes into `run.json`: `hash`, `device`, `backend`, and other
        entries; the provenance of this process is added.

        Raises:
            UsageError: the directory holds a run, or files whose names a run needs.
            RunError: the disk is full or not writable.
        """
        layout.refuse_foreign(directory)
        layout.clear_run(directory)  # of files that a kill left before `run.json`, or in a deletion
        text = f"{layout.CONFIG_FIRST_LINE}\n{to_yaml(config)}".encode()
        started = {"format": FORMAT, "status": "running", "name": config.name, "dtype": config.dtype}
        made = provenance()
        content = {
            **started, "versions": made.pop("versions"), "threads": made.pop("threads"), **(info or {}),
            "provenance": made, "messages": [], "config_sha256": hashlib.sha256(text).hexdigest(),
        }  # fmt: skip
        writer = cls(directory, config, content)
        with files.os_errors_as_run_errors(directory):
            files.make_directory(directory)
            files.remove_temporaries(directory)
            files.write_atomic(directory / layout.CONFIG, text)  # first: by it the rest is recognised as ours
        _make_folders(directory)
        if sources := foreign_sources(config):
            content["kinds"] = keep_sources(directory, sources)
        writer._check_lock()
        write_info(directory, content)
        return writer

    @classmethod
    def reopen(cls, directory: Path) -> RunWriter:
        """Go on with a run from its last intact checkpoint, or from iteration 0 when it has none.

        Rows behind the checkpoint are dropped: training records them again, bit for bit.

        Raises:
            UsageError: the run is complete.
            RunError: the directory holds no run, or a damaged run.
        """
        layout.refuse_links(directory)
        info = read_info(directory)
        if info["status"] == "complete":
            raise UsageError(f"{directory} holds a complete run: there is nothing to continue")
        config = read_config(directory, info)
        found = load_checkpoint(directory, info["config_sha256"])
        if found is None and info.get("checkpointed"):
            raise CorruptRunError(directory / layout.CHECKPOINT, "it is gone", "start again with --force")
        for key in ("rows", "crc32", "iterations", "final_loss", "seconds"):
            info.pop(key, None)
        info["status"] = "running"
        info["resumptions"] = [*info.get("resumptions", []), provenance()]
        writer = cls(directory, config, info, found)
        if found and found.damaged:
            writer.note(f"{found.damaged.name} was damaged: the run went on from the checkpoint before it")
        write_info(directory, info)
        if found and found.damaged:
            with files.os_errors_as_run_errors(directory):
                files.remove_tree(found.damaged)
        _make_folders(directory)
        try:
            writer._reopen_arrays()
        except BaseException:
            writer.close()
            raise
        return writer

    def _reopen_arrays(self) -> None:
        """Open the arrays of the checkpoint, cut to its rows, and delete all others."""
        rows, checksums = (self.resumed.rows, self.resumed.checksums) if self.resumed else ({}, {})
        names = {*rows, *layout.loss_arrays(self.directory), *layout.snapshot_arrays(self.directory)}
        keys = (self.losses.key, self.snapshots.key)  # they come first: without them nothing is acknowledged
        for name in sorted(names, key=lambda name: (name not in keys, name)):
            path, whose = layout.array_file(self.directory, name), owner(self._info, name)
            if name not in rows:
                with files.os_errors_as_run_errors(path):
                    files.remove(path)
                continue
            group = self.losses if name in layout.LOSS_GROUP else self.snapshots
            group.arrays[name] = ArrayWriter.reopen(path, rows[name], checksums[name], whose)
        self.last_loss = self.losses.last(layout.LOSS_ITERATIONS)
        self.last_snapshot = self.snapshots.last(layout.SNAPSHOT_ITERATIONS)

    @property
    def resumed_at(self) -> int:
        """Iteration from which the run goes on; 0 for a run that starts."""
        return 0 if self.resumed is None else int(self.resumed.meta["iteration"])

    def note(self, message: str) -> None:
        """Keep a message in `run.json`, which is written with the next change of status."""
        self._info["messages"] = [*self._info.get("messages", []), message]

    def append_losses(self, iterations: ArrayLike, values: ArrayLike, times: ArrayLike | None = None) -> None:
        """Record losses in one block.

        Args:
            iterations: (k,) iterations of the states whose losses these are, increasing.
            values: (k,) or (k, R) losses.
            times: (k,) times of these states; in all calls or in none.

        Raises:
            ValueError: iterations that do not increase, or arrays of other shapes than before.
            RunError: the disk is full, not writable or failing.
        """
        steps = np.atleast_1d(np.asarray(iterations, np.int64))
        if len(steps) == 0:
            return
        self._check_increase(steps, self.last_loss)
        self._check_lock()
        blocks = {layout.LOSS_ITERATIONS: steps}
        if times is not None:
            blocks[layout.TIMES] = np.atleast_1d(np.asarray(times, np.float64))
        blocks[layout.LOSSES] = np.atleast_1d(np.asarray(values, np.float64))
        self.losses.append(blocks)
        self.last_loss = int(steps[-1])

    def append_snapshots(
        self, iterations: ArrayLike, parameters: Mapping[str, NDArray[Any]], measures: Mapping[str, NDArray[Any]]
    ) -> None:
        """Record states in one block.

        Args:
            iterations: (k,) numbers of updates of the states, increasing.
            parameters: arrays (k, ...) by name, always the same names and shapes; floating ones in the dtype of the
                run. Empty when no parameters are recorded.
            measures: float64 arrays (k, ...) by name.

        Raises:
            ValueError: another dtype, shape or set of names than before, or iterations that do not increase.
            RunError: the disk is full, not writable or failing.
        """
        steps = np.asarray(iterations, np.int64)
        self._check_increase(steps, self.last_snapshot)
        self._check_lock()
        blocks: dict[str, NDArray[Any]] = {}
        for name, parameter in parameters.items():
            layout.check_array_name(name)
            if np.issubdtype(parameter.dtype, np.inexact) and parameter.dtype != np.dtype(self.config.dtype):
                raise ValueError(f"parameter {name} is {parameter.dtype} in a run in {self.config.dtype}")
            blocks[f"{layout.TRAJECTORY}/{name}"] = parameter
        for name, measure in measures.items():
            layout.check_array_name(name)
            blocks[f"{layout.MEASURES}/{name}"] = measure
        if layout.SNAPSHOT_ITERATIONS in blocks:
            raise ValueError("no parameter can be called 'iterations'")
        blocks[layout.SNAPSHOT_ITERATIONS] = steps
        self.snapshots.append(blocks)
        self.last_snapshot = int(steps[-1])

    def checkpoint(self, state: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Bring everything recorded to the disk, then keep the stepper's state and `meta` (JSON) beside it.

        Raises RunError: the disk is full, not writable or failing; the checkpoint before stays.
        """
        self._check_lock()
        save_checkpoint(self.directory, state, meta, *self._sync(), owner=self._info["config_sha256"])
        if not self._info.get("checkpointed"):  # from now on a missing checkpoint was deleted
            self._info["checkpointed"] = True
            write_info(self.directory, self._info)

    def finish(
        self, status: Status, *, iterations: int, final_loss: float, seconds: float, messages: Sequence[str] = (),
        **numbers: Any,
    ) -> None:  # fmt: skip
        """End the writing: `run.json` gets the status, the final numbers and the rows of every array.

        Non-finite numbers are kept as null. The writer is closed.

        Raises RunError: the disk is full, not writable or failing; the run then reads as interrupted.
        """
        self._check_lock()
        rows, checksums = self._sync()
        for message in messages:
            self.note(message)
        final = {"iterations": iterations, "final_loss": final_loss, "seconds": seconds}
        self._info |= {"status": status, **final, **numbers, "rows": rows, "crc32": checksums}
        write_info(self.directory, self._info)
        self.close()

    def close(self) -> None:
        """Close the files; without `finish` before, the run reads as interrupted once its lock is free."""
        self.losses.close()
        self.snapshots.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sync(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return rows and checksum of each array once they are on the disk."""
        for group in (self.losses, self.snapshots):
            group.align()
            for array in group.arrays.values():
                array.sync()
        with files.os_errors_as_run_errors(self.directory):
            for folder in (self.directory / layout.TRAJECTORY, self.directory / layout.MEASURES, self.directory):
                files.sync_directory(folder)
        arrays = self.losses.arrays | self.snapshots.arrays
        rows = {name: array.rows for name, array in arrays.items()}
        return rows, {name: array.checksum for name, array in arrays.items()}

    def _check_lock(self) -> None:
        """Raise RunError when the directory was deleted, lock and all: another process may write the run there now."""
        if self._lock is not None:
            with files.os_errors_as_run_errors(self.directory):
                files.ensure_named(self._lock, self._lock_file)

    @staticmethod
    def _check_increase(steps: NDArray[np.int64], last: int) -> None:
        if steps.ndim != 1 or steps[0] <= last or (np.diff(steps) <= 0).any():
            raise ValueError(f"iterations {steps[0]}..{steps[-1]} do not increase after {last}")


def keep_sources(directory: Path, sources: Mapping[str, KindSource]) -> dict[str, dict[str, str]]:
    """Copy the sources of foreign kinds; return the entry of each in `run.json`, by `section.kind`."""
    for source in sources.values():
        for name, contents in source.files.items():
            place = directory / layout.PARTS / source.folder / name
            with files.os_errors_as_run_errors(place):
                files.make_directory(place.parent)
                files.write_atomic(place, contents)
    return {
        kind: {"from": source.origin, "sha256": source.sha256, "copy": f"{layout.PARTS}/{source.folder}"}
        for kind, source in sources.items()
    }


def _make_folders(directory: Path) -> None:
    with files.os_errors_as_run_errors(directory):
        for folder in (directory, directory / layout.TRAJECTORY, directory / layout.MEASURES):
            files.make_directory(folder)
            files.remove_temporaries(folder)


def check_space(directory: Path, needed: int, *, force: bool = False) -> None:
    """Raise `RunError` when the disk of `directory` (which may not exist yet) has less room than `needed` bytes.

    The files of a run there count as room; a run that has ended is used as it is, unless `force` replaces it.
    """
    free, held = files.free_bytes(directory), 0
    if layout.is_run(directory):
        held = files.used(directory)[0]
        with suppress(RunError):  # a damaged run is told of later
            held = held if force or read_info(directory)["status"] not in ("complete", "diverged") else needed
    if needed > free + held:
        room = f"about {size(needed)}, and {size(free)} are free"
        raise RunError(f"the run needs {room} where {directory} is: free space, record less, or give --out elsewhere")


class ArrayGroup:
    """Arrays below a run directory, named `losses` or `trajectory/hidden_weight`, that grow together.

    `key` names the array that acknowledges: its rows are the rows of the group. It is made first and appended to last.
    """

    def __init__(self, directory: Path, key: str, info: Mapping[str, Any]) -> None:
        """Start a group without arrays of the run of `info`; they appear with the first rows."""
        self.directory, self.key, self._info = directory, key, info
        self.arrays: dict[str, ArrayWriter] = {}

    @property
    def rows(self) -> int:
        """Acknowledged rows."""
        return self.arrays[self.key].rows if self.key in self.arrays else 0

    def last(self, name: str) -> int:
        """Last acknowledged number of an array of integers (n,); -1 when there is none."""
        return int(read_array(self.arrays[name].path, self.rows)[-1]) if self.rows else -1

    def append(self, blocks: Mapping[str, NDArray[Any]]) -> None:
        """Append one block to every array; all or none of it is acknowledged.

        Raises:
            ValueError: other arrays than before, or blocks of different lengths, or of another shape or dtype.
            RunError: the disk is full, not writable or failing.
        """
        if self.rows and set(blocks) != set(self.arrays):
            raise ValueError(f"arrays {sorted(blocks)} instead of {sorted(self.arrays)}")
        if self.key not in blocks or len({len(block) for block in blocks.values()}) != 1:
            lengths = ", ".join(f"{name} {len(block)}" for name, block in blocks.items())
            raise ValueError(f"blocks of different lengths, or without {self.key}: {lengths}")
        for name in sorted((name for name in blocks if name not in self.arrays), key=lambda name: name != self.key):
            path, block = layout.array_file(self.directory, name), blocks[name]
            self.arrays[name] = ArrayWriter(path, block.shape[1:], block.dtype, owner(self._info, name))
        self.align()
        for name in sorted(blocks, key=lambda name: name == self.key):
            self.arrays[name].append(blocks[name])

    def align(self) -> None:
        """Cut every array back to the acknowledged rows after an append that failed half-way."""
        for array in self.arrays.values():
            if array.rows != self.rows or not array.whole:
                array.cut(self.rows)

    def close(self) -> None:
        """Close all files."""
        for array in self.arrays.values():
            array.close()
