"""The needs of a run, estimated before anything is allocated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Problem
from dynamics_cli.memory import GIB, refuse_beyond_memory
from dynamics_cli.training.backends import Choice
from dynamics_cli.training.measuring import chosen_measures, recorded_iterations

_STORED_LOSS_BYTES = 16  # a float64 and an int64
_GRIDS = 4
"""Arrays of the times of a gradient flow that there are at once."""
_SNAPSHOT, _WRITTEN = 1e-4, 3e8
"""Seconds that a recorded state takes, and bytes that are written in a second."""
_CACHE, _MOVED = 2**22, 4e8
"""Bytes of activations that stay in the cache, and those that steppers of whole matrices give in a second beyond it,
each passed over a dozen times in fresh memory (Intel Xeon with AVX-512; others unmeasured)."""
_LOOK, _LOOKED = 1e-4, 6e10
"""Seconds that an evaluation of samples takes, and multiply-adds that it does in a second."""


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


def recorded_parameters(problem: Problem) -> list[str]:
    """Return the names of the parameters that the run records, in the order of the network.

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
    return [name for name in problem.shapes if name in wanted]


def loss_interval(problem: Problem) -> int:
    """Return the number of iterations between two recorded losses."""
    return problem.config.record.loss_every or problem.steps_per_epoch


def estimate(problem: Problem, choice: Choice) -> Estimate:
    """Return the needs of a run on the device and backend that the cost model chose.

    Raises:
        InputError: there are more iterations than a run can count, or too many snapshots to list.

    """
    total = problem.iterations
    if total >= 2**63:
        raise InputError(f"optimizer.epochs: {total:.3g} iterations are more than a run can count; take fewer epochs")
    snapshots = len(recorded_iterations(problem))
    item = problem.dtype.itemsize
    recorded = item * sum(math.prod(problem.shapes[name]) for name in recorded_parameters(problem))
    n, d = problem.dataset.x.shape
    batch, sizes = problem.batch_size or n, problem.layer_sizes
    by_torch = choice.backend == "torch"
    at_once = min(batch, problem.block_samples(choice.device)) if by_torch else batch
    # weights, gradients and update; pre-activations and activations, the gradients of one layer; data twice
    held = 2 * at_once * (sum(sizes) + max(sizes, default=0))
    memory = item * (4 * problem.parameter_count + held + 2 * n * d) + _times_bytes(problem)
    looks = 0 if problem.batch_size is None else total // loss_interval(problem) + 1
    disk = snapshots * recorded + total // loss_interval(problem) * _STORED_LOSS_BYTES
    activations = batch * sum(sizes) * item
    # this is no part of the cost model: the choice of `auto`, and so the identity of runs, does not depend on it
    moving = activations / _MOVED if by_torch and choice.device == "cpu" and activations > _CACHE else 0.0
    evaluated = [measure.samples(problem) for measure in chosen_measures(problem).values()]
    of_state = _SNAPSHOT + recorded / _WRITTEN + sum(_look(problem, samples) for samples in evaluated if samples)
    seconds = total * max(choice.seconds_per_iteration, moving) + looks * _look(problem, n) + snapshots * of_state
    return Estimate(total, problem.parameter_count, snapshots, memory, disk, seconds)


def _times_bytes(problem: Problem) -> int:
    """Return the memory for the times of a gradient flow's states, which are known up front."""
    return _GRIDS * 8 * problem.iterations if problem.config.optimizer.is_flow else 0


def _look(problem: Problem, samples: int) -> float:
    return _LOOK + samples * problem.multiply_adds / _LOOKED


def refuse_if_too_large(problem: Problem, needs: Estimate, *, available_bytes: int | None = None) -> None:
    """Refuse a run that cannot fit.

    Raises:
        InputError: more memory is needed than the machine has, or more disk than `record.limit_gib` allows.

    """
    of_times = _times_bytes(problem) > needs.memory_bytes / 2
    remedy = "take fewer optimizer.points" if of_times else "take a smaller width or batch"
    remedy = f": the network has {needs.parameters:.3g} weights; {remedy}"
    refuse_beyond_memory(needs.memory_bytes, "the run needs about", remedy, available=available_bytes)
    limit = problem.config.record.limit_gib
    if needs.disk_bytes > limit * GIB:
        raise InputError(
            f"the recording needs about {needs.disk_bytes / GIB:.1f} GiB, record.limit_gib is {limit:g}: "
            f"record fewer of the {needs.snapshots} snapshots, fewer parameters or losses, or raise the limit"
        )
