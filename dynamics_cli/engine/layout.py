"""The engine's view of a network: the places of its weights in a flat array, and the records that units read."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.engine import network as at
from dynamics_cli.engine.native import place
from dynamics_cli.engine.products import dots, product
from dynamics_cli.engine.units import loss_unit

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

Weights = NDArray[np.floating]
_LINE = 64
"""Bytes of a line of the processor's cache."""


class Layout:
    """A network of layers, or a diagonal network, in a precision: its weights in an array (P,), matrices by columns."""

    def __init__(self, problem: Problem, trained: Collection[str], dtype: np.dtype[Any]) -> None:
        architecture, self.shapes, self.dtype = problem.config.architecture, problem.shapes, dtype
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes.values())]).tolist()
        self.at = {name: slice(*pair) for name, pair in zip(self.shapes, pairwise(ends), strict=True)}
        """Where each weight stands."""
        self.P: int = ends[-1]
        weights = [name for name in self.shapes if "weight" in name]
        self.depth: int = 0 if weights else architecture.depth  # type: ignore[attr-defined]
        """Of a diagonal network; 0 of layers."""
        sides = [(1, *self.shapes[name])[-2:] for name in weights] or [(1, problem.dataset.d)]
        self.sizes = [sides[0][1], *(rows for rows, _ in sides)]
        """Inputs, then the outputs of every layer."""
        biases = [name.replace("weight", "bias") for name in weights]
        self.learns = [(w in trained, b in trained) for w, b in zip(weights, biases, strict=True)]
        """Of every layer whether its weights and its bias, where it has one, are trained."""
        factors = architecture.multipliers(self.sizes)
        self.multipliers = np.array(factors or np.ones(len(weights)))
        """(L,) multipliers of the weights of the layers."""
        self._loss = loss_unit(problem.loss, dtype)
        self._loss_numbers = some(self._loss.numbers)
        self._factors = np.array([*self.multipliers, architecture.output_scale or 1.0], dtype)
        self._unscaled = np.array([*self.multipliers, 0.0], dtype)
        starts = [
            (self.at[w].start, self.at[b].start if b in self.at else -1) for w, b in zip(weights, biases, strict=True)
        ]
        called = at.diagonal if self.depth else at.through_layers, product, dots, at.ahead, at.slope, at.back
        learning = [k for k, learns in enumerate(self.learns) if any(learns)]
        self._head = [
            *(one(dtype).address for one in called), self._loss.address, place(self._loss_numbers), self.depth,
            len(weights), min(learning, default=0), bool(architecture.output_scale or architecture.centered),
            place(self._factors),
        ]  # fmt: skip
        layers = zip(pairwise(self.sizes), starts, self.learns, strict=False)
        self._layers = [int(number) for layer in layers for part in layer for number in part] or self.sizes

    @property
    def numbers(self) -> int:
        """How many numbers the layers give for a sample."""
        return sum(self.sizes[1:])

    def scratch(self, rows: int) -> int:
        """Return how many numbers of scratch a chunk of so many samples needs."""
        most = max(a * b for a, b in pairwise(self.sizes))
        return 2 * self.P if self.depth else 1 + most + rows * max(self.sizes)

    def record(self, works: Sequence[Weights]) -> NDArray[np.int64]:
        """Return the record of the network, given the arrays that units work on, in its order."""
        unused = [0] * (at.SIZES - at.ACTIVATIONS - len(works))
        return np.array([*self._head, *(place(work) for work in works), *unused, *self._layers])

    def centring(self, record: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a record with which the outputs become the numbers that centre them."""
        found = record.copy()
        found[[at.SHIFTED, at.FACTORS]] = 1, place(self._unscaled)
        return found

    def views(self, flat: Weights) -> dict[str, Weights]:
        """Return views of a flat array (..., P) by name, (..., *shape)."""
        found = {}
        for name, where in self.at.items():
            part = flat[..., where].reshape(*flat.shape[:-1], *self.shapes[name][::-1])
            found[name] = part.swapaxes(-1, -2) if len(self.shapes[name]) == 2 else part
        return found


def blocks(dtype: np.dtype[Any], *counts: int) -> list[Weights]:
    """Return arrays of zeros, each on a line of the cache: with others products take up to 1.3 times as long."""
    each = _LINE // dtype.itemsize
    starts = np.cumsum([0, *(-(-count // each) * each for count in counts)]).tolist()
    raw = np.zeros(starts[-1] + each, dtype)
    first = -place(raw) % _LINE // dtype.itemsize
    return [raw[first + start : first + start + count] for start, count in zip(starts, counts, strict=False)]


def some(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers, at least one, so that they have an address."""
    return numbers if len(numbers) else np.zeros(1)
