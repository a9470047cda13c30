"""The engine's view of a network.

It says where the weights are in a flat array, and holds the records that units read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas.units import loss_unit
from dynamics_cli.gradients.engine import network
from dynamics_cli.gradients.engine.products import dots, product
from dynamics_cli.gradients.engine.records import LAYER, NETWORK

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

Weights = NDArray[np.floating]


class Layout:
    """The weights of a network of layers, or of a diagonal network, in one array (P,).

    Matrices stand by columns, in the precision of the network.
    """

    def __init__(self, problem: Problem, trained: Collection[str], dtype: np.dtype[Any]) -> None:
        architecture: Any = problem.config.architecture
        self.shapes = problem.shapes
        self.dtype = dtype
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes.values())]).tolist()
        self.at = {
            name: slice(*pair) for name, pair in zip(self.shapes, pairwise(ends), strict=True)
        }
        """Where each weight stands."""
        self.P: int = ends[-1]
        weights = [name for name in self.shapes if "weight" in name]
        self.depth: int = 0 if weights else architecture.depth
        """Of a diagonal network; 0 of layers."""
        sides = [(1, *self.shapes[name])[-2:] for name in weights] or [(1, problem.dataset.d)]
        self.sizes = [sides[0][1], *(rows for rows, _ in sides)]
        """Inputs, then the outputs of every layer."""
        self.numbers = sum(self.sizes[1:])
        """How many numbers the layers give for a sample."""
        biases = [name.replace("weight", "bias") for name in weights]
        learning = (
            k
            for k, pair in enumerate(zip(weights, biases, strict=True))
            if set(pair) & set(trained)
        )
        self._lowest = next(learning, 0)
        self._scale = float(architecture.output_scale or 1.0)
        self._loss = loss_unit(problem.loss, dtype)
        evaluated = network.diagonal_loss_and_gradient if self.depth else network.loss_and_gradient
        self.loss_and_gradient = evaluated(dtype)
        """The unit that evaluates the network."""
        self._layers = (LAYER.structure * len(weights))(
            *(
                LAYER(
                    inputs=d,
                    outputs=m,
                    weight=self.at[w].start,
                    bias=self.at[b].start if b in self.at else -1,
                    skip=w in architecture.skips,
                )
                for w, b, d, m in zip(weights, biases, self.sizes, self.sizes[1:], strict=False)
            )
        )

    def scratch(self, rows: int) -> int:
        """Return the numbers of scratch that a chunk of samples needs."""
        most = max(a * b for a, b in pairwise(self.sizes))
        return 2 * self.P if self.depth else 1 + most + rows * max(self.sizes)

    def network(
        self, activations: Weights, deltas: Weights, scratch: Weights, *derivatives: Weights
    ) -> Any:
        """Return the record of the network, given the arrays that units work on.

        `derivatives` are arrays for first and second ones; without, the first stand in `deltas`.
        """
        first, second = derivatives or (deltas, deltas)
        return NETWORK(
            loss_and_gradient=self.loss_and_gradient.address,
            forward_layer=network.forward_layer(self.dtype).address,
            backward_layer=network.backward_layer(self.dtype).address,
            weight_gradient=network.weight_gradient(self.dtype).address,
            product=product(self.dtype).address,
            dots=dots(self.dtype).address,
            loss=self._loss.native.address,
            loss_numbers=self._loss.numbers,
            layers=self._layers,
            layer_count=len(self._layers),
            lowest=self._lowest,
            depth=self.depth,
            columns=self.sizes[0],
            output_scale=self._scale,
            activations=activations,
            deltas=deltas,
            derivatives=first,
            second_derivatives=second,
            keeps_derivatives=bool(derivatives),
            scratch=scratch,
        )

    @contextmanager
    def centring(self, *networks: Any) -> Iterator[None]:
        """Have these networks overwrite the subtracted outputs with their own."""
        for net in networks:
            net.output_scale = 0.0
        yield
        for net in networks:
            net.output_scale = self._scale

    def views(self, flat: Weights) -> dict[str, Weights]:
        """Return views of a flat array (..., P) by name, (..., *shape)."""
        views = {}
        for name, where in self.at.items():
            part = flat[..., where].reshape(*flat.shape[:-1], *self.shapes[name][::-1])
            views[name] = part.swapaxes(-1, -2) if len(self.shapes[name]) == 2 else part
        return views
