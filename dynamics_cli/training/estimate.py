"""What a run will need, estimated before anything is allocated."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import psutil

from dynamics_cli.errors import InputError
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.schedule import snapshot_iterations

GIB = 2**30
_STORED_LOSS_BYTES = 16  # a float64 and an int64


@dataclass(frozen=True)
class Estimate:
    """Needs of one run."""

    iterations: int
    """Number of updates."""
    parameters: int
    """Number of weights."""
    snapshots: int
    """Number of recorded states."""
    memory_bytes: int
    """Working memory of the training loop, without the libraries' own."""
    disk_bytes: int
    """Size of the run directory."""
    seconds: float
    """Time of the training loop on two CPU cores, within a factor of a few."""

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return asdict(self)


def recorded_parameters(problem: Problem) -> list[str]:
    """Return the names of the parameters that the run records.

    Raises:
        InputError: the config asks for a parameter that the network does not have.

    """
    wanted = problem.config.record.parameters
    if wanted == "none":
        return []
    if wanted == "all":
        return list(problem.shapes)
    for name in wanted:
        if name not in problem.shapes:
            raise InputError(f"record.parameters: no parameter {name!r}; this network has {', '.join(problem.shapes)}")
    return list(wanted)


def loss_interval(problem: Problem) -> int:
    """Return the number of iterations between two recorded losses."""
    return problem.config.record.loss_every or problem.steps_per_epoch


def estimate(problem: Problem, seconds_per_iteration: float) -> Estimate:
    """Return what the run needs, given the time of one iteration from the cost model."""
    total = problem.iterations
    snapshots = len(snapshot_iterations(problem.config.record.snapshots, total))
    item = problem.dtype.itemsize
    recorded = sum(int(np.prod(problem.shapes[name])) for name in recorded_parameters(problem))
    n, d = problem.dataset.x.shape
    batch = problem.batch_size or n
    widest = max((shape[0] for shape in problem.shapes.values()), default=1)
    # weights, gradients and update; pre-activations, activations and their gradients; data twice
    memory = item * (4 * problem.parameter_count + 4 * batch * widest + 2 * n * d)
    disk = snapshots * recorded * item + total // loss_interval(problem) * _STORED_LOSS_BYTES
    return Estimate(total, problem.parameter_count, snapshots, memory, disk, total * seconds_per_iteration)


def refuse_if_too_large(problem: Problem, needs: Estimate, *, available_bytes: int | None = None) -> None:
    """Refuse a run that cannot fit.

    Raises:
        InputError: more memory is needed than the machine has, or more disk than `record.limit_gib` allows.

    """
    available = psutil.virtual_memory().total if available_bytes is None else available_bytes
    if needs.memory_bytes > available:
        raise InputError(
            f"the run needs about {needs.memory_bytes / GIB:.1f} GiB of memory, this machine has "
            f"{available / GIB:.1f} GiB: the network has {needs.parameters:.3g} weights; take a smaller width or batch"
        )
    limit = problem.config.record.limit_gib
    if needs.disk_bytes > limit * GIB:
        raise InputError(
            f"the recording needs about {needs.disk_bytes / GIB:.1f} GiB, record.limit_gib is {limit:g}: "
            f"record fewer of the {needs.snapshots} snapshots, fewer parameters or losses, or raise the limit"
        )
