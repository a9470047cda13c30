"""Replicas of one run, each of which reads as a run of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.load import load_config
from dynamics_cli.errors import RunError
from dynamics_cli.kinds import RunConfig
from dynamics_cli.runs.run import Array, Arrays, Run


class ReplicaRun(Run):
    """One of several networks that were trained together: the same arrays without the replica axis."""

    def __init__(self, together: Run, r: int) -> None:
        """Look at replica r of a run."""
        self.path, self.replica = together.path, r
        self._together = together
        each = {
            name: together.info[f"replica_{key}"][r] if f"replica_{key}" in together.info else None
            for name, key in (("final_loss", "losses"), ("iterations", "iterations"), ("status", "statuses"))
        }
        self.info = {**together.info, **{name: value for name, value in each.items() if value is not None}}
        del self.info["replicas"]  # this is one network
        self.info["final_loss"] = each["final_loss"]
        self.status = each["status"] or together.status

    def __repr__(self) -> str:
        return f"<Run {self.path.name}[{self.replica}]: {self.status}, {self.iterations} iterations>"

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config of this replica."""
        changes = self._together.info["replicas"][self.replica]
        return load_config({**to_plain(self._together.config), **changes}, check_files_exist=False)

    @property
    def finished(self) -> bool:
        """Whether the writer ended in order."""
        return self._together.finished

    def check_all(self, usable: str = "") -> None:
        """Check every array of all replicas."""
        self._together.check_all(usable)

    @property
    def losses(self) -> Array:
        """Recorded losses (L,) float64, up to the state at which this replica halted."""
        losses = self._together.losses
        return losses[: self._rows(), self.replica] if losses.ndim > 1 else losses

    @property
    def loss_iterations(self) -> Array:
        """Iterations of the recorded losses (L,) int64."""
        return self._together.loss_iterations[: self._rows()]

    def _rows(self) -> int:
        last = self.info.get("iterations", math.inf)
        iterations = self._together.loss_iterations
        return int((iterations <= last).sum())

    @property
    def times(self) -> Array | None:
        """Time is iterations x step for replicas."""
        return None

    @property
    def snapshot_iterations(self) -> Array:
        """Iterations of the snapshots (K,) int64."""
        return self._together.snapshot_iterations

    @cached_property
    def parameters(self) -> Mapping[str, Array]:
        """Recorded parameters by name, each (K, *shape)."""
        return self._own(self._together.parameters)

    @cached_property
    def measures(self) -> Mapping[str, Array]:
        """Recorded measures by name, each (K,) float64."""
        return self._own(self._together.measures)

    def _own(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        return Arrays(list(arrays), lambda name: arrays[name][:, self.replica])


def replicas_of(together: Run) -> list[ReplicaRun]:
    """Return the replicas of a run, in their order.

    Raises RunError: it is a single network.
    """
    replicas = together.info.get("replicas")
    if not isinstance(replicas, list):
        raise RunError(f"{together.path} holds a single run, not replicas")
    return [ReplicaRun(together, r) for r in range(len(replicas))]
