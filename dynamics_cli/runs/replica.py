"""Replicas of one run, each read like a single run."""

from __future__ import annotations

import math
from functools import cached_property

from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.load import load_config
from dynamics_cli.errors import RunError
from dynamics_cli.kinds import RunConfig
from dynamics_cli.runs.run import Array, Counted, Run
from dynamics_cli.runs.store import layout

_EACH = {
    "final_loss": "replica_losses",
    "iterations": "replica_iterations",
    "status": "replica_statuses",
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
    def _counted(self) -> Counted:
        return self._together._counted

    @cached_property
    def _loss_rows(self) -> int:
        """Recorded losses up to the state at which this replica halted."""
        return int((self._together.loss_iterations <= self.info.get("iterations", math.inf)).sum())

    def _read(self, name: str) -> Array:
        array = self._together._read(name)
        if name in layout.LOSS_GROUP:
            array = array[: self._loss_rows]
        if array.ndim > 1:  # all replicas share iterations
            array = array[:, self.replica]
        return array


def replicas_of(together: Run) -> list[ReplicaRun]:
    """Return the replicas of a run, in their order.

    Raises RunError: it is a single network.
    """
    replicas = together.info.get("replicas")
    if not isinstance(replicas, list):
        raise RunError(f"{together.path} holds a single run, not replicas")
    return [ReplicaRun(together, r) for r in range(len(replicas))]
