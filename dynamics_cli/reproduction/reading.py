"""Weights of runs in double precision, as the figures measure them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.runs.run import Run


def in_double(weights: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return weights by name in float64."""
    return {name: np.asarray(value, np.float64) for name, value in weights.items()}


def recorded(run: Run, *names: str) -> list[Floats]:
    """Return the parameters of these names at all K recorded states, (K, ...) each, in float64."""
    return [np.asarray(run.parameters[name], np.float64) for name in names]
