"""What a loss is: values and derivatives per sample, for NumPy arrays and torch tensors alike."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any, Literal

Array = Any
"""A NumPy array or a torch tensor."""
Labels = Literal["real", "signs", "classes"]


def namespace(array: Array) -> ModuleType:
    """Return the module (`numpy` or `torch`) whose functions apply to `array`; never imports torch itself."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return torch
    import numpy as np

    return np


class Loss(ABC):
    """A training loss `L = reduce_k l(h(x_k), y_k)` with `reduce` the mean or the sum over samples."""

    labels: Labels = "real"
    """What labels must be: real numbers, ±1, or class numbers 0..C-1."""

    def __init__(self, reduction: Literal["mean", "sum"] = "mean") -> None:
        self.reduction = reduction

    @abstractmethod
    def values(self, h: Array, y: Array) -> Array:
        """Return `l(h_k, y_k)` per sample: shape (..., n) from outputs `h` (..., n) and labels `y` (n,)."""

    @abstractmethod
    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `dl/dh` per sample, of the shape of `h`."""

    def total(self, h: Array, y: Array) -> Array:
        """Return the reduced loss, shape (...)."""
        values = self.values(h, y)
        return values.mean(-1) if self.reduction == "mean" else values.sum(-1)

    def sample_weight(self, n: int) -> float:
        """Return the weight of one of `n` samples in the reduction: 1/n or 1."""
        return 1.0 / n if self.reduction == "mean" else 1.0

    def predictions(self, h: Array) -> Array:
        """Return predicted labels: signs for margin losses, the largest output's number for classes."""
        raise TypeError(f"{type(self).__name__} does not classify")
