"""Derivatives of networks of layers at a state, compiled, in float64: products with the Hessian, and its spectrum.

Products are Pearlmutter's R-operator: the derivative of the gradient along a direction, which costs a few products of
matrices. Lanczos iterations are the same whether the product is a unit or a function of Python.

Sources: Pearlmutter 1994, Fast Exact Multiplication by the Hessian; Golub and Van Loan, Matrix Computations, Section
10.1 (Lanczos).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dstev

from dynamics_cli.engine.layout import Layout
from dynamics_cli.engine.native import Floats, address_of, blocks, call, call_number, extending, offset, piece, unit
from dynamics_cli.engine.network import loss_and_gradient
from dynamics_cli.engine.products import dots, product
from dynamics_cli.engine.records import CURVATURE, LANCZOS, Curvature, Lanczos, Network
from dynamics_cli.engine.units import activation_unit, loss_curvature_unit

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

Vector = NDArray[np.float64]
REAL = np.dtype(np.float64)
EIGENVALUES = extending.get_cython_function_address("scipy.linalg.cython_lapack", "dsterf")
"""LAPACK's `dsterf(order, diagonal, beside it, info)`, which replaces the diagonal by the eigenvalues."""
_DOTTED = 6
"""Rows from which on `dots` vectorises."""


# -- products with the Hessian


@piece
def forward_tangents(state: Curvature, net: Network) -> int:
    """Fill `tangent_z` and `tangent_h` along the direction; return where the outputs begin among them."""
    n, at, end = state.samples, 0, 0
    for k in range(net.layer_count):
        layer = offset(net.layers, k)
        d, m, count, h = layer.inputs, layer.outputs, n * layer.outputs, state.x
        tangent_z, tangent_h = offset(state.tangent_z, end), offset(state.tangent_h, end)
        if k > 0:
            h, below, W = offset(net.activations, at), offset(state.tangent_h, at), offset(state.theta, layer.weight)
            if m == 1:
                call(net.dots, (below, W, n, d, tangent_z))
            else:
                call(net.product, (below, d, 1, W, tangent_z, n, d, m, 0))
        call(net.forward_layer, (net, layer, state.direction, h, tangent_z, n, 1 if k > 0 else 0))
        at = end
        end += count
        if k + 1 < net.layer_count:
            derivatives = offset(net.derivatives, at)
            for i in range(count):
                tangent_h[i] = derivatives[i] * tangent_z[i]
    return at


@piece
def loss_tangents(state: Curvature, net: Network, at: int, C: int) -> None:
    """Set the tangents of the deltas of the outputs (n, C), which begin at `at`."""
    z, delta, n, scale = offset(state.tangent_z, at), offset(state.tangent_deltas, at), state.samples, net.output_scale
    for k in range(n * C):
        z[k] *= scale
    given = offset(net.activations, at), state.y, z, delta, n, C, state.sample_weight, net.loss_numbers
    call_number(state.loss_curvature, given)
    for k in range(n * C):
        delta[k] *= scale


@piece
def backward_tangents(state: Curvature, net: Network, at: int) -> None:
    """Fill `result` from the tangents of the deltas of the outputs, which begin at `at`."""
    n = state.samples
    for k in range(net.layer_count - 1, net.lowest - 1, -1):
        layer, delta, tangent = offset(net.layers, k), offset(net.deltas, at), offset(state.tangent_deltas, at)
        d, m = layer.inputs, layer.outputs
        at -= n * d
        h = offset(net.activations, at) if k > 0 else state.x
        call(net.weight_gradient, (net, layer, h, tangent, state.result, n, 0))
        if k > 0:
            call(net.weight_gradient, (net, layer, offset(state.tangent_h, at), delta, state.result, n, 1))
        if k > net.lowest:
            below, z = offset(state.tangent_deltas, at), offset(state.tangent_z, at)
            first, second = offset(net.derivatives, at), offset(net.second_derivatives, at)
            if m == 1:  # in one pass: numbers that leave the fastest cache take longer than this
                W, V = offset(state.theta, layer.weight), offset(state.direction, layer.weight)
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


