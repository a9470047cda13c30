"""Networks that can be trained together, as the replicas of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Problem, Samples, Section
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.process import plain_torch
from dynamics_cli.training.backends import (
    by_compiled,
    by_kernel,
    by_torch,
    has_large_layers,
    multiply_adds,
)
from dynamics_cli.training.legs import legs_of
from dynamics_cli.training.problem import build_problem

BATCH_BYTES = 256 * 2**20
"""Most bytes of weights, gradients and recorded numbers of a batch, about."""
BATCH_SIZE = 4096
"""Most networks of a batch."""
BATCH_WORK = 2**43
"""Most multiply-adds of a batch: minutes, so that tasks of a cluster end at about the same time."""
_FREE: dict[str, Any] = {
    "seed": True,
    "name": True,
    "optimizer": {"lr", "stop_below"},
    "architecture": {"activation", "slope"},
    "initialization": True,
    "dataset": True,
}
"""Settings in which replicas may differ; data sets only in their numbers, not in their shape."""


@dataclass(frozen=True)
class Division:
    """Places of configs in a list, by how they are trained."""

    batches: list[list[int]]
    """Networks that are trained together, at least two a batch."""
    singles: list[int]
    """Networks that have to be trained alone."""
    refused: list[tuple[list[int], str]]
    """Configs that no network can be trained with, and why."""


def divide(configs: Sequence[RunConfig], parts: int = 1) -> Division:
    """Sort configs into batches, the same on every machine.

    Those that differ only in seed, step and numbers of the initial weights are one. There are at
    least `parts` batches and single networks, unless there are fewer networks: the batches with the
    most work are divided.
    """
    texts: dict[tuple[str, int], str] = {}
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for k, config in enumerate(configs):
        kinds.setdefault(tuple(_bound(key, value, texts) for key, value in config), []).append(k)
    groups: dict[str, tuple[Problem, list[int]]] = {}
    division = Division([], [], [])
    for places in kinds.values():
        try:
            problem = build_problem(configs[places[0]])
            key = batch_key(problem)
        except DynError as error:
            division.refused.append((places, str(error)))
            continue
        if key is None:
            division.singles.extend(places)
        else:
            groups.setdefault(key, (problem, []))[1].extend(places)
    together: list[list[int]] = []
    works: list[int] = []
    counts: list[int] = []
    for problem, group in groups.values():
        group.sort()
        if len(group) == 1 or not _as_alone(problem, [configs[k] for k in group]):
            division.singles.extend(group)
        else:
            together.append(group)
            works.append(len(group) * _work(problem))
            counts.append(-(-len(group) // _most_together(problem)))
    for _ in range(parts - len(division.singles) - sum(counts)):
        if whole := [k for k, group in enumerate(together) if counts[k] < len(group)]:
            counts[max(whole, key=lambda k: works[k] / counts[k])] += 1
    for group, count in zip(together, counts, strict=True):
        ends = [-(-k * len(group) // count) for k in range(count + 1)]
        batches = [group[first:last] for first, last in pairwise(ends)]
        division.batches.extend(batch for batch in batches if len(batch) > 1)
        division.singles.extend(number for batch in batches if len(batch) == 1 for number in batch)
    division.singles.sort()
    return division


@plain_torch()
def _as_alone(problem: Problem, configs: Sequence[RunConfig]) -> bool:
    """Return whether networks trained together have the bits that each has alone."""
    if _way_of_all(problem) != "torch" or problem.config.device == "cuda":
        return True
    from dynamics_cli.training.steppers.autograd import AutogradStepper

    first, *_, last = configs
    try:
        return AutogradStepper(build_problems([first, last]), "cpu").mapped
    except DynError:
        return True  # told when they are trained


def _bound(key: str, value: Any, texts: dict[tuple[str, int], str]) -> str:
    """Return a top-level key as text, kept in `texts`, without numbers that may differ."""
    if key in ("seed", "name"):
        return ""
    if not isinstance(value, Section):
        return repr(value)
    if (key, id(value)) not in texts:
        plain = value.model_dump(mode="json")
        if key == "initialization":
            numbers = [name for name in plain if type(plain[name]) in (int, float)]
            for name in numbers:
                del plain[name]
        elif key == "optimizer":
            plain.pop("lr", None)
        texts[key, id(value)] = repr(plain)
    return texts[key, id(value)]


def build_problems(configs: Sequence[RunConfig]) -> list[Problem]:
    """Build the problems of configs (see `build_problem`).

    Data sets that are the same are built once.

    Raises:
        DynError: there is no such problem.
    """
    datasets: dict[str, Samples] = {}
    problems = []
    for config in configs:
        key = config.dataset.model_dump_json()
        if config.dataset.seeded:
            key += f" {config.seed}"
        problems.append(build_problem(config, datasets.get(key)))
        datasets[key] = problems[-1].dataset
    return problems


@blamed()
def batch_key(problem: Problem) -> str | None:
    """Return the key that problems trained together share.

    None for a problem that has to be trained alone.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.
    """
    config = problem.config
    stops_in_batches = problem.batch_size is not None and config.optimizer.stop_below is not None
    if stops_in_batches or getattr(config.optimizer, "loss_scaled", False):
        return None
    way = _way_of_all(problem)
    if way is None:
        return None
    free = dict(_FREE)
    if way == "torch":
        del free["architecture"]
    common = config.model_dump_json(exclude=free)
    return f"{way} {common} {problem.dataset.x.shape} {problem.shapes} {list(problem.measures)}"


def _way_of_all(problem: Problem) -> str | None:
    """Return the way that trains several networks together, before and after each change."""
    legs = legs_of([problem])
    ways = {_way(leg.problem) for leg in legs}
    for leg in legs[1:]:
        change = leg.change
        # a replica that has halted would go on
        assert change is not None
        revives = change.dataset or change.loss or change.reset or change.scale
        if revives or leg.problem.config.optimizer.stop_below is not None:
            return None
    if len(legs) > 1 and problem.config.optimizer.stop_below is not None:
        return None
    if ways == {"kernel", "engine"}:
        return "engine"
    return ways.pop() if len(ways) == 1 else None


def _way(problem: Problem) -> str | None:
    """Return the way that trains several networks of a problem together.

    None where there is none.
    """
    device = problem.config.device
    backend = problem.config.backend
    if problem.config.optimizer.is_flow:
        return None
    by_torch_instead = backend == "torch" or (backend == "auto" and has_large_layers(problem))
    if device != "cuda" and not by_torch_instead and by_compiled(problem):
        return "kernel" if by_kernel(problem) else "engine"
    if backend != "compiled" and by_torch(problem):
        from dynamics_cli.training.steppers.autograd import stackable

        if stackable(problem):
            return "torch"
    return None


def _most_together(problem: Problem) -> int:
    """Return how many networks like this one are trained together, by memory and work."""
    bytes_each = 8 * problem.dtype.itemsize * problem.parameter_count + 1024
    return max(1, min(BATCH_SIZE, BATCH_BYTES // bytes_each, BATCH_WORK // _work(problem)))


def _work(problem: Problem) -> int:
    """Return the multiply-adds of the training of a network."""
    return max(1, problem.iterations * multiply_adds(problem))
