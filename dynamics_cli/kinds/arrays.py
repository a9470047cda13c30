"""Arrays and tensors: the types that kinds take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Parameters = Mapping[str, NDArray[np.floating]]
"""Weights of a network by name."""
Evaluation = Callable[[Floats], Floats]
"""`x (n, d) -> h(x)`, (n,) or (n, C)."""
Array = Any
"""A NumPy array or a torch tensor."""
Shapes = Mapping[str, tuple[int, ...]]
"""name -> shape of every parameter of a network, trained or not."""
Labels = Literal["real", "signs", "classes"]
"""The labels of a task: real numbers, ±1, or class numbers 0..C-1."""


AVERAGE = "average."
"""Begins the names of averages of weights, which stand beside the weights themselves."""


def averages_among(state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the averages of weights among the arrays of a state, by the names of the weights."""
    return {
        name.removeprefix(AVERAGE): array
        for name, array in state.items()
        if name.startswith(AVERAGE)
    }


def stacked(states: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of several states by name, stacked along a new first axis."""
    return {name: np.stack([state[name] for state in states]) for name in states[0]}