@unit
def hessian_product(state: Curvature, v: Floats, out: Floats) -> None:
    """Set `out` to the Hessian times `v`, both of trained weights."""
    net, places, direction, result = state.network, state.places, state.direction, state.result
    for i in range(state.trained):
        direction[places[i]] = v[i]
    at = forward_tangents(state, net)
    loss_tangents(state, net, at, offset(net.layers, net.layer_count - 1).outputs)
    backward_tangents(state, net, at)
    for i in range(state.trained):
        out[i] = result[places[i]]


# -- Lanczos iterations


@piece
def subtract_projections(state: Lanczos, m: int) -> Any:
    """Subtract from vector m its projections on those before; return its squared length without them.

    `projections` are the negative ones.
    """
    P, Q, along = state.size, state.directions, state.projections
    w = offset(Q, m * P)
    call(state.dots, (Q, w, max(m + 1, _DOTTED), P, along))
    square = along[m]
    for i in range(m):
        square -= along[i] * along[i]
        along[i] = -along[i]
    call(state.product, (along, m, 1, Q, w, 1, m, P, 1))
    return square


@piece
def residual_of(state: Lanczos, m: int, length: float) -> Any:
    """Return the largest relative residual of the eigenvalues that are wanted.

    It is `length` times the last entry of the normalised eigenvector of the tridiagonal matrix, whose entries follow
    from the last to the first: in this direction they grow.
    """
    alpha, beta, values, beside, last = state.alpha, state.beta, state.values, state.scratch, 0.0
    for i in range(m):
        values[i], beside[i] = alpha[i], beta[i]
    state.order[0] = m
    call(state.eigenvalues, (state.order, values, beside, offset(state.order, 1)))
    for i in range(m - state.wanted, m):
        entry, after, squares = 1.0, 0.0, 1.0
        for j in range(m - 1, 0, -1):
            if beta[j - 1] == 0.0:  # vectors before j are of another invariant space
                break
            entry, after = ((values[i] - alpha[j]) * entry - beta[j] * after) / beta[j - 1], entry
            squares += entry * entry
            if squares > 1e40:
                break
        last = max(last, 1.0 / np.sqrt(squares))
    return length * last / max(abs(values[0]), abs(values[m - 1]), 1e-300)


@piece
def draw_direction(state: Lanczos, m: int) -> Any:
    """Set vector m to one that is orthogonal to those before; return its length."""
    P, seed = state.size, np.uint64(m)
    w = offset(state.directions, m * P)
    for i in range(P):
        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        w[i] = np.float64(seed >> np.uint64(11)) / 2.0**53 - 0.5
    subtract_projections(state, m)
    return np.sqrt(subtract_projections(state, m))


@unit
def iterate(state: Lanczos) -> None:
    """Do iterations until they end, or until `directions` has no space for another.

    They end at the limit, where there is no further direction, or where the residual is within the tolerance.
    """
    P, k, alpha, beta, progress = state.size, state.wanted, state.alpha, state.beta, state.progress
    while not progress[1] and progress[0] + 2 <= state.room:
        m, largest = progress[0] + 1, 0.0
        q, w = offset(state.directions, (m - 1) * P), offset(state.directions, m * P)
        call(state.multiply, (state.context, q, w))
        subtract_projections(state, m)
        alpha[m - 1] = -state.projections[m - 1]
        length = np.sqrt(subtract_projections(state, m))  # twice is enough (Parlett)
        beta[m - 1] = length
        for i in range(m):
            largest = max(largest, abs(alpha[i]), beta[i])
        exhausted = not length > 1e-14 * largest
        finished = exhausted or m == state.limit
        if m >= k > 0 and (finished or 2 < m < 9 or (m > 9 and m % 2 == 0)):
            state.residual[0] = residual_of(state, m, length)
            finished = finished or state.residual[0] <= state.tolerance
        elif finished and m < k:  # the start lies in an invariant space of fewer than k dimensions
            finished, beta[m - 1] = False, 0.0
            length = draw_direction(state, m)
        if not finished:
            for i in range(P):
                w[i] /= length
        progress[0], progress[1] = m, int(finished)


