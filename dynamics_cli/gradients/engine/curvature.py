"""Compiled derivatives of networks of layers at a state, in float64.

They are the gradient, and products with the Hessian.

Products are Pearlmutter's R-operator: the derivative of the gradient along a direction, which costs
a few products of matrices.

Source: Pearlmutter 1994, Fast Exact Multiplication by the Hessian.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas.native import (
    Floats,
    address_of,
    blocks,
    call,
    call_number,
    offset,
    piece,
    unit,
)
from dynamics_cli.formulas.units import activation_unit, loss_curvature_unit
from dynamics_cli.gradients.engine.layout import Layout
from dynamics_cli.gradients.engine.records import TANGENTS, Network, Tangents

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

Vector = NDArray[np.float64]
REAL = np.dtype(np.float64)


# -- products with the Hessian


@piece
def forward_tangents(state: Tangents, net: Network) -> int:
    """Fill `tangent_z` and `tangent_h` along the direction.

    Return where the outputs begin among them.
    """
    n = state.samples
    at = 0
    end = 0
    for k in range(net.layer_count):
        layer = offset(net.layers, k)
        d = layer.inputs
        m = layer.outputs
        count = n * layer.outputs
        h = state.x
        tangent_z = offset(state.tangent_z, end)
        tangent_h = offset(state.tangent_h, end)
        if k > 0:
            h = offset(net.activations, at)
            below = offset(state.tangent_h, at)
            W = offset(state.theta, layer.weight)
            if m == 1:
                call(net.dots, (below, W, n, d, tangent_z))
            else:
                call(net.product, (below, d, 1, W, tangent_z, n, d, m, 0))
        call(net.forward_layer, (net, layer, state.direction, h, tangent_z, n, 1 if k > 0 else 0))
        if layer.skip:
            skipped = offset(state.tangent_z, at)
            for i in range(count):
                tangent_z[i] += skipped[i]
        at = end
        end += count
        if k + 1 < net.layer_count:
            derivatives = offset(net.derivatives, at)
            for i in range(count):
                tangent_h[i] = derivatives[i] * tangent_z[i]
    return at


@piece
def loss_tangents(state: Tangents, net: Network, at: int, C: int) -> None:
    """Set the tangents of the deltas of the outputs (n, C), which begin at `at`."""
    z = offset(state.tangent_z, at)
    delta = offset(state.tangent_deltas, at)
    n = state.samples
    scale = net.output_scale
    for k in range(n * C):
        z[k] *= scale
    given = (
        offset(net.activations, at),
        state.y,
        z,
        delta,
        n,
        C,
        state.sample_weight,
        net.loss_numbers,
        0.0,
    )
    call_number(state.loss_curvature, given)
    for k in range(n * C):
        delta[k] *= scale


@piece
def backward_tangents(state: Tangents, net: Network, at: int) -> None:
    """Fill `result` from the tangents of the deltas of the outputs, which begin at `at`."""
    n = state.samples
    for k in range(net.layer_count - 1, net.lowest - 1, -1):
        layer = offset(net.layers, k)
        delta = offset(net.deltas, at)
        tangent = offset(state.tangent_deltas, at)
        d = layer.inputs
        m = layer.outputs
        at -= n * d
        h = offset(net.activations, at) if k > 0 else state.x
        call(net.weight_gradient, (net, layer, h, tangent, state.result, n, 0))
        if k > 0:
            call(
                net.weight_gradient,
                (net, layer, offset(state.tangent_h, at), delta, state.result, n, 1),
            )
        if k > net.lowest:
            below = offset(state.tangent_deltas, at)
            z = offset(state.tangent_z, at)
            first = offset(net.derivatives, at)
            second = offset(net.second_derivatives, at)
            if m == 1:  # in one pass: numbers that leave the fastest cache take longer than this
                W = offset(state.theta, layer.weight)
                V = offset(state.direction, layer.weight)
                for q in range(n):
                    j = q * d
                    for i in range(d):
                        moved = tangent[q] * W[i] + delta[q] * V[i]
                        below[j + i] = moved * first[j + i] + second[j + i] * z[j + i]
            else:
                more = offset(net.scratch, 1 + d * m)
                call(net.backward_layer, (net, layer, state.theta, tangent, n, below))
                call(net.backward_layer, (net, layer, state.direction, delta, n, more))
                for i in range(n * d):
                    below[i] = (below[i] + more[i]) * first[i] + second[i] * z[i]
            if layer.skip:
                for i in range(n * d):
                    below[i] += tangent[i]


@unit
def hessian_product(state: Tangents, v: Floats, out: Floats) -> None:
    """Set `out` to the Hessian times `v`, both of trained weights."""
    net = state.network
    places = state.places
    direction = state.direction
    result = state.result
    for i in range(state.trained):
        direction[places[i]] = v[i]
    at = forward_tangents(state, net)
    loss_tangents(state, net, at, offset(net.layers, net.layer_count - 1).outputs)
    backward_tangents(state, net, at)
    for i in range(state.trained):
        out[i] = result[places[i]]


# -- states of a problem


class Work:
    """A network and its samples, with weights and gradient (P,).

    Centring subtracts `base` from the outputs.
    """

    def __init__(self, engine: Engine, x: Vector, y: Vector, weight: float) -> None:
        """Take inputs (n, d), labels (n,) or (n, C), and the weight of a sample in the loss."""
        self.x = x
        self.y = y
        layout = engine.layout
        n = len(x)
        N = n * layout.numbers
        P = layout.P
        h, delta, scratch, first, second, self.gradient, self.theta, self.base = blocks(
            REAL, N, N, layout.scratch(n), N, N, P, P, n * layout.sizes[-1]
        )
        self.net = layout.network(h, delta, scratch, first, second)
        self._layout = layout
        arrays = (self.theta, x, y, self.base, self.gradient)
        theta, x_at, y_at, base, g = map(address_of, arrays)
        numbers = address_of(engine.sigma_numbers)
        self.arguments = (
            ctypes.addressof(self.net),
            engine.sigma,
            numbers,
            theta,
            x_at,
            y_at,
            base,
            n,
            weight,
            g,
        )
        """Those of `loss_and_gradient`, but for the last."""

    def write(self, parameters: Mapping[str, Any]) -> None:
        """Set the weights."""
        for name, view in self._layout.views(self.theta).items():
            view[...] = parameters[name]

    def evaluate(self) -> float:
        """Fill the gradient and all that the derivatives share; return the summed losses."""
        return float(self._layout.loss_and_gradient.call(*self.arguments, True))

    def centre(self) -> None:
        """Subtract the outputs of these weights from now on."""
        with self._layout.centring(self.net):
            self._layout.loss_and_gradient.call(*self.arguments, False)


class Engine:
    """The compiled derivatives of a problem by its trained weights, at one state at a time."""

    def __init__(self, problem: Problem, names: list[str]) -> None:
        self.names = names
        self.layout = Layout(problem, names, REAL)
        numbered = self.layout.views(np.arange(float(self.layout.P)))
        self.places = np.concatenate([numbered[name].ravel() for name in names]).astype(np.int64)
        """Where the trained weights are among all of the layout."""
        architecture: Any = problem.config.architecture
        samples = problem.dataset
        sigma = activation_unit(architecture.sigma, REAL, 2)
        self.sigma = sigma.native.address
        self.sigma_numbers = sigma.numbers
        x, y = (np.array(array, np.float64, order="C") for array in (samples.x, samples.y))
        weight = float(problem.loss.sample_weight(samples.n))
        self.work = Work(self, x, y, weight)
        """Of the training samples."""
        self.evaluated: object = None
        """The caller whose weights `work` was evaluated at last."""
        N = samples.n * self.layout.numbers
        P = self.layout.P
        direction, result, z, h, deltas = blocks(REAL, P, P, N, N, N)
        self.state = TANGENTS(
            network=self.work.net,
            loss_curvature=loss_curvature_unit(problem.loss, REAL).native.address,
            samples=samples.n,
            sample_weight=weight,
            x=x,
            y=y,
            theta=self.work.theta,
            trained=len(self.places),
            places=self.places,
            direction=direction,
            result=result,
            tangent_z=z,
            tangent_h=h,
            tangent_deltas=deltas,
        )
        """What `hessian_product` reads."""

    def multiply(self, v: Vector) -> Vector:
        """Return the Hessian times `v` (P,), at the evaluated state."""
        given = np.array(v, np.float64)
        out = np.empty(len(v))
        hessian_product(REAL).call(ctypes.addressof(self.state), address_of(given), address_of(out))
        return out

    def batch(self, n: int) -> Work:
        """Return a record for `n` samples, to be filled in, and the mean of their losses."""
        x = self.work.x
        y = self.work.y
        return Work(self, np.empty((n, *x.shape[1:])), np.empty((n, *y.shape[1:])), 1 / n)
