"""The legs of a run: the problems between two changes, and the time along them.

A run without `changes` has one leg. A leg from state a to state b does the updates a to b - 1, and
records the states a + 1 to b; the first leg records state 0 too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynamics_cli.config import RunConfig
from dynamics_cli.config.changes import Segment, segments_of
from dynamics_cli.errors import InputError, did_you_mean
from dynamics_cli.gradients.derivatives import trained_among
from dynamics_cli.kinds import Clock, Floats, Problem, RescaledClock
from dynamics_cli.kinds.problem import Change
from dynamics_cli.kinds.snapshots import Iterations
from dynamics_cli.training.problem import build_problem


@dataclass(frozen=True)
class Leg:
    """A part of a run with one config."""

    first: int
    """The state from which it trains."""
    last: int
    """The last state that it reaches."""
    problems: Sequence[Problem]
    """One, or those of replicas."""
    change: Change | None = None
    """What was changed at its first state; None of the first leg."""

    @property
    def problem(self) -> Problem:
        """The first problem; all record the same states."""
        return self.problems[0]

    @property
    def recorded_states(self) -> Iterations:
        """The states that it records, its last always."""
        states = self.problem.recorded_states
        inside = states[(states > self.first) & (states < self.last)]
        begin = [0] if self.first == 0 else []
        return np.concatenate([begin, inside, [self.last]]).astype(np.int64)

    @property
    def kept_states(self) -> list[int]:
        """The states whose checkpoints are kept, ascending."""
        kept = self.problem.kept_states.tolist()
        return [i for i in kept if self.first < i <= self.last]


def legs_of(problems: Sequence[Problem]) -> list[Leg]:
    """Return the legs of a run of one network, or of replicas with the same changes.

    Raises:
        InputError: a change is not within the run, does not suit its data, or names a weight that
            the network does not have.
    """
    first = problems[0]
    total = first.iterations
    if not first.config.changes:
        return [Leg(0, total, problems)]
    each = [segments_of(problem.config) for problem in problems]
    starts = [segment.first for segment in each[0]]
    if starts[-1] >= total:
        raise InputError(
            f"changes[{len(starts) - 2}].at: must be before the end of the run, {total}, not"
            f" {starts[-1]}"
        )
    legs = [Leg(0, starts[1], problems)]
    ends = [*starts[1:], total]
    for k in range(1, len(starts)):
        following = []
        for problem, segments in zip(problems, each, strict=True):
            following.append(_problem_of(problem, segments[k], k - 1))
        legs.append(Leg(starts[k], ends[k], following, each[0][k].change))
    return legs


def _problem_of(whole: Problem, segment: Segment, k: int) -> Problem:
    """Return the problem of a segment of a run that began as `whole`."""
    config = _of_equal_length(whole, segment.config)
    record = config.record.model_copy(update={"measures": list(whole.measures.values())})
    dataset = None
    if config.dataset == whole.config.dataset:
        dataset = whole.dataset
    try:
        _check_weights(whole, segment.change)
        problem = build_problem(config.model_copy(update={"record": record}), dataset)
        problem = _with_frozen(problem, segment.frozen)
        _ = problem.measures
    except InputError as error:
        raise InputError(f"changes[{k}]: {error}") from error
    shapes = (problem.dataset.x.shape[1:], problem.dataset.y.shape[1:])
    if shapes != (whole.dataset.x.shape[1:], whole.dataset.y.shape[1:]):
        raise InputError(
            f"changes[{k}].dataset: inputs and labels of a sample have the shapes {shapes[0]} and"
            f" {shapes[1]}; those of the run are {whole.dataset.x.shape[1:]} and"
            f" {whole.dataset.y.shape[1:]}"
        )
    return problem


def _with_frozen(problem: Problem, names: Sequence[str]) -> Problem:
    """Return a problem whose weights of these names are not trained."""
    architecture = problem.config.architecture
    trained = trained_among(architecture, problem.shapes)
    resting = tuple(name for name in trained if name in names)
    if not resting:
        return problem
    rest = [name for name in trained if name not in resting]
    if not rest:
        raise InputError("freeze: no weight is left that is trained; leave one out")
    architecture = architecture.model_copy(update={"train": rest})
    config = problem.config.model_copy(update={"architecture": architecture})
    return replace(problem, config=config, resting=resting)


def _of_equal_length(whole: Problem, config: RunConfig) -> RunConfig:
    """Return a config of as many updates as the run has, whatever the epochs of its own data."""
    if getattr(config.optimizer, "epochs", None) is None:
        return config
    length = {"epochs": None, "iterations": whole.iterations}
    return config.model_copy(update={"optimizer": config.optimizer.model_copy(update=length)})


def _check_weights(problem: Problem, change: Change | None) -> None:
    """Refuse names of weights that the network does not have."""
    if change is None:
        return
    for key in ("freeze", "reset", "scale"):
        for name in getattr(change, key) or ():
            if name not in problem.shapes:
                close = did_you_mean(name, problem.shapes)
                raise InputError(
                    f"{key}: no weight {name!r}; there are {', '.join(problem.shapes)}{close}"
                )


def changed_weights(change: Change, weights: dict[str, Any]) -> dict[str, Any]:
    """Return the weights with those that a change sets or multiplies."""
    changed = dict(weights)
    for name, value in (change.reset or {}).items():
        changed[name] = np.full_like(weights[name], value)
    for name, factor in (change.scale or {}).items():
        changed[name] = weights[name] * weights[name].dtype.type(factor)
    return changed


class LegClock(Clock):
    """The time along a leg, from the time at which it begins."""

    def __init__(self, leg: Leg, begin: float) -> None:
        optimizer: Any = leg.problem.config.optimizer
        self._first = leg.first
        self._begin = begin
        self._inner = optimizer.clock(leg.problem.iterations)
        self._lr = getattr(optimizer, "lr", 0.0)
        self.summed = isinstance(self._inner, RescaledClock)
        if self.summed:
            self._inner.time = begin

    @property
    def time(self) -> float:
        """Time of the next state, where times are summed along the run."""
        return self._inner.time if self.summed else self._begin

    @time.setter
    def time(self, value: float) -> None:
        if self.summed:
            self._inner.time = value

    def advance(self, first: int, losses: Floats) -> Floats:
        """Return the times of states `first, ...`; see `Clock.advance`."""
        if self.summed:
            times: Floats = self._inner.advance(first, losses)
            return times
        return self.of(np.arange(first, first + len(losses)))

    def of(self, states: Iterations) -> Floats:
        """Return the times (k,) of states of the leg."""
        if self._inner is None:
            return np.asarray(self._begin + self._lr * (states - self._first), np.float64)
        times = self._inner.times
        return np.asarray(self._begin + (times[states] - times[self._first]), np.float64)


def keeps_time(legs: Sequence[Leg]) -> bool:
    """Return whether the time of the states is recorded: it is not iterations times one step."""
    optimizers = [leg.problem.config.optimizer for leg in legs]
    steps = {getattr(optimizer, "lr", None) for optimizer in optimizers}
    return len(steps) > 1 or any(
        optimizer.clock(leg.problem.iterations) is not None
        for optimizer, leg in zip(optimizers, legs, strict=True)
    )


def clock_of(legs: Sequence[Leg], k: int, begin: float) -> Clock | None:
    """Return the clock of leg k, which begins at a time; None where no time is recorded.

    Replicas, whose steps may differ, have that of the first network.
    """
    if len(legs) == 1:
        return legs[0].problem.config.optimizer.clock(legs[0].problem.iterations)
    if not keeps_time(legs):
        return None
    return LegClock(legs[k], begin)


def of_states(legs: Sequence[Leg], states: Iterations) -> Iterator[tuple[int, Iterations]]:
    """Yield the number of each leg, and those of the states that it records."""
    for k, leg in enumerate(legs):
        yield k, states[(states > leg.first - (k == 0)) & (states <= leg.last)]
