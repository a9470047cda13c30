"""What is measured at the recorded states during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.bases import Floats, Measure, State
from dynamics_cli.config.registry import loaded_kinds
from dynamics_cli.errors import InputError
from dynamics_cli.training.problem import Problem


def chosen_measures(problem: Problem) -> dict[str, Measure]:
    """Return the measures that the config asks for, or those that are recorded by default, by name.

    Raises:
        InputError: the config asks for a measure that this problem does not offer.

    """
    wanted = problem.config.record.measures
    if wanted is None:
        kinds = [cls for cls in loaded_kinds("measure").values() if issubclass(cls, Measure) and cls.by_default]
        return {one.kind: one for one in (cls() for cls in kinds) if one.offered(problem)}
    for one in wanted:
        if not one.offered(problem):
            offered = [name for name, cls in loaded_kinds("measure").items() if _offers(problem, cls)]
            raise InputError(f"record.measures: no measure {one.kind!r} here; there are {', '.join(offered)}")
    return {one.kind: one for one in wanted}


def _offers(problem: Problem, cls: type) -> bool:
    """Return whether a problem has a measure, one that needs no settings."""
    return not any(field.is_required() for field in cls.model_fields.values()) and cls().offered(problem)  # type: ignore[attr-defined]


class Measuring:
    """Measures one network, or replicas, whose weights (R, ...) each measures by itself."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = list(problems)
        self._measures = [chosen_measures(problem) for problem in problems]
        self._starts = [cache(problem.initial_parameters) for problem in problems]  # drawn once, if a measure asks

    def at(self, weights: Mapping[str, NDArray[np.floating]], iteration: int) -> dict[str, Floats]:
        """Return every measure of a state by name, of replicas with their axis first."""
        if not self._measures[0]:
            return {}
        several = len(self._problems) > 1
        each = []
        parts = zip(self._problems, self._measures, self._starts, strict=True)
        for r, (problem, measures, start) in enumerate(parts):
            own = {key: value[r] for key, value in weights.items()} if several else weights
            state = State(problem, own, start, iteration)
            each.append({name: np.asarray(one.measure(state), np.float64) for name, one in measures.items()})
        return {name: np.stack([one[name] for one in each]) for name in each[0]} if several else each[0]
