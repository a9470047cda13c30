"""Replicas of one run, each read like a single run."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.load import load_config
from dynamics_cli.errors import RunError
from dynamics_cli.kinds import RunConfig
from dynamics_cli.runs.run import Array, Run
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.checkpoints import Checkpoint

_EACH = {
    "final_loss": "replica_losses",
    "iterations": "replica_iterations",
    "status": "replica_statuses",
    "stopped_early": "replica_stopped_early",
}
"""Entry of `run.json` -> the entry that has it of each replica."""


class ReplicaRun(Run):
    """A network that was trained together with others: the same arrays without the replica axis."""

    def __init__(self, together: Run, r: int) -> None:
        """Look at replica r of a run."""
        self.path = together.path
        self.replica = r
        self._together = together
        self.info = {**together.info, "final_loss": None}
        del self.info["replicas"]  # this is one network
        for name, key in _EACH.items():
            each = together.info.get(key)
            if each is not None and each[r] is not None:
                self.info[name] = each[r]
        self.status = together.status
        if together.info.get("replica_statuses"):
            self.status = self.info["status"]

    def __repr__(self) -> str:
        return (
            f"<Run {self.path.name}[{self.replica}]: {self.status}, {self.iterations} iterations>"
        )

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config of this replica."""
        changes = self._together.info["replicas"][self.replica]
        return load_config(
            {**to_plain(self._together.config), **changes}, check_files_exist=False, lenient=True
        )

    def check_all(self, usable: str = "") -> None:
        """Check every array of all replicas."""
        self._together.check_all(usable)

    @property
    def _counted(self) -> Checkpoint:
        return self._together._counted

    def _read(self, name: str) -> Array:
        """Return the rows up to the state at which this replica halted.

        All replicas share the recorded states, between which it may have halted: its last row is
        the next, in which it rests.
        """
        array = self._together._read(name)
        shared = layout.SNAPSHOT_ITERATIONS
        if name in layout.LOSS_GROUP:
            shared = layout.LOSS_ITERATIONS
        states = self._together._read(shared)
        end = self.info.get("iterations", math.inf)
        rows = int(np.searchsorted(states, end)) + 1
        if name == shared:
            reached: Array = np.minimum(states[:rows], end).astype(states.dtype)
            return reached
        if name == layout.TIMES:
            return self._times(array[:rows], states[:rows], end)
        own: Array = array[:rows]
        if own.ndim > 1:
            own = own[:, self.replica]
        return own

    def _times(self, times: Array, states: Array, end: float) -> Array:
        """Return the times of the losses, by the step of this replica."""
        if self.config.changes:
            return np.interp(np.minimum(states, end), states, times)
        clock = self.config.optimizer.clock(self.config.optimizer.count(1))
        if clock is None:
            return times
        reached = np.minimum(states, end).astype(np.int64)
        return clock.of(reached)


def replicas_of(together: Run) -> list[ReplicaRun]:
    """Return the replicas of a run, in their order.

    Raises RunError: it is a single network.
    """
    replicas = together.info.get("replicas")
    if not isinstance(replicas, list):
        raise RunError(f"{together.path} holds a single run, not replicas")
    return [ReplicaRun(together, r) for r in range(len(replicas))]
