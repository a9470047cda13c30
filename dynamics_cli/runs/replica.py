"""Replicas trained together, each of which reads as a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dynamics_cli.config.dump import to_plain
from dynamics_cli.config.load import load_config
from dynamics_cli.config.run import RunConfig
from dynamics_cli.errors import RunError
from dynamics_cli.runs.run import Array, Arrays, Run


class ReplicaSet(Sequence["ReplicaRun"]):
    """The replicas of one run directory; `set[r]` reads as a `Run`."""

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        """Open a run directory that holds replicas.

        Raises:
            RunError: it is not a run, is damaged, or holds a single run.
        """
        self.together = Run(path, verify=verify)
        self.path = self.together.path
        self.info = self.together.info
        if not isinstance(self.info.get("replicas"), list):
            raise RunError(f"{self.path} holds a single run, not replicas")

    def __len__(self) -> int:
        return len(self.info["replicas"])

    def __getitem__(self, r: Any) -> Any:
        if isinstance(r, slice):
            return [self[k] for k in range(*r.indices(len(self)))]
        if not -len(self) <= r < len(self):
            raise IndexError(f"{self.path} has {len(self)} replicas, none with index {r}")
        return ReplicaRun(self, r % len(self))

    def __iter__(self) -> Iterator[ReplicaRun]:
        return (ReplicaRun(self, r) for r in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} replicas of {self.together!r}>"


class ReplicaRun(Run):
    """One of several runs that were trained together: the same arrays without the replica axis."""

    def __init__(self, replicas: ReplicaSet, r: int) -> None:
        """Look at replica r."""
        together = replicas.together
        self.path, self.replica = together.path, r
        self._together = together
        each = {
            name: together.info.get(f"replica_{key}", [None] * len(replicas))[r]
            for name, key in (("final_loss", "losses"), ("iterations", "iterations"), ("status", "statuses"))
        }
        self.info = {**together.info, **{name: value for name, value in each.items() if value is not None}}
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

    def check_all(self) -> None:
        """Check every array of all replicas."""
        self._together.check_all()

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