class Spectrum:
    """Lanczos iterations on vectors (P,). Their memory is kept from call to call: new memory takes long."""

    def __init__(self, P: int, limit: int, multiply: Callable[[Vector], Vector] | int) -> None:
        """Take the most iterations, and `v -> H v` or the address of a unit that does so."""
        limit, self._raised = min(limit, P), list[BaseException]()
        self._directions = np.empty((min(limit, 8) + 8, P))
        self._alpha, self._beta, self._progress, self._residual = (
            np.empty(limit),
            np.empty(limit),
            np.zeros(2, np.int64),
            np.zeros(1),
        )
        self._unit = None if isinstance(multiply, int) else self._as_unit(multiply, P)
        self._state = LANCZOS(
            multiply=multiply if self._unit is None else ctypes.cast(self._unit, ctypes.c_void_p).value,
            context=0, product=product(REAL).address, dots=dots(REAL).address, eigenvalues=EIGENVALUES, size=P,
            directions=self._directions, room=len(self._directions), limit=limit, wanted=0, tolerance=0.0,
            alpha=self._alpha, beta=self._beta, values=np.empty(limit), scratch=np.empty(limit),
            order=np.empty(2, np.int64), projections=np.empty(limit + _DOTTED), progress=self._progress,
            residual=self._residual,
        )  # fmt: skip

    def largest(self, start: Vector, k: int, tolerance: float, context: Any = None) -> tuple[Vector, Vector, float]:
        """Return the k largest eigenvalues, descending, their vectors (P, k), and the largest relative residual."""
        values, inner = self._iterate(start, k, tolerance, context)
        rows, vectors = np.ascontiguousarray(inner[:, : -k - 1 : -1].T), np.empty((k, self._state.size))
        m, *at = len(values), *(address_of(array) for array in (rows, self._directions, vectors))
        product(REAL).call(at[0], m, 1, *at[1:], k, m, self._state.size, 0)
        return values[: -k - 1 : -1].copy(), np.ascontiguousarray(vectors.T), float(self._residual[0])

    def quadrature(self, start: Vector) -> tuple[Vector, Vector]:
        """Return all eigenvalues (m,), ascending, and the first entries of the eigenvectors (m,)."""
        values, inner = self._iterate(start, 0, 0.0, None)
        return values, inner[0]

    def _iterate(self, start: Vector, k: int, tolerance: float, context: Any) -> tuple[Vector, Vector]:
        """Iterate to the end; return the eigenvalues (m,), ascending, and the vectors of the tridiagonal matrix."""
        state = self._state
        state.wanted, state.tolerance, self._progress[:], self._residual[0] = k, tolerance, 0, 0.0
        state.context = ctypes.addressof(context) if context is not None else 0
        self._directions[0] = start / np.linalg.norm(start)
        while not self._progress[1]:
            if self._progress[0] + 2 > state.room:
                self._directions, former = np.empty((2 * state.room, state.size)), self._directions
                self._directions[: len(former)] = former
                state.room, state.directions = len(self._directions), address_of(self._directions)
            iterate(REAL).call(ctypes.addressof(state))
        if self._raised:
            raise self._raised.pop()
        m = self._progress[0]
        values, vectors, failed = dstev(self._alpha[:m], self._beta[: max(m - 1, 1)])
        return (np.full(m, np.nan), np.full((m, m), np.nan)) if failed else (values, vectors)

    def _as_unit(self, product: Callable[[Vector], Vector], P: int) -> Any:
        """Return a function of Python as a unit; after an error it gives NaN, which ends the iterations."""

        def multiply(_: int, v: int, out: int) -> None:
            given, result = (np.ctypeslib.as_array((ctypes.c_double * P).from_address(at)) for at in (v, out))
            try:
                result[:] = product(given)
            except BaseException as error:  # `_iterate` raises it
                self._raised.append(error)
                result[:] = np.nan

        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(multiply)


# -- states of a problem


