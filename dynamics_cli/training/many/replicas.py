"""Networks that can be trained together, as the replicas of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Problem, Samples, Section
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.process import plain_process
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
UNEVEN = 1.1
"""Work of a part over that of all parts on average, from which runs are divided."""
T = TypeVar("T")
_FREE: dict[str, Any] = {
    "seed": True,
    "name": True,
    "optimizer": {"lr", "stop_below"},
    "architecture": {"activation", "slope"},
    "initialization": True,
    "dataset": True,
}
"""Settings in which replicas may differ; data sets only in their numbers, not in their shape."""


def divide(configs: Sequence[RunConfig], parts: int = 1) -> list[list[int]]:
    """Return the places of configs that are trained as one run, the same on every machine.

    Networks that differ only in seed, step and numbers of the initial weights are trained together.
    The runs with most work come first, and are divided until `dealt` gives `parts` parts about the
    same work.
    """
    groups = _alike(configs)
    total = sum(len(group) * work for group, work, _ in groups)
    counts = [-(-len(group) // most) for group, _, most in groups]
    for k, (group, work, _) in enumerate(groups):
        share = int(parts * len(group) * work / max(total, 1))
        counts[k] = max(counts[k], min(share, len(group)))
    best = math.inf
    best_runs: list[list[int]] = []
    for _ in range(3 * parts):
        runs = []
        for (group, work, _), count in zip(groups, counts, strict=True):
            ends = [-(-k * len(group) // count) for k in range(count + 1)]
            runs += [(-work * (j - i), group[i:j]) for i, j in pairwise(ends)]
        runs.sort()
        longest = -min(sum(work for work, _ in dealt(runs, part, parts)) for part in range(parts))
        if len(best_runs) < min(parts, len(runs)) or longest < best:
            best = longest
            best_runs = [places for _, places in runs]
        divisible = [k for k, (group, *_) in enumerate(groups) if counts[k] < len(group)]
        if not divisible or (len(runs) >= parts and best <= UNEVEN * total / parts):
            break
        counts[max(divisible, key=lambda k: len(groups[k][0]) * groups[k][1] / counts[k])] += 1
    return best_runs


def dealt(runs: Sequence[T], part: int, parts: int) -> list[T]:
    """Return the runs of a part, counted from 0: dealt in turn, there and back."""
    turns = [part, 2 * parts - 1 - part]
    return [run for k, run in enumerate(runs) if k % (2 * parts) in turns]


def _alike(configs: Sequence[RunConfig]) -> list[tuple[list[int], int, int]]:
    """Return networks that may be one run, the work of each, and how many are trained together."""
    texts: dict[tuple[str, int], str] = {}
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for k, config in enumerate(configs):
        kinds.setdefault(tuple(_bound(key, value, texts) for key, value in config), []).append(k)
    alike: list[tuple[list[int], int, int]] = []
    groups: dict[str, tuple[Problem, list[int]]] = {}
    for places in kinds.values():
        if configs[places[0]].recorded is not None:  # a call of a function
            alike.append((places, 1, 1))
            continue
        try:
            problem = build_problem(configs[places[0]])
            key = batch_key(problem)
        except DynError:  # told when they are trained
            alike.append((places, 0, len(places)))
            continue
        if key is None:
            alike.append((places, _work(problem), 1))
        else:
            groups.setdefault(key, (problem, []))[1].extend(places)
    for problem, group in groups.values():
        group.sort()
        together = len(group) > 1 and _as_alone(problem, [configs[k] for k in group])
        alike.append((group, _work(problem), _most_together(problem) if together else 1))
    return alike


@plain_process()
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
    if problem.config.optimizer.is_flow or backend == "torch_compile":
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
