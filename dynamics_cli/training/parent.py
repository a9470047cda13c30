"""The beginning of a changed run, taken from a run that is there: it is not trained twice.

A *parent* is a run that a user named, as `dyn train RUN --at N` does. It has the same config up to
a change, and keeps a checkpoint of a state before it (`record.checkpoints`, or the last one of an
interrupted run). Its rows are copied, and its state is where training goes on: the bits are those
of training from nothing. A checkpoint that does not hold what training from nothing would have
there is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig, run_hash
from dynamics_cli.kinds import Floats
from dynamics_cli.kinds.snapshots import Iterations, next_after
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.arrays import check_array, map_array
from dynamics_cli.runs.store.checkpoints import Checkpoint, kept_checkpoints, read_checkpoint
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.estimate import loss_interval
from dynamics_cli.training.legs import Leg, LegClock, keeps_time, of_states
from dynamics_cli.training.loop import HISTORY


@dataclass(frozen=True)
class Parent:
    """A run, and the checkpoint of it with which another run begins."""

    run: Run
    checkpoint: Checkpoint

    @property
    def iteration(self) -> int:
        """The state from which the other run is trained."""
        return int(self.checkpoint.meta["iteration"])


def parent_of(config: RunConfig, legs: Sequence[Leg], path: Path | None) -> Parent | None:
    """Return a run, named by its directory, with the latest state of it to begin with.

    None without such a state.

    `config` is the resolved one, `legs` are its own.

    Raises RunError: the named run cannot be read.
    """
    if path is None:
        return None
    run = Run(path)
    limit = common_states(run.config, config)
    if limit is None or "replicas" in run.info:
        return None
    names = [*kept_checkpoints(run.path), layout.CHECKPOINT, layout.CHECKPOINT_BEFORE]
    found = []
    for name in names:
        with suppress(CorruptRunError):
            found.append(read_checkpoint(run.path, run.info, name))
    usable = [
        checkpoint
        for checkpoint in found
        if checkpoint is not None
        and 0 < checkpoint.meta["iteration"] <= limit
        and checkpoint.meta.get("halted") is None
        and _is_on_the_way(run, checkpoint, legs)
    ]
    if not usable:
        return None
    # code of kinds and contents of data may have changed since: the run would have another name
    device = str(run.info["device"])
    backend = str(run.info["backend"])
    if run_hash(run.config, device=device, backend=backend) != run.hash:
        return None
    return Parent(run, max(usable, key=lambda checkpoint: checkpoint.meta["iteration"]))


def _is_on_the_way(run: Run, checkpoint: Checkpoint, legs: Sequence[Leg]) -> bool:
    """Return whether training from nothing comes by a checkpoint.

    It records the same states and losses, and holds the weights that measures of updates will need.
    """
    reached = int(checkpoint.meta["iteration"])
    states = np.unique(np.concatenate([leg.recorded_states for leg in legs]))
    losses = np.unique(np.concatenate([_loss_states(leg, reached) for leg in legs]))
    measured = run.snapshot_iterations[: checkpoint.rows.get(layout.SNAPSHOT_ITERATIONS, 0)]
    seen = run.loss_iterations[: checkpoint.rows.get(layout.LOSS_ITERATIONS, 0)]
    for recorded, due in ((measured, states), (seen, losses)):
        # that of the state itself may not be recorded yet
        if not np.array_equal(recorded[recorded < reached], due[due < reached]):
            return False
        if reached in recorded and reached not in due:
            return False

    held = {key.split("/")[2] for key in checkpoint.arrays if key.startswith(HISTORY)}
    wanted = max((measure.updates for measure in legs[0].problem.measures.values()), default=0)
    next_due = next_after(states, reached - (reached not in measured))
    needed = range(max(0, next_due - wanted), reached)
    return held.issuperset(map(str, needed))


def _loss_states(leg: Leg, last: int) -> Iterations:
    """Return the states up to `last` whose losses a leg records."""
    interval = loss_interval(leg.problem)
    states = np.arange(0, min(leg.last, last) + 1, interval)
    return np.append(states[(states > leg.first) | (states == 0)], leg.last)


def common_states(parent: RunConfig, config: RunConfig) -> int | None:
    """Return the last state up to which two configs are the same run; None where they never are."""
    if _settings(parent) != _settings(config):
        return None
    olds = parent.changes or []
    news = config.changes or []
    common = 0
    while common < min(len(olds), len(news)) and olds[common] == news[common]:
        common += 1
    following = [changes[common].at for changes in (olds, news) if common < len(changes)]
    return min(following, default=None)


def _settings(config: RunConfig) -> dict[str, Any]:
    """Return what decides the bits of a run but its changes."""
    return config.model_dump(
        exclude={"name": True, "changes": True, "record": {"checkpoints", "limit_gib"}},
        exclude_none=True,
    )


def arrays_of(parent: Parent) -> dict[str, Any]:
    """Return the arrays of a parent up to its state, by name.

    Raises CorruptRunError: one is damaged.
    """
    checkpoint = parent.checkpoint
    arrays = {}
    for name, rows in checkpoint.rows.items():
        file = layout.array_file(parent.run.path, name)
        header = check_array(file, rows, checkpoint.crc32[name])
        arrays[name] = map_array(file, header, rows)
    return arrays


def begin_with(
    parent: Parent, arrays: Mapping[str, Any], writer: RunWriter, legs: Sequence[Leg]
) -> None:
    """Copy `arrays_of` a parent into a new run, and let the run go on from the parent's state.

    Raises RunError: the disk is full.
    """
    checkpoint = parent.checkpoint
    states = arrays.get(layout.LOSS_ITERATIONS, np.empty(0, np.int64))
    times = arrays.get(layout.TIMES)
    if times is None and keeps_time(legs):
        times = _times(legs, states)
    if len(states):
        writer.append_losses(states, arrays[layout.LOSSES], times)
    if layout.SNAPSHOT_ITERATIONS in arrays:
        writer.append_snapshots(
            arrays[layout.SNAPSHOT_ITERATIONS],
            _inside(arrays, layout.TRAJECTORY),
            _inside(arrays, layout.MEASURES),
        )

    meta = dict(checkpoint.meta)
    if "leg" in meta and times is not None:
        (begin,) = times[states == legs[meta["leg"]].first]
        meta["leg_time"] = float(begin)
    writer.begin_from(replace(checkpoint, meta=meta), parent.run)


def _inside(arrays: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the arrays of a folder by their own names."""
    return {
        name.removeprefix(f"{folder}/"): array
        for name, array in arrays.items()
        if name.startswith(f"{folder}/") and name != layout.SNAPSHOT_ITERATIONS
    }


def _times(legs: Sequence[Leg], states: Iterations) -> Floats:
    """Return the times of states, where the parent recorded none: they are known beforehand."""
    times = []
    begin = 0.0
    for k, inside in of_states(legs, states):
        if len(inside):
            times.append(LegClock(legs[k], begin).of(inside))
            begin = float(times[-1][-1])
    return np.concatenate(times) if times else np.empty(0)