class Work:
    """A network and its samples: weights and gradient (P,), and `base`, which centring subtracts from the outputs."""

    def __init__(self, engine: Engine, x: Vector, y: Vector, weight: float) -> None:
        """Take inputs (n, d), labels (n,) or (n, C), and the weight of a sample in the loss."""
        self.x, self.y, layout, n = x, y, engine.layout, len(x)
        N, P = n * layout.numbers, layout.P
        h, delta, scratch, first, second, self.gradient, self.theta, self.base = blocks(
            REAL, N, N, layout.scratch(n), N, N, P, P, n * layout.sizes[-1]
        )
        self.net, self._layout = layout.network(h, delta, scratch, first, second), layout
        theta, x_at, y_at, base, g = (address_of(array) for array in (self.theta, x, y, self.base, self.gradient))
        numbers = address_of(engine.sigma_numbers)
        self._arguments = ctypes.addressof(self.net), engine.sigma, numbers, theta, x_at, y_at, base, n, weight, g

    def write(self, parameters: Mapping[str, Any]) -> None:
        """Set the weights."""
        for name, view in self._layout.views(self.theta).items():
            view[...] = parameters[name]

    def evaluate(self) -> float:
        """Fill the gradient and all that the derivatives share; return the summed losses."""
        return float(loss_and_gradient(REAL).call(*self._arguments, True))

    def centre(self) -> None:
        """Subtract the outputs of these weights from now on."""
        with self._layout.centring(self.net):
            loss_and_gradient(REAL).call(*self._arguments, False)


class Engine:
    """The compiled derivatives of a problem by its trained weights, at one of its states at a time."""

    def __init__(self, problem: Problem, names: list[str]) -> None:
        self.names, self.layout = names, Layout(problem, names, REAL)
        numbered = self.layout.views(np.arange(float(self.layout.P)))
        self.places = np.concatenate([numbered[name].ravel() for name in names]).astype(np.int64)
        """Where the trained weights are among all of the layout."""
        architecture: Any = problem.config.architecture
        samples, sigma = problem.dataset, activation_unit(architecture.sigma, REAL, 2)
        self.sigma, self.sigma_numbers = sigma.address, sigma.numbers
        x, y = (np.array(array, np.float64, order="C") for array in (samples.x, samples.y))
        weight = float(problem.loss.sample_weight(samples.n))
        self.work = Work(self, x, y, weight)
        """That of the training samples."""
        self.evaluated: object = None
        """The caller whose weights `work` was evaluated at last."""
        N, P = samples.n * self.layout.numbers, self.layout.P
        direction, result, z, h, deltas = blocks(REAL, P, P, N, N, N)
        self._state = CURVATURE(
            network=self.work.net, loss_curvature=loss_curvature_unit(problem.loss, REAL).address,
            samples=samples.n, sample_weight=weight, x=x, y=y, theta=self.work.theta, trained=len(self.places),
            places=self.places, direction=direction, result=result, tangent_z=z, tangent_h=h, tangent_deltas=deltas,
        )  # fmt: skip
        self._spectrum: Spectrum | None = None

    def multiply(self, v: Vector) -> Vector:
        """Return the Hessian times `v` (P,), at the evaluated state."""
        given, out = np.array(v, np.float64), np.empty(len(v))
        hessian_product(REAL).call(ctypes.addressof(self._state), address_of(given), address_of(out))
        return out

    def largest(self, start: Vector, k: int, tolerance: float, limit: int) -> tuple[Vector, Vector]:
        """Return the k largest eigenvalues, descending, and their vectors (P, k), at the evaluated state."""
        self._spectrum = self._spectrum or Spectrum(len(self.places), limit, hessian_product(REAL).address)
        return self._spectrum.largest(start, k, tolerance, self._state)[:2]

    def batch(self, n: int) -> Work:
        """Return the work of `n` samples, which are still to be filled in, with the mean of their losses."""
        x, y = self.work.x, self.work.y
        return Work(self, np.empty((n, *x.shape[1:])), np.empty((n, *y.shape[1:])), 1 / n)
