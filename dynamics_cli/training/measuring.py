"""Measures of the recorded states during training."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, Parameters, Problem, State, read_only
from dynamics_cli.kinds.arrays import averages_among, stacked
from dynamics_cli.kinds.base import from_outside
from dynamics_cli.kinds.history import History
from dynamics_cli.kinds.registry import KindError
from dynamics_cli.kinds.snapshots import Iterations, snapshot_iterations
from dynamics_cli.text import duration
from dynamics_cli.training.obstacles import torch_obstacle
from dynamics_cli.training.steppers.base import Stepper
from dynamics_cli.waiting import PATIENCE_SECONDS, tell

_SHAPE = "shape of a state"
BEFORE = "before"
DONE = -1
"""In place of the last state of a replica that has been measured there."""
Weights = Mapping[str, NDArray[np.floating]]
Seen = tuple[dict[str, NDArray[np.floating]], dict[str, NDArray[np.float64]]]
"""Recorded weights and measures of one state."""


class Measuring:
    """Measures one network, or replicas, whose weights (R, ...) each measures by itself."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = [_read_only(problem) for problem in problems]
        self._recorded = problems[0].recorded_states
        self._measures = problems[0].measures  # replicas have equal ones
        self.history: History[Weights] = History(
            max((measure.updates for measure in self._measures.values()), default=0)
        )
        """Weights before the states that are recorded, as measures of updates need them."""
        self.preconditioned = any(measure.preconditioned for measure in self._measures.values())
        """Whether a measure needs the preconditioner of the optimizer."""
        # drawn once, if a measure asks
        self._starts = [cache(partial(_start, problem)) for problem in problems]
        self._due = {
            name: snapshot_iterations(measure.at, problems[0].iterations)
            for name, measure in self._measures.items()
            if measure.at is not None
        }
        self.memories: list[dict[str, dict[str, NDArray[Any]]]] = [{} for _ in problems]
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._began = time.monotonic()
        self._spent: dict[str, list[float]] = defaultdict(list)
        """Seconds that each measure took, state by state."""
        self._told: set[str] = set()
        """Measures that were told to be slow."""
        self._doubted: set[str] = set()
        """Measures of which a doubt was told."""

    def at(
        self,
        weights: Weights,
        iteration: int,
        preconditioner: Weights = MappingProxyType({}),
        ends: Sequence[int | None] = (),
    ) -> dict[str, Floats]:
        """Return every measure of a state by name, of replicas with their axis first.

        `weights` has the buffers of the network and the averages of its weights too.
        `preconditioner` is that of `Stepper.preconditioner`, where a measure needs it. A replica
        that has halted is measured at its last state, see `Stepper.ends`, and NaN where it is
        `DONE`.

        Raises:
            KindError: a measure gives no numbers, or numbers of another shape than before.
        """
        if not self._measures:
            return {}
        each: list[dict[str, Floats]] = []
        memories = []
        for r, end in enumerate(ends or [None] * len(self._problems)):
            if end == DONE:
                each.append({name: np.full(self._shapes[name], np.nan) for name in self._measures})
                memories.append(self.memories[r])
                continue
            at = iteration if end is None else end
            before = [self._of(former, r) for former in self.history.before(at)]
            numbers, memory = self._measure(
                r, self._of(weights, r), at, before, self._of(preconditioner, r)
            )
            each.append(numbers)
            memories.append(memory)
        self.memories = memories  # only now: a signal may have the state measured again
        return each[0] if len(each) == 1 else stacked(each)

    def _of(self, weights: Weights, r: int) -> Weights:
        """Return the weights of one network; a single network has no replica axis."""
        if len(self._problems) == 1:
            return weights
        return {name: value[r] for name, value in weights.items()}

    @cached_property
    def _watch(self) -> tuple[str, Any] | None:
        """The only measure of the only network, where it measures inside compiled calls."""
        if len(self._problems) != 1 or len(self._measures) != 1 or self._due:
            return None
        ((name, measure),) = self._measures.items()
        watch = measure.watch(self._problems[0])
        return None if watch is None else (name, watch)

    def advance(
        self, stepper: Stepper, n: int, due: Iterations, keeps: Collection[str]
    ) -> tuple[Floats, list[Seen]] | None:
        """Do up to `n` updates of a stepper, and measure the states `due` on the way.

        Return the losses and what was measured, with the weights to keep; None where measures have
        to be asked state by state.
        """
        if not stepper.watchable or self._watch is None:
            return None
        name, watch = self._watch
        former = self.memories[0].get(name, {})
        if len(former.get("vectors", ())) != len(
            watch.vector
        ):  # at first, and where others are trained
            return None
        watching = watch.begin(former["vectors"][:, 0], len(due), keeps=bool(keeps))
        losses = stepper.advance_watched(n, due, watch, watching)
        count = watch.measured
        if count:
            self.memories[0][name] = {"vectors": watch.vector[None].T}
        views = watch.views(watch.states)
        seen = [
            ({key: views[key][k] for key in keeps}, {name: watch.values[k : k + 1].reshape(())})
            for k in range(count)
        ]
        return losses, seen

    def _measure(
        self,
        r: int,
        weights: Weights,
        iteration: int,
        history: Sequence[Weights],
        preconditioner: Weights,
    ) -> Any:
        problem = self._problems[r]
        parameters = read_only(weights, problem.shapes)
        buffers = read_only(weights, problem.buffers)
        averages = averages_among(read_only(weights, problem.averages))
        before = tuple(read_only(former, [*problem.shapes, *buffers]) for former in history)
        shared = dict[str, Any]()
        numbers = {}
        memories = {}
        for name, measure in self._measures.items():
            memories[name] = dict(self.memories[r].get(name, {}))
            due = self._due.get(name)
            if due is None or due[np.searchsorted(due, iteration)] == iteration:
                state = State(
                    problem,
                    parameters,
                    self._starts[r],
                    iteration,
                    memory=memories[name],
                    shared=shared,
                    before=before,
                    buffers=buffers,
                    preconditioner=preconditioner,
                    averages=averages,
                )
                began = time.monotonic()
                numbers[name] = self._numbers(name, measure, state)
                self._spent[name].append(time.monotonic() - began)
                self._tell_if_slow(name, iteration)
            else:
                numbers[name] = np.full(self._shapes[name], np.nan)
        return numbers, memories

    def seconds(self) -> float:
        """Return the seconds that a network takes at all states, each as long as the last one."""
        return sum(
            spent[-1] * len(self._due.get(name, self._recorded))
            for name, spent in self._spent.items()
        )

    def _tell_if_slow(self, name: str, iteration: int) -> None:
        """Say once how long a measure will take that takes longer than the training so far.

        The first state of a process does not count: it loads libraries and compiles.
        """
        spent = self._spent[name]
        if name in self._told or len(spent) < 2:
            return
        each = min(spent)
        due = self._due.get(name, self._recorded)
        left = int((due > iteration).sum()) * len(self._problems)
        measured = sum(map(sum, self._spent.values()))
        trained = time.monotonic() - self._began - measured
        if each * left > PATIENCE_SECONDS and sum(spent) > trained:
            self._told.add(name)
            several = len(self._problems) > 1
            tell(
                f"{name}: about {duration(each * left)} for {left} more states of {each:.2g} s,"
                " longer than the training so far; `at` of the measure gives it fewer states"
                + (", `dyn sweep --workers N` takes N cores" if several else "")
            )

    def _numbers(self, name: str, measure: Measure, state: State) -> Floats:
        """Return the numbers that a measure gives of a state, in the shape that it gave before."""
        try:
            given = measure.measure(state)
        except NotImplementedError as error:  # an operation of torch without a derivative
            if from_outside(type(measure)):
                raise
            raise InputError(f"{name}: {torch_obstacle(error)}") from error
        array = np.empty(0, object)
        # lists of several lengths, tensors with a gradient
        with suppress(TypeError, ValueError, RuntimeError):
            array = np.asarray(given)
        numeric = array.dtype.kind in "buif"
        if numeric and self._shapes.setdefault(name, array.shape) == array.shape:
            numbers = array.astype(np.float64)
            if name not in self._doubted and (doubt := measure.doubt(numbers, state)):
                self._doubted.add(name)
                tell(f"{name} at iteration {state.iteration}: {doubt}")
            return numbers

        told = f"shape {array.shape}"
        if not numeric:
            told = f"{type(given).__name__} {given!r:.60}"
        expected = "a number or an array"
        if name in self._shapes:
            expected = f"numbers of shape {self._shapes[name]} as before"
        raise KindError(f"measure.kind {measure.kind!r} gives {told}, not {expected}")

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return the memories of all measures, for the checkpoint."""
        state: dict[str, NDArray[Any]] = {}
        for r, memories in enumerate(self.memories):
            for name, memory in memories.items():
                state |= {f"{r}/{name}/{key}": value for key, value in memory.items()}
        for name, shape in self._shapes.items():
            state[f"0/{name}/{_SHAPE}"] = np.array(shape, int)
        for iteration, weights in self.history:
            state |= {f"{BEFORE}/{iteration}/{key}": value for key, value in weights.items()}
        return state

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a former `state_dict()`."""
        history: dict[int, dict[str, NDArray[Any]]] = {}
        for key, value in state.items():
            r, name, remembered = key.split("/", 2)
            if r == BEFORE:
                history.setdefault(int(name), {})[remembered] = np.array(value)
            elif remembered == _SHAPE:
                self._shapes[name] = tuple(value.tolist())
            else:
                self.memories[int(r)].setdefault(name, {})[remembered] = np.array(value)
        for iteration in sorted(history):
            self.history.keep(iteration, history[iteration])


def _read_only(problem: Problem) -> Problem:
    """Return a problem whose samples cannot be written.

    Steppers have the samples of the problem itself.
    """
    samples = {
        key: value for key, value in vars(problem.dataset).items() if isinstance(value, np.ndarray)
    }
    dataset = replace(problem.dataset, **read_only(samples, samples))
    return replace(problem, dataset=dataset, shapes=MappingProxyType(problem.shapes))


def _start(problem: Problem) -> Parameters:
    return read_only(problem.initial_parameters(), problem.shapes)
