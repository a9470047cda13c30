"""The legs of a run: the problems between two changes, and the time along them.

A run without `changes` has one leg. A leg from state a to state b does the updates a to b - 1, and
records the states a + 1 to b; the first leg records state 0 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynamics_cli.config.changes import Segment, segments_of
from dynamics_cli.errors import InputError, did_you_mean
from dynamics_cli.gradients.derivatives import trained_among
from dynamics_cli.kinds import Clock, Floats, Problem, SteadyClock
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
    """One, or one for each replica."""
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
    each = [segments_of(problem.config) for problem in problems]
    total = problems[0].iterations
    ends = [*(segment.first for segment in each[0][1:]), total]
    legs = [Leg(0, ends[0], problems)]
    for k, (first, last) in enumerate(pairwise(ends)):
        if first >= total:
            raise InputError(
                f"changes[{k}].at: must be before the end of the run, {total}, not {first}"
            )
        following = []
        for problem, (_, *segments) in zip(problems, each, strict=True):
            following.append(_problem_of(problem, segments[k], k))
        legs.append(Leg(first, last, following, each[0][k + 1].change))
    return legs


def _problem_of(whole: Problem, segment: Segment, k: int) -> Problem:
    """Return the problem of a segment of a run that began as `whole`."""
    config = segment.config
    # measures are objects that may have no name; epochs count passes over other data
    changed: dict[str, Any] = {
        "record": config.record.model_copy(update={"measures": list(whole.measures.values())})
    }
    if getattr(config.optimizer, "epochs", None) is not None:
        length = {"epochs": None, "iterations": whole.iterations}
        changed["optimizer"] = config.optimizer.model_copy(update=length)
    dataset = None
    if config.dataset == whole.config.dataset:
        dataset = whole.dataset
    try:
        _check_weights(whole, segment.change)
        problem = build_problem(config.model_copy(update=changed), dataset)
        problem = _with_frozen(problem, segment.frozen)
        _ = problem.measures
    except InputError as error:
        raise InputError(f"changes[{k}]: {error}") from error
    shapes, of_run = (
        [array.shape[1:] for array in (data.x, data.y)] for data in (problem.dataset, whole.dataset)
    )
    if shapes != of_run:
        raise InputError(
            f"changes[{k}].dataset: inputs and labels of a sample have the shapes"
            f" {' and '.join(map(str, shapes))}, in the run {' and '.join(map(str, of_run))}"
        )
    return problem


def _with_frozen(problem: Problem, names: Sequence[str]) -> Problem:
    """Return a problem whose weights of these names are not trained."""
    architecture = problem.config.architecture
    trained = trained_among(architecture, problem.shapes)
    resting = tuple(name for name in trained if name in names)
    rest = [name for name in trained if name not in names]
    if not resting:
        return problem
    if not rest:
        raise InputError("freeze: no weight is left that is trained; leave one out")
    architecture = architecture.model_copy(update={"train": rest})
    config = problem.config.model_copy(update={"architecture": architecture})
    return replace(problem, config=config, resting=resting)


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


def clock_of(legs: Sequence[Leg], k: int, begin: float = 0.0) -> Clock | None:
    """Return the clock of leg k, which begins at a time; None where no time is recorded.

    Replicas, whose steps may differ, have the clock of the first network.
    """
    optimizer: Any = legs[k].problem.config.optimizer
    clock: Clock | None = optimizer.clock(legs[k].problem.iterations)
    if clock is None:
        if not keeps_time(legs):
            return None
        clock = SteadyClock(optimizer.lr)
    clock.first = legs[k].first
    clock.time = begin
    return clock


def keeps_time(legs: Sequence[Leg]) -> bool:
    """Return whether the time of the states is recorded: it is not iterations times one step."""
    steps = {getattr(leg.problem.config.optimizer, "lr", None) for leg in legs}
    return len(steps) > 1 or any(
        leg.problem.config.optimizer.clock(leg.problem.iterations) is not None for leg in legs
    )


def known_times(legs: Sequence[Leg], states: Iterations) -> Floats:
    """Return the times (k,) of states, ascending, of a run whose times are known up front."""
    times = np.zeros(len(states))
    begin = 0.0
    for k, leg in enumerate(legs):
        inside = (states > leg.first - (k == 0)) & (states <= leg.last)
        clock = clock_of(legs, k, begin)
        if clock is not None and inside.any():
            times[inside] = clock.of(states[inside])
            begin = float(times[inside][-1])
    return times
