"""The one writer of a run directory.

Rows of losses and of snapshots are appended to arrays. They count once a checkpoint, or the end of
the run, says how many there are, with a CRC-32 of each array; `reopen` cuts the arrays to the
checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics_cli.config import RunConfig, to_yaml
from dynamics_cli.config.changes import segments_of
from dynamics_cli.errors import UsageError
from dynamics_cli.kinds.registry import foreign_sources
from dynamics_cli.runs.code import code, kept_copies, part_of
from dynamics_cli.runs.info import (
    ENDS,
    Info,
    Status,
    provenance,
    read_config,
    read_info,
    write_info,
)
from dynamics_cli.runs.room import make_room
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import ArrayWriter
from dynamics_cli.runs.store.checkpoints import (
    Checkpoint,
    keep_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from dynamics_cli.runs.store.locks import Hold
from dynamics_cli.runs.store.manifest import refuse_links

if TYPE_CHECKING:
    from dynamics_cli.runs.run import Run

Listener = Callable[[NDArray[np.int64], Mapping[str, NDArray[Any]]], None]
"""Called with a block of recorded rows: iterations (k,), and `loss` or the measures by name, each
(k, ...).
"""
LOSS = "loss"
"""The curve of the training losses."""


class RunWriter:
    """Writes a run directory; the caller holds its lock (`run_lock`) as long as the writer lives.

    Attributes:
        directory: the run directory.
        config: the resolved config.
        resumed: the checkpoint from which a reopened run goes on; `None` for a run that starts at
            iteration 0.
        arrays: by name, such as `losses` or `trajectory/hidden_weight`; they appear with the first
            rows.
        last_loss, last_snapshot: iteration of the last recorded loss and snapshot; -1 before the
            first.
        last_time: time of the last recorded loss; 0 where no times are recorded.
        aside: the folder to which the run that was there was moved; `None` without one.
    """

    def __init__(
        self, directory: Path, config: RunConfig, info: Info, resumed: Checkpoint | None = None
    ) -> None:
        """Use `create` or `reopen` instead."""
        self.directory = directory
        self.config = config
        self.resumed = resumed
        self._info = info
        self._hold = Hold(directory)
        self.arrays: dict[str, ArrayWriter] = {}
        self.last_loss = -1
        self.last_snapshot = -1
        self.last_time = 0.0
        self.aside: Path | None = None
        self._listener: Listener | None = None

    @classmethod
    def create(
        cls,
        directory: Path,
        config: RunConfig,
        info: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
        loop: str | None = None,
    ) -> RunWriter:
        """Start a run in a directory without one; with `force` the run there is moved aside.

        `config` is the resolved config. `info` goes into `run.json`: `hash`, `device`, `backend`,
        and other entries; the provenance of this process is added, and the author's code, with the
        file of a training `loop`.

        Raises:
            UsageError: the directory holds a run, or somebody's files whose names a run needs.
            RunError: the disk is full or not writable.
        """
        text = config_text(config)
        kinds, parts = kept_copies(foreign_sources([leg.config for leg in segments_of(config)]))
        aside = make_room(directory, force=force)
        entry, copies = code(loop)
        if "asked" in (info or {}):  # the sweep has the rest
            entry, copies = part_of(entry), {}
        made = {**provenance(), "code": entry}
        content = {
            "status": "running",
            "name": config.name,
            "dtype": config.dtype,
            "versions": made.pop("versions"),
            "threads": made.pop("threads"),
            **(info or {}),
            "provenance": made,
            "messages": [],
            "config_sha256": hashlib.sha256(text).hexdigest(),
        }
        writer = cls(directory, config, content)
        writer.aside = aside
        files.save(directory / layout.CONFIG, text)
        _make_folders(directory)
        for copy, contents in {**copies, **parts}.items():
            files.save(directory / copy, contents)
        if kinds:
            content["kinds"] = kinds
        writer._hold.check()
        write_info(directory, content)
        return writer

    @classmethod
    def reopen(cls, directory: Path, saved: Checkpoint | None = None) -> RunWriter:
        """Go on with a run from a checkpoint, by default its own; without one from iteration 0.

        Rows behind the checkpoint are dropped: training records them again, bit for bit.

        Raises:
            UsageError: the run is complete.
            RunError: the directory holds no run, or a damaged run.
        """
        info = read_info(directory)
        refuse_links(directory / layout.TRAJECTORY, directory / layout.MEASURES)
        if info["status"] == "complete":
            raise UsageError(f"{directory} holds a complete run: there is nothing to continue")
        config = read_config(directory, info)
        checkpoint = saved or load_checkpoint(directory, info)
        for key in ENDS:
            info.pop(key, None)
        info["status"] = "running"
        now = {**provenance(), "code": part_of(code()[0])}
        info["resumptions"] = [*info.get("resumptions", []), now]
        if checkpoint is not None and checkpoint.file == layout.CHECKPOINT_BEFORE:
            with files.os_errors_as_run_errors(directory):
                files.replace(directory / checkpoint.file, directory / layout.CHECKPOINT)
        writer = cls(directory, config, info, checkpoint)
        write_info(directory, info)
        _make_folders(directory)
        if checkpoint is not None:
            writer._go_on(checkpoint, directory if writer._hold.leased else None)
        return writer

    def _go_on(self, checkpoint: Checkpoint, source: Path | None) -> None:
        """Go on behind the rows of a checkpoint, copied from the run `source` if it is given."""
        self.resumed = checkpoint
        for name, rows in checkpoint.rows.items():
            file = layout.array_file(self.directory, name)
            copied = None if source is None else layout.array_file(source, name)
            crc32 = checkpoint.crc32[name]
            self.arrays[name] = ArrayWriter.reopen(file, rows, crc32, source=copied)
        self.last_loss = int(self._last(layout.LOSS_ITERATIONS, -1))
        self.last_snapshot = int(self._last(layout.SNAPSHOT_ITERATIONS, -1))
        self.last_time = self._last(layout.TIMES, 0.0)

    def _last(self, name: str, otherwise: float) -> float:
        if name not in self.arrays or not self.arrays[name].rows:
            return otherwise
        return self._rows(name)[-1].item()  # type: ignore[no-any-return]

    def _rows(self, name: str) -> NDArray[Any]:
        """Return the rows of an array that a checkpoint has counted."""
        rows: NDArray[Any] = np.load(self.arrays[name].path, mmap_mode="r")
        return rows

    def listen(self, listener: Listener) -> None:
        """Call a listener with the rows that are there now, and with each block from now on.

        Rows behind the last checkpoint must not be there yet.
        """
        self._listener = listener
        if layout.LOSSES in self.arrays:
            listener(self._rows(layout.LOSS_ITERATIONS), {LOSS: self._rows(layout.LOSSES)})
        folder = f"{layout.MEASURES}/"
        measures = {
            name.removeprefix(folder): self._rows(name)
            for name in self.arrays
            if name.startswith(folder)
        }
        if measures:
            listener(self._rows(layout.SNAPSHOT_ITERATIONS), measures)

    @property
    def resumed_at(self) -> int:
        """Iteration from which the run goes on; 0 for a run that starts."""
        if self.resumed is None:
            return 0
        return self.resumed.iteration

    def append_losses(
        self, iterations: ArrayLike, values: ArrayLike, times: ArrayLike | None = None
    ) -> None:
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
        _check_increase(steps, self.last_loss)
        blocks = {
            layout.LOSS_ITERATIONS: steps,
            layout.LOSSES: np.atleast_1d(np.asarray(values, np.float64)),
        }
        if times is not None:
            blocks[layout.TIMES] = np.atleast_1d(np.asarray(times, np.float64))
            self.last_time = float(blocks[layout.TIMES][-1])
        self._append(blocks, {name for name in self.arrays if name in layout.LOSS_GROUP})
        self.last_loss = int(steps[-1])
        if self._listener is not None:
            self._listener(steps, {LOSS: blocks[layout.LOSSES]})

    def append_snapshots(
        self,
        iterations: ArrayLike,
        parameters: Mapping[str, NDArray[Any]],
        measures: Mapping[str, NDArray[Any]],
    ) -> None:
        """Record states in one block.

        Args:
            iterations: (k,) numbers of updates of the states, increasing.
            parameters: arrays (k, ...) by name, always the same names and shapes; floating ones in
                the dtype of the run. Empty when no parameters are recorded.
            measures: float64 arrays (k, ...) by name.

        Raises:
            ValueError: another dtype, shape or set of names than before, or iterations that do not
                increase.
            RunError: the disk is full, not writable or failing.
        """
        steps = np.asarray(iterations, np.int64)
        _check_increase(steps, self.last_snapshot)
        blocks = {}
        for name, parameter in parameters.items():
            is_weight = np.issubdtype(parameter.dtype, np.inexact)
            if is_weight and parameter.dtype != np.dtype(self.config.dtype):
                raise ValueError(
                    f"parameter {name} is {parameter.dtype} in a run in {self.config.dtype}"
                )
            blocks[f"{layout.TRAJECTORY}/{name}"] = parameter
        for name, measure in measures.items():
            blocks[f"{layout.MEASURES}/{name}"] = measure
        if layout.SNAPSHOT_ITERATIONS in blocks:
            raise ValueError("no parameter can be called 'iterations'")
        blocks[layout.SNAPSHOT_ITERATIONS] = steps
        self._append(blocks, {name for name in self.arrays if name not in layout.LOSS_GROUP})
        self.last_snapshot = int(steps[-1])
        if self._listener is not None and measures:
            self._listener(steps, measures)

    def _append(self, blocks: Mapping[str, NDArray[Any]], known: set[str]) -> None:
        """Append a block to each array of a group, `known` so far; all of it counts, or nothing."""
        if known and known != blocks.keys():
            raise ValueError(f"arrays {sorted(blocks)} instead of {sorted(known)}")
        for name in blocks:
            layout.check_array_name(name)
        if len({len(block) for block in blocks.values()}) != 1:
            lengths = ", ".join(f"{name} {len(block)}" for name, block in blocks.items())
            raise ValueError(f"blocks of different lengths: {lengths}")
        self._hold.check()
        arrays = {
            name: self.arrays.get(name)
            or ArrayWriter(layout.array_file(self.directory, name), block.shape[1:], block.dtype)
            for name, block in blocks.items()
        }
        ends = {name: array.append(blocks[name]) for name, array in arrays.items()}
        for name, array in arrays.items():
            array.rows, array.crc32 = ends[name]
        self.arrays |= arrays

    def checkpoint(self, state: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Bring everything recorded to the disk, then the stepper's state and `meta` (JSON).

        `meta["iteration"]` is the number of updates.

        Raises RunError: the disk is full, not writable or failing; the checkpoint before stays.
        """
        save_checkpoint(self.directory, self._saved(state, meta))
        if not self._info.get("checkpointed"):  # from now on a missing checkpoint was deleted
            self._info["checkpointed"] = True
            write_info(self.directory, self._info)

    def keep(self, state: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Keep a checkpoint from which another run can go on; see `checkpoint`."""
        refuse_links(self.directory / layout.CHECKPOINTS)
        keep_checkpoint(self.directory, self._saved(state, meta))

    def _saved(self, state: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Checkpoint:
        return Checkpoint(
            **self._sync(),
            arrays=dict(state),
            meta=dict(meta),
            config_sha256=self._info["config_sha256"],
        )

    def begin_from(
        self, checkpoint: Checkpoint, parent: Run, times: NDArray[np.float64] | None = None
    ) -> None:
        """Let a new run go on from a checkpoint of its parent, whose rows are copied.

        `times` are those of the losses, where the parent has none. `run.json` names the parent.

        Raises RunError: the disk is full, not writable or failing.
        """
        self._go_on(checkpoint, parent.path)
        if times is not None:
            self._append({layout.TIMES: times}, set())
            self.last_time = float(times[-1])
        iteration = checkpoint.meta["iteration"]
        changed = tuple(f"changes[{k}]:" for k in range(checkpoint.meta.get("leg", 0)))
        said = parent.info.get("messages", [])
        self._info["parent"] = {
            "run": parent.path.name,
            "hash": parent.hash,
            "iteration": iteration,
        }
        self._info["messages"] = [text for text in said if text.startswith(changed)]
        self.checkpoint(checkpoint.arrays, checkpoint.meta)

    def finish(
        self,
        status: Status,
        *,
        iterations: int,
        final_loss: float,
        seconds: float,
        messages: Sequence[str] = (),
        **numbers: Any,
    ) -> None:
        """End the writing: `run.json` gets the status, final numbers, and the rows of all arrays.

        Non-finite numbers are kept as null. A run that nothing can continue loses its checkpoint.

        Raises RunError: the disk is full, not writable or failing; the run then reads as
        interrupted.
        """
        final = {"iterations": iterations, "final_loss": final_loss, "seconds": seconds}
        self._info |= {"status": status, **final, **numbers, **self._sync()}
        self._info["messages"] = [*self._info["messages"], *messages]
        ended = status in ("complete", "diverged")
        if ended:
            self._info.pop("checkpointed", None)
        write_info(self.directory, self._info)
        if ended:
            with files.os_errors_as_run_errors(self.directory):
                for name in (layout.CHECKPOINT, layout.CHECKPOINT_BEFORE, layout.TRACEBACK):
                    files.remove(self.directory / name)

    def tell(self, message: str) -> None:
        """Note a message about the run in `run.json`, once."""
        if message not in self._info["messages"]:
            self._info["messages"] = [*self._info["messages"], message]
            write_info(self.directory, self._info)

    @property
    def notes(self) -> list[dict[str, Any]]:
        """What was noted, each with `at`, the number of updates, and `words`."""
        return list(self._info.get("notes", []))

    @notes.setter
    def notes(self, notes: Sequence[Mapping[str, Any]]) -> None:
        self._info.pop("notes", None)
        if notes:
            self._info["notes"] = [dict(note) for note in notes]
        write_info(self.directory, self._info)

    def _sync(self) -> dict[str, Any]:
        """Return `rows` and `crc32` of arrays, once the disk has them and headers count them."""
        self._hold.check()
        for array in self.arrays.values():
            array.write_header()
        with files.os_errors_as_run_errors(self.directory):
            for folder in reversed(layout.WRITTEN_FOLDERS):
                files.sync_directory(self.directory / folder)
        # losses first, whichever was recorded first
        names = sorted(self.arrays, key=lambda name: name not in layout.LOSS_GROUP)
        rows = {name: self.arrays[name].rows for name in names}
        crc32 = {name: self.arrays[name].crc32 for name in names}
        return {"rows": rows, "crc32": crc32}


def config_text(config: RunConfig) -> bytes:
    """Return the contents of the `config.yaml` of a run."""
    return f"{layout.CONFIG_FIRST_LINE}\n{to_yaml(config)}".encode()


def _check_increase(steps: NDArray[np.int64], last: int) -> None:
    if steps.ndim != 1 or steps[0] <= last or (np.diff(steps) <= 0).any():
        raise ValueError(f"iterations {steps[0]}..{steps[-1]} do not increase after {last}")


def _make_folders(directory: Path) -> None:
    with files.os_errors_as_run_errors(directory):
        for folder in layout.WRITTEN_FOLDERS:
            files.make_directory(directory / folder)
        for folder in (*layout.WRITTEN_FOLDERS, layout.CHECKPOINTS):
            files.remove_temporaries(directory / folder)
