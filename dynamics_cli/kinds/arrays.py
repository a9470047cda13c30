"""Arrays and tensors: the types that kinds take and give, and derivatives by autograd."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import formulas

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


def namespace(array: Array) -> ModuleType:
    """Return the module whose functions apply to `array`: `numpy`, `torch` (never imported here), or `formulas`."""
    if isinstance(array, formulas.Expression):
        return formulas
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else np


def like(array: Array, y: Array) -> Array:
    """Return labels as a tensor where `array` is a tensor, else as an array."""
    if namespace(array) is np or namespace(y) is not np:
        return y
    return namespace(array).from_numpy(np.ascontiguousarray(y))


def automatic(function: Callable[[Array], Array], z: Array, order: int) -> Array:
    """Return the derivative of some order of a function of numbers, at an array or a tensor, by autograd."""
    import torch

    tensor = isinstance(z, torch.Tensor)
    with torch.enable_grad():
        at = z if tensor and z.requires_grad else (z if tensor else torch.from_numpy(z)).detach().requires_grad_()
        found = function(at)
        for _ in range(order):
            zero = torch.zeros_like(at)
            found = torch.autograd.grad(found.sum(), at, create_graph=True)[0] if found.requires_grad else zero
    if tensor:
        return found if z.requires_grad else found.detach()
    return found.numpy(force=True)  # of zeros torch keeps no numbers
