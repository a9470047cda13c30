"""The needs of a run and the mistakes of its config, before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.formulas.units import memory_slots
from dynamics_cli.kinds import Descent, Problem, RunConfig
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.memory import GIB, refuse_beyond_memory
from dynamics_cli.process import plain_process
from dynamics_cli.training.backends import (
    Choice,
    build_stepper,
    choose,
    cuda_available,
    multiply_adds,
)
from dynamics_cli.training.legs import Leg, legs_of
from dynamics_cli.training.measuring import Measuring
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.repeatable import holding
from dynamics_cli.waiting import hushed

_STORED_LOSS_BYTES = 16  # a float64 and an int64
_TIME_BYTES = 32
"""Of a state of a gradient flow: four arrays hold its time at once."""


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
    multiply_adds: int
    """Multiply-adds of the forward and backward passes of all iterations."""


def recorded_parameters(problem: Problem) -> list[str]:
    """Return the names of the weights and buffers that the run records, then of averages.

    Raises:
        InputError: the config asks for a parameter that the network does not have.
    """
    wanted = problem.config.record.parameters
    if wanted == "none":
        return []
    names = [*problem.shapes, *problem.buffers, *problem.averages]
    if wanted == "all":
        return names
    for name in wanted:
        if name not in names:
            raise InputError(
                f"record.parameters: no parameter {name!r}; this network has {', '.join(names)}"
            )
    return [name for name in names if name in wanted]


def loss_interval(problem: Problem) -> int:
    """Return the number of iterations between two recorded losses."""
    return problem.config.record.loss_every or problem.steps_per_epoch


def estimate_legs(legs: Sequence[Leg], choice: Choice) -> Estimate:
    """Return the needs of a run of one network on a device and backend.

    Raises:
        InputError: there are more iterations than a run can count, or too many snapshots to list.
    """
    first = legs[0].problem
    total = first.iterations
    if total >= 2**63:
        raise InputError(
            f"optimizer.epochs: {total:.3g} iterations are more than a run can count; take fewer"
            " epochs"
        )
    memory = snapshots = disk = work = 0
    for leg in legs:
        problem = leg.problem
        updates = leg.last - leg.first
        states = len(leg.recorded_states)
        snapshots += states
        memory = max(memory, _memory_bytes(problem, choice))
        disk += updates // loss_interval(problem) * _STORED_LOSS_BYTES
        disk += states * recorded_bytes(problem)
        if kept := len(leg.kept_states):  # the optimizer's memory is asked of its code
            disk += kept * checkpoint_bytes(problem, changed=leg.first > 0)
        work += updates * multiply_adds(problem)
    return Estimate(total, first.parameter_count, snapshots, memory, disk, work)


def _memory_bytes(problem: Problem, choice: Choice) -> int:
    item = problem.dtype.itemsize
    n, d = problem.dataset.x.shape
    sizes = problem.layer_sizes
    at_once = problem.batch_size or n
    if choice.backend != "compiled" and not problem.has_modes:
        at_once = min(at_once, problem.block_samples(choice.device))
    # weights, gradients and update; pre-activations and activations, the gradients of one layer;
    # data twice
    held = 2 * at_once * (sum(sizes) + max(sizes, default=0))
    memory: int = item * (4 * problem.parameter_count + held + 2 * n * d)
    memory += item * sum(map(math.prod, problem.averages.values()))
    if problem.config.optimizer.is_flow:
        memory += _TIME_BYTES * problem.iterations
    return memory


def recorded_bytes(problem: Problem) -> int:
    """Return the bytes of the weights and buffers of a recorded state."""
    item = problem.dtype.itemsize
    shapes = {**problem.shapes, **problem.averages}
    for name, buffer in problem.buffers.items():
        shapes[name] = buffer.shape
    return item * sum(math.prod(shapes[name]) for name in recorded_parameters(problem))


def checkpoint_bytes(problem: Problem, *, changed: bool = False) -> int:
    """Return the bytes of a checkpoint.

    It has the weights, their averages, the optimizer's memory, and the weights at the last change.

    An update that is no formula is taken to remember two numbers a weight.
    """
    copies = 1 + changed
    if problem.averages:
        copies *= 2
    if isinstance(problem.config.optimizer, Descent):
        copies += memory_slots(problem.config.optimizer)
    return copies * problem.dtype.itemsize * problem.parameter_count


def measuring_seconds(problem: Problem, choice: Choice) -> float:
    """Return the seconds of the measures of a run on this machine, by a trial at its start.

    Raises:
        DynError: the run cannot begin.
    """
    measuring = Measuring([problem])
    with hushed(), plain_process(), holding(problem.config)(), blamed(problem.config.architecture):
        stepper = build_stepper([problem], choice)
        weights = stepper.parameters()
        diagonal = stepper.preconditioner() if measuring.preconditioned else {}
        for _ in range(2):  # the first time it compiles
            measuring.at(weights, 0, diagonal)
    return measuring.seconds()


def refuse_if_too_large(
    problem: Problem, needs: Estimate, *, available_bytes: int | None = None
) -> None:
    """Refuse a run that cannot fit.

    Raises:
        InputError: more memory is needed than the machine has, or more disk than `record.limit_gib`
            allows.

    """
    smaller = "take a smaller width or batch"
    of_times = _TIME_BYTES * needs.iterations
    if problem.config.optimizer.is_flow and of_times > needs.memory_bytes / 2:
        smaller = "take fewer optimizer.points"
    remedy = f": the network has {needs.parameters:.3g} weights; {smaller}"
    refuse_beyond_memory(
        needs.memory_bytes, "the run needs about", remedy, available=available_bytes
    )
    limit = problem.config.record.limit_gib
    if needs.disk_bytes > limit * GIB:
        raise InputError(
            f"the recording needs about {needs.disk_bytes / GIB:.1f} GiB, record.limit_gib is"
            f" {limit:g}: record fewer of the {needs.snapshots} snapshots, fewer parameters or"
            " losses, or raise the limit"
        )


def check_problem(config: RunConfig) -> None:
    """Check the weights and the measures that a config names, and its data.

    Missing data files are no mistake.

    Raises:
        InputError: the parts of the config do not fit together.
    """
    with suppress(DataMissingError):
        problem = build_problem(config)
        config.architecture.refuse_unknown_weights(problem.shapes)
        problem.step_factors()
        rise = getattr(getattr(config.optimizer, "schedule", None), "warm_up", 0)
        if rise > problem.iterations:
            raise InputError(
                f"optimizer.schedule: warm_up lasts {rise} iterations, longer than the run"
                f" ({problem.iterations}), so that the step size never reaches lr"
            )
        _ = problem.measures
        recorded_parameters(problem)
        _, *later = legs_of([problem])
        if config.device != "cuda" or cuda_available():  # which the machine that trains may have
            choose([problem], [leg.problem for leg in later])
