"""What is measured at the recorded states during training."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.bases import Measure, State
from dynamics_cli.config.registry import all_kinds
from dynamics_cli.errors import InputError
from dynamics_cli.training.problem import Problem

Parameters = Mapping[str, NDArray[np.floating]]
Observer = Callable[[Parameters], float | NDArray[np.float64]]
"""Weights -> a number; weights of R replicas -> (R,)."""


def chosen_measures(problem: Problem) -> dict[str, Measure]:
    """Return the measures that the config asks for, or those that are recorded by default, by name.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.

    """
    wanted = problem.config.record.measures
    if wanted is None:
        kinds = [cls for cls in all_kinds("measure").values() if issubclass(cls, Measure) and cls.by_default]
        return {one.kind: one for one in (cls() for cls in kinds) if one.offered(problem)}
    for one in wanted:
        if not one.offered(problem):
            raise InputError(
                f"record.measures: this problem offers no {one.kind}; `dyn explain measure.{one.kind}` says why"
            )
    return {one.kind: one for one in wanted}


def chosen_observers(problem: Problem) -> dict[str, Observer]:
    """Interim."""
    start = problem.initial_parameters
    return {
        name: (lambda w, m=measure: m.measure(State(problem, w, start, 0)))
        for name, measure in chosen_measures(problem).items()
    }
