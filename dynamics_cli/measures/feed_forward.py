"""Fully connected networks by hand, in float64: outputs, gradients, Hessian-vector products and tangent kernels.

A network is `h_l = sigma(z_l)`, `z_l = c_l W_l h_{l-1} + b_l`, `f = s z_L`. Its first and second derivatives at one
state share what is computed here once; a Hessian-vector product then costs a few matrix products (Pearlmutter 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dynamics_cli.measures.arrays import Floats

if TYPE_CHECKING:
    from dynamics_cli.config.bases import Activation


_NONE = np.empty(0)


@dataclass(frozen=True)
class Layers:
    """Weights of a network by layer."""

    weights: Sequence[Floats]
    """`W_l`, each (m_l, m_{l-1})."""
    biases: Sequence[Floats | None]
    """`b_l`, (m_l,)."""
    multipliers: Sequence[float]
    """`c_l`."""
    scale: float
    """`s`."""
    sigma: Activation


class FeedForward:
    """A network on inputs `x` (n, d), with all that its derivatives share."""

    def __init__(self, layers: Layers, x: Floats) -> None:
        self.layers = layers
        self.h: list[Floats] = [np.asarray(x, np.float64)]
        """`h_0` to `h_{L-1}`, each (n, m_l)."""
        self.z: list[Floats] = []
        """`z_1` to `z_L`."""
        for k, (W, b, c) in enumerate(zip(layers.weights, layers.biases, layers.multipliers, strict=True)):
            z = self.h[-1] @ (W.T if c == 1.0 else c * W.T)
            self.z.append(z if b is None else z + b)
            if k + 1 < len(layers.weights):
                self.h.append(layers.sigma.value(self.z[-1]))
        self.outputs: Floats = layers.scale * self.z[-1]
        """`f` (n, C)."""

    @cached_property
    def slopes(self) -> list[Floats]:
        """`sigma'(z_l)` of the hidden layers."""
        return [np.asarray(self.layers.sigma.derivative(z), np.float64) for z in self.z[:-1]]

    def backward(self, delta: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return `dF/dz_l` (n, m_l), and `dF/dh_l` of the hidden layers, for `delta = dF/df` (n, C)."""
        deltas, towards = [self.layers.scale * delta], []
        for k in range(len(self.slopes) - 1, -1, -1):
            towards.append(deltas[-1] @ (self.layers.multipliers[k + 1] * self.layers.weights[k + 1]))
            deltas.append(towards[-1] * self.slopes[k])
        return deltas[::-1], towards[::-1]

    def gradient(self, delta: Floats) -> Floats:
        """Return `dF/dtheta` (P,) for `delta = dF/df` (n, C); layer by layer, `W_l` by rows, then `b_l`."""
        return self._flat(*self._gradients(self.backward(delta)[0]))

    def hessian(self, delta: Floats, bend: Floats) -> Callable[[Floats], Floats]:
        """Return `v -> H v` (P,) for `F(f)` with `delta = dF/df` (n, C) and `bend = d2F/df2` (n, C, C)."""
        from dynamics_cli.measures.pearlmutter import hessian_product

        layers, s = self.layers, self.layers.scale
        deltas, towards = self.backward(delta)
        bent = [one * layers.sigma.second_derivative(z) for one, z in zip(towards, self.z[:-1], strict=True)]
        inputs = (
            np.array([layers.weights[0].shape[1], *(len(W) for W in layers.weights)]),
            np.array([b is not None for b in layers.biases]),
            np.array(layers.multipliers),
            self._flat(layers.weights, layers.biases),
            *(np.concatenate([one.ravel() for one in (*each, _NONE)]) for each in (self.h, self.slopes, bent, deltas)),
            s * s * bend,
        )
        # the kernel reads its arrays as they lie
        return lambda v: hessian_product(*inputs, np.ascontiguousarray(v, np.float64))

    def kernel(self, trained: Sequence[tuple[bool, bool]]) -> Floats:
        """Return the tangent kernel `K = J J^T` (n, C, n, C); `trained` says by layer of which weights and biases."""
        n, C = self.outputs.shape
        K = np.zeros((C, n, C, n))
        eye = np.eye(C)
        deltas = [self.backward(np.broadcast_to(eye[k], (n, C)))[0] for k in range(C)]
        for layer, c in enumerate(self.layers.multipliers):
            weight, bias = trained[layer]
            inner = weight * c * c * (self.h[layer] @ self.h[layer].T) + bias
            for a in range(C):
                for b in range(C):
                    K[a, :, b, :] += inner * (deltas[a][layer] @ deltas[b][layer].T)
        return K.transpose(1, 0, 3, 2)

    def _gradients(self, deltas: Sequence[Floats]) -> tuple[list[Floats], list[Floats | None]]:
        weights = [c * (delta.T @ one) for delta, one, c in zip(deltas, self.h, self.layers.multipliers, strict=True)]
        summed = [None if b is None else delta.sum(0) for delta, b in zip(deltas, self.layers.biases, strict=True)]
        return weights, summed

    @staticmethod
    def _flat(weights: Sequence[Floats], biases: Sequence[Floats | None]) -> Floats:
        parts = [part.ravel() for W, b in zip(weights, biases, strict=True) for part in (W, b) if part is not None]
        return np.concatenate(parts)
