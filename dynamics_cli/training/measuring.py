"""Measures of the recorded states during training."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, Parameters, Problem, State, read_only
from dynamics_cli.kinds.registry import KindError, is_foreign, loaded_kinds
from dynamics_cli.recording.snapshots import Iterations, snapshot_iterations

_SHAPE = "shape of a state"
Weights = Mapping[str, NDArray[np.floating]]


def chosen_measures(problem: Problem) -> dict[str, Measure]:
    """Return the measures that the config asks for, or those that are recorded by default, by name.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.

    """
    wanted = problem.config.record.measures
    if wanted is None:
        return default_measures(problem)
    for one in wanted:
        if not one.offered(problem):
            offered = [name for name, cls in loaded_kinds("measure").items() if _offers(problem, cls)]
            why = f", it needs {one.needs}" if one.needs else ""
            raise InputError(f"record.measures: no measure {one.kind!r} here{why}; there are {', '.join(offered)}")
    named = {one.name: one for one in wanted}
    if len(named) < len(wanted):
        twice = next(name for name in named if sum(one.name == name for one in wanted) > 1)
        raise InputError(f"record.measures: {twice} is there twice")
    return named


def default_measures(problem: Problem) -> dict[str, Measure]:
    """Return the measures that a problem records where its config names none, by name."""
    kinds = [cls for cls in loaded_kinds("measure").values() if issubclass(cls, Measure) and cls.by_default]
    return {one.name: one for one in (cls() for cls in kinds) if one.offered(problem) and one.usual(problem)}


def _offers(problem: Problem, cls: type) -> bool:
    """Return whether a problem offers a measure that needs no settings."""
    with suppress(InputError):
        return not any(field.is_required() for field in cls.model_fields.values()) and cls().offered(problem)  # type: ignore[attr-defined]
    return False


def recorded_iterations(problem: Problem) -> Iterations:
    """Return the states that are recorded: by `record.snapshots`, and where measures are due.

    Raises:
        InputError: these would be too many to be recorded.
    """
    schedules = [problem.config.record.snapshots, *(one.at for one in chosen_measures(problem).values())]
    listed = [snapshot_iterations(one, problem.iterations) for one in schedules if one is not None]
    return reduce(np.union1d, listed)


class Measuring:
    """Measures one network, or replicas, whose weights (R, ...) each measures by itself."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = [_read_only(problem) for problem in problems]
        self._measures = chosen_measures(problems[0])  # replicas have equal ones
        self._starts = [cache(partial(_start, problem)) for problem in problems]  # drawn once, if a measure asks
        first = problems[0]
        self._due = {
            name: snapshot_iterations(one.at, first.iterations)
            for name, one in self._measures.items()
            if one.at is not None
        }
        self.memories: list[dict[str, dict[str, NDArray[Any]]]] = [{} for _ in problems]
        self._shapes: dict[str, tuple[int, ...]] = {}

    def at(self, weights: Weights, iteration: int) -> dict[str, Floats]:
        """Return every measure of a state by name, of replicas with their axis first.

        Raises:
            KindError: a measure gives no numbers, or numbers of another shape than before.
        """
        if not self._measures:
            return {}
        several = len(self._problems) > 1
        each, memories = [], []
        for r in range(len(self._problems)):
            of_replica = {key: value[r] for key, value in weights.items()} if several else weights
            numbers, memory = self._measure(r, of_replica, iteration)
            each.append(numbers)
            memories.append(memory)
        self.memories = memories  # only now: a signal may have the state measured again
        return {name: np.stack([one[name] for one in each]) for name in each[0]} if several else each[0]

    def _measure(self, r: int, weights: Weights, iteration: int) -> Any:
        problem = self._problems[r]
        parameters, shared = read_only(weights, problem.shapes), dict[str, Any]()
        numbers, memories = {}, {}
        for name, one in self._measures.items():
            memories[name] = dict(self.memories[r].get(name, {}))
            due = self._due.get(name)
            if due is None or due[np.searchsorted(due, iteration)] == iteration:
                state = State(problem, parameters, self._starts[r], iteration, memories[name], shared)
                numbers[name] = self._numbers(name, one, state)
            else:
                numbers[name] = np.full(self._shapes[name], np.nan)
        return numbers, memories

    def _numbers(self, name: str, measure: Measure, state: State) -> Floats:
        """Return the numbers that a measure gives of a state, in the shape that it gave before."""
        with _unshared() if is_foreign(type(measure)) else nullcontext():
            given = measure.measure(state)
        array = np.empty(0, object)
        with suppress(TypeError, ValueError, RuntimeError):  # lists of several lengths, tensors with a gradient
            array = np.asarray(given)
        numeric = array.dtype.kind in "buif"
        if numeric and self._shapes.setdefault(name, array.shape) == array.shape:
            return array.astype(np.float64)
        expected = (
            f"numbers of shape {self._shapes[name]} as before" if name in self._shapes else "a number or an array"
        )
        told = f"shape {array.shape}" if numeric else f"{type(given).__name__} {given!r:.60}"
        raise KindError(f"measure.kind {measure.kind!r} gives {told}, not {expected}")

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return the memories of all measures, for the checkpoint."""
        remembered = {
            f"{r}/{name}/{key}": value
            for r, memories in enumerate(self.memories)
            for name, memory in memories.items()
            for key, value in memory.items()
        }
        return remembered | {f"0/{name}/{_SHAPE}": np.array(shape, int) for name, shape in self._shapes.items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a former `state_dict()`."""
        for key, value in state.items():
            r, name, own = key.split("/", 2)
            if own == _SHAPE:
                self._shapes[name] = tuple(value.tolist())
            else:
                self.memories[int(r)].setdefault(name, {})[own] = np.array(value)


def _read_only(problem: Problem) -> Problem:
    """Return a problem whose samples cannot be written; steppers have the samples of the problem itself."""
    samples = {key: value for key, value in vars(problem.dataset).items() if isinstance(value, np.ndarray)}
    dataset = replace(problem.dataset, **read_only(samples, samples))
    return replace(problem, dataset=dataset, shapes=MappingProxyType(problem.shapes))


def _start(problem: Problem) -> Parameters:
    return read_only(problem.initial_parameters(), problem.shapes)


@contextmanager
def _unshared() -> Iterator[None]:
    """Have torch refuse to share the memory of read-only arrays: it would warn once and then write to it."""
    torch = sys.modules.get("torch")
    always = torch is not None and torch.is_warn_always_enabled()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The given NumPy array is not writable")
        try:
            if torch is not None:
                torch.set_warn_always(True)
            yield
        finally:
            if torch is not None:
                torch.set_warn_always(always)
