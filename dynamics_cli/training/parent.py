"""The beginning of a changed run, taken from a run that is there: it is not trained twice.

A *parent* is a run that a user named, as `dyn train RUN --at N` does. It has the same config up to
a change, and keeps a checkpoint of a state before it (`record.checkpoints`, or the last one of an
interrupted run). Its rows are copied, and its state is where training goes on: the bits are those
of training from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig, run_hash
from dynamics_cli.kinds.snapshots import next_after
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.checkpoints import Checkpoint, kept_checkpoints, read_checkpoint
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.legs import Leg, keeps_time, known_times
from dynamics_cli.training.loop import CLOCK, HISTORY


@dataclass(frozen=True)
class Parent:
    """A run, and the checkpoint of it with which another run begins."""

    run: Run
    checkpoint: Checkpoint

    def check(self) -> None:
        """Raise `CorruptRunError` where an array is damaged before the checkpoint."""
        for name in self.checkpoint.rows:
            self.checkpoint.check(self.run.path, name)

    def begin(self, writer: RunWriter, legs: Sequence[Leg]) -> None:
        """Copy the rows of the parent into a new run, which goes on from the parent's state.

        Raises RunError: the disk is full.
        """
        checkpoint = self.checkpoint
        rows = dict(checkpoint.rows)
        arrays = dict(checkpoint.arrays)
        times = None
        if not keeps_time(legs):
            rows.pop(layout.TIMES, None)
        elif layout.TIMES not in rows:
            file = layout.array_file(self.run.path, layout.LOSS_ITERATIONS)
            states = np.load(file)[: rows[layout.LOSS_ITERATIONS]]
            times = known_times(legs, states)
            first = legs[checkpoint.meta.get("leg", 0)].first
            arrays[CLOCK] = times[np.searchsorted(states, first)]
        update = {"arrays": arrays, "rows": rows}
        writer.begin_from(checkpoint.model_copy(update=update), self.run, times)


def parent_of(config: RunConfig, legs: Sequence[Leg], path: Path | None) -> Parent | None:
    """Return a run, named by its directory, with the latest state of it to begin with, if any.

    `config` is the resolved one, `legs` are its own.

    Raises RunError: the named run cannot be read.
    """
    if path is None or len(legs[0].problems) > 1:
        return None
    run = Run(path)
    last = last_common_state(run.config, config)
    if last is None or "replicas" in run.info:
        return None
    # code of kinds and contents of data may have changed since: the run would have another name
    device = str(run.info["device"])
    backend = str(run.info["backend"])
    if run_hash(run.config, device=device, backend=backend) != run.hash:
        return None
    usable = []
    for name in [*kept_checkpoints(run.path), layout.CHECKPOINT, layout.CHECKPOINT_BEFORE]:
        with suppress(CorruptRunError):
            checkpoint = read_checkpoint(run.path, run.info, name)
            if checkpoint is None or checkpoint.meta.get("halted") is not None:
                continue
            if 0 < checkpoint.iteration <= last and _remembers(checkpoint, legs):
                usable.append(Parent(run, checkpoint))
    return max(usable, key=lambda parent: parent.checkpoint.iteration, default=None)


def _remembers(checkpoint: Checkpoint, legs: Sequence[Leg]) -> bool:
    """Return whether a checkpoint has the weights that measures of updates will need next."""
    reached = checkpoint.iteration
    held = {key.split("/")[2] for key in checkpoint.arrays if key.startswith(HISTORY)}
    wanted = max((measure.updates for measure in legs[0].problem.measures.values()), default=0)
    states = np.concatenate([leg.recorded_states for leg in legs])
    needed = range(max(0, next_after(states, reached - 1) - wanted), reached)
    return held.issuperset(map(str, needed))


def last_common_state(parent: RunConfig, config: RunConfig) -> int | None:
    """Return the last state up to which a run is trained as its parent; None where there is none.

    A change records its state, so that only the run's own may be a state of the parent.
    """
    if _settings(parent) != _settings(config):
        return None
    olds = parent.changes or []
    news = config.changes or []
    common = 0
    while common < min(len(olds), len(news)) and olds[common] == news[common]:
        common += 1
    states = [change.at for change in news[common:]] + [change.at - 1 for change in olds[common:]]
    return min(states, default=None)


def _settings(config: RunConfig) -> dict[str, Any]:
    """Return what decides the bits of a run but its changes."""
    return config.model_dump(
        exclude={"name": True, "changes": True, "record": {"checkpoints", "limit_gib"}},
        exclude_none=True,
    )
