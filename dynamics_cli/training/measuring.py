"""Measures of the recorded states during training."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, Parameters, Problem, State, read_only
from dynamics_cli.kinds.registry import KindError, loaded_kinds
from dynamics_cli.recording.snapshots import Iterations, snapshot_iterations
from dynamics_cli.text import duration
from dynamics_cli.waiting import PATIENCE_SECONDS, tell

_SHAPE = "shape of a state"
Weights = Mapping[str, NDArray[np.floating]]


def chosen_measures(problem: Problem) -> dict[str, Measure]:
    """Return the measures that the config asks for, or those that are recorded by default, by name.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.

    """
    wanted = problem.config.record.measures
    if wanted is None:
        kinds = [
            cls
            for cls in loaded_kinds("measure").values()
            if issubclass(cls, Measure) and cls.by_default
        ]
        usual = [cls() for cls in kinds]
        return {
            measure.name: measure
            for measure in usual
            if measure.offered(problem) and measure.usual(problem)
        }
    named: dict[str, Measure] = {}
    for measure in wanted:
        if not measure.offered(problem):
            why = f", it needs {measure.needs}" if measure.needs else ""
            raise InputError(f"record.measures: no measure {measure.kind!r} here{why}")
        if measure.name in named:
            raise InputError(f"record.measures: {measure.name} is there twice")
        named[measure.name] = measure
    return named


def recorded_iterations(problem: Problem) -> Iterations:
    """Return the states that are recorded: by `record.snapshots`, and where measures are due.

    Raises:
        InputError: these would be too many to be recorded.
    """
    schedules = [
        problem.config.record.snapshots,
        *(measure.at for measure in chosen_measures(problem).values()),
    ]
    return reduce(
        np.union1d,
        [snapshot_iterations(at, problem.iterations) for at in schedules if at is not None],
    )


class Measuring:
    """Measures one network, or replicas, whose weights (R, ...) each measures by itself."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = [_read_only(problem) for problem in problems]
        self._measures = chosen_measures(problems[0])  # replicas have equal ones
        self._starts = [
            cache(partial(_start, problem)) for problem in problems
        ]  # drawn once, if a measure asks
        self._due = {
            name: snapshot_iterations(measure.at, problems[0].iterations)
            for name, measure in self._measures.items()
            if measure.at is not None
        }
        self.memories: list[dict[str, dict[str, NDArray[Any]]]] = [{} for _ in problems]
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._began = time.monotonic()
        self._spent: dict[str, list[float]] = {name: [] for name in self._measures}
        """Seconds that each measure took, state by state."""
        self._told: set[str] = set()

    def at(self, weights: Weights, iteration: int) -> dict[str, Floats]:
        """Return every measure of a state by name, of replicas with their axis first.

        Raises:
            KindError: a measure gives no numbers, or numbers of another shape than before.
        """
        if not self._measures:
            return {}
        several = len(self._problems) > 1
        each = []
        memories = []
        for r in range(len(self._problems)):
            of_replica = {key: value[r] for key, value in weights.items()} if several else weights
            numbers, memory = self._measure(r, of_replica, iteration)
            each.append(numbers)
            memories.append(memory)
        self.memories = memories  # only now: a signal may have the state measured again
        return (
            {name: np.stack([numbers[name] for numbers in each]) for name in each[0]}
            if several
            else each[0]
        )

    def _measure(self, r: int, weights: Weights, iteration: int) -> Any:
        problem = self._problems[r]
        parameters = read_only(weights, problem.shapes)
        shared = dict[str, Any]()
        numbers = {}
        memories = {}
        for name, measure in self._measures.items():
            memories[name] = dict(self.memories[r].get(name, {}))
            due = self._due.get(name)
            if due is None or due[np.searchsorted(due, iteration)] == iteration:
                state = State(
                    problem, parameters, self._starts[r], iteration, memories[name], shared
                )
                began = time.monotonic()
                numbers[name] = self._numbers(name, measure, state)
                self._spent[name].append(time.monotonic() - began)
                self._tell_if_slow(name, iteration)
            else:
                numbers[name] = np.full(self._shapes[name], np.nan)
        return numbers, memories

    def _tell_if_slow(self, name: str, iteration: int) -> None:
        """Say once how long a measure will take that takes longer than the training so far.

        The first state of a process does not count: it loads libraries and compiles.
        """
        spent = self._spent[name]
        if name in self._told or len(spent) < 2:
            return
        each = min(spent)
        due = self._due.get(name)
        if due is None:
            due = recorded_iterations(self._problems[0])
        left = int((np.asarray(due) > iteration).sum()) * len(self._problems)
        measured = sum(map(sum, self._spent.values()))
        trained = time.monotonic() - self._began - measured
        if each * left > PATIENCE_SECONDS and sum(spent) > trained:
            self._told.add(name)
            tell(
                f"{name}: about {duration(each * left)} for {left} more states of {each:.2g} s,"
                " longer than the training so far; `at` of the measure gives it fewer states"
            )

    def _numbers(self, name: str, measure: Measure, state: State) -> Floats:
        """Return the numbers that a measure gives of a state, in the shape that it gave before."""
        given = measure.measure(state)
        array = np.empty(0, object)
        with suppress(
            TypeError, ValueError, RuntimeError
        ):  # lists of several lengths, tensors with a gradient
            array = np.asarray(given)
        numeric = array.dtype.kind in "buif"
        if numeric and self._shapes.setdefault(name, array.shape) == array.shape:
            return array.astype(np.float64)
        shape = self._shapes.get(name)
        expected = (
            "a number or an array" if shape is None else f"numbers of shape {shape} as before"
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
        return remembered | {
            f"0/{name}/{_SHAPE}": np.array(shape, int) for name, shape in self._shapes.items()
        }

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a former `state_dict()`."""
        for key, value in state.items():
            r, name, remembered = key.split("/", 2)
            if remembered == _SHAPE:
                self._shapes[name] = tuple(value.tolist())
            else:
                self.memories[int(r)].setdefault(name, {})[remembered] = np.array(value)


def _read_only(problem: Problem) -> Problem:
    """Return a problem whose samples cannot be written; steppers have the samples of the problem
    itself.
    """
    samples = {
        key: value for key, value in vars(problem.dataset).items() if isinstance(value, np.ndarray)
    }
    dataset = replace(problem.dataset, **read_only(samples, samples))
    return replace(problem, dataset=dataset, shapes=MappingProxyType(problem.shapes))


def _start(problem: Problem) -> Parameters:
    return read_only(problem.initial_parameters(), problem.shapes)
