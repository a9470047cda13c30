"""The sharpness of states of a training, measured inside a compiled call.

Between two updates of a small network, a call of Python takes longer than the measure. The compiled
loop (`engine/network.py`) calls `watch` at states that are recorded, and Python reads the numbers
afterwards, with the bits that it would get by itself. A state whose eigenvalue takes more than one
round of Lanczos iterations, or more room than there is, is left to Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas.native import (
    Reals,
    Structure,
    call,
    call_number,
    extending,
    offset,
    piece,
    unit,
)
from dynamics_cli.gradients.derivatives import engine_of, spectrum_of
from dynamics_cli.gradients.engine.products import product
from dynamics_cli.gradients.engine.subnormals import ENVIRONMENT, environment, flushing
from dynamics_cli.gradients.lanczos import BESIDE, REAL, RIVAL, iterate
from dynamics_cli.measures.arrays import Floats

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

ROWS = 64
"""Directions of Lanczos iterations, at most: with more, Python's part of a state takes no time."""
_EIGENVECTORS = extending.get_cython_function_address("scipy.linalg.cython_lapack", "dstev")
_DOT = extending.get_cython_function_address("scipy.linalg.cython_blas", "ddot")

Watching: TypeAlias = Any
WATCH = Structure(
    "Watching",
    [
        ("evaluate", "Address", "loss and gradient of the network in float64, and its arguments:"),
        ("network", "Floats", ""),
        ("sigma", "Address", ""),
        ("numbers", "Floats", ""),
        ("weights", "Floats", "(P,)"),
        ("x", "Floats", ""),
        ("y", "Floats", ""),
        ("base", "Floats", ""),
        ("samples", "int", ""),
        ("sample_weight", "float", ""),
        ("gradient", "Floats", ""),
        ("count", "int", "P"),
        ("spectrum", "Lanczos", "iterations for the Hessian, of T trained weights"),
        ("iterate", "Address", ""),
        ("product", "Address", "of two matrices"),
        ("dot", "Address", "BLAS's ddot"),
        ("eigenvectors", "Address", "LAPACK's dstev"),
        ("job", "Ints", "(1,) its first argument"),
        ("orders", "Ints", "(3,) sizes that are given to both, and whether LAPACK failed"),
        ("rows", "int", "directions that there is room for"),
        ("diagonal", "Floats", "(rows,) of the tridiagonal matrix, then its eigenvalues"),
        ("beside", "Floats", "(rows,)"),
        ("inner", "Floats", "(rows, rows) its eigenvectors"),
        ("work", "Floats", "(2 rows,)"),
        ("nudge", "Floats", "(T,) added to the vector where iterations begin"),
        (
            "vector",
            "Floats",
            "(T,) where iterations begin: close to the eigenvector of the last state",
        ),
        ("set_environment", "Address", "C's fesetenv; 0: subnormal numbers are not flushed"),
        ("usual", "Floats", "the environment of measures"),
        ("flushed", "Floats", "the environment of training"),
        ("values", "Floats", "(K,) written"),
        ("states", "Reals", "(K, P) weights, written where they are kept"),
        ("keeps", "int", "whether they are"),
        ("measured", "Ints", "(1,) states so far"),
    ],
)


@piece
def sharpness(state: Watching, theta: Reals) -> Any:
    """Append the sharpness at the weights `theta`; return 1 where Python has to find it, else 0."""
    spectrum = state.spectrum
    directions = spectrum.directions
    T = spectrum.size
    k = state.measured[0]
    for i in range(state.count):
        state.weights[i] = theta[i]
    given = (
        state.network,
        state.sigma,
        state.numbers,
        state.weights,
        state.x,
        state.y,
        state.base,
        state.samples,
        state.sample_weight,
        state.gradient,
        1,
    )
    call_number(state.evaluate, given)

    # iterations from the last vector on
    for i in range(T):
        directions[i] = state.nudge[i] + state.vector[i]
    state.orders[0] = T
    state.orders[1] = 1
    one = offset(state.orders, 1)
    length = np.sqrt(call_number(state.dot, (state.orders, directions, one, directions, one)))
    for i in range(T):
        directions[i] /= length
    spectrum.progress[0] = 0
    spectrum.progress[1] = 0
    residual = call_number(state.iterate, (spectrum, state.rows - 1))
    m = spectrum.progress[0]
    if spectrum.progress[1] == 0 or not residual <= spectrum.tolerance:
        return 1.0

    # the largest eigenvalue, and where iterations begin next
    for i in range(m):
        state.diagonal[i] = spectrum.alpha[i]
        state.beside[i] = spectrum.beta[i]
    state.orders[0] = m
    state.orders[1] = m
    state.orders[2] = 0
    matrix = (
        state.job,
        state.orders,
        state.diagonal,
        state.beside,
        state.inner,
        offset(state.orders, 1),
        state.work,
        offset(state.orders, 2),
    )
    call(state.eigenvectors, matrix)
    if state.orders[2] != 0:
        return 1.0
    largest = offset(state.inner, (m - 1) * m)
    if m > 1 and state.diagonal[m - 2] > RIVAL * state.diagonal[m - 1]:
        second = offset(state.inner, (m - 2) * m)
        for i in range(m):
            largest[i] += BESIDE * second[i]
    call(state.product, (largest, m, 1, directions, state.vector, 1, m, T, 0))
    state.values[k] = state.diagonal[m - 1]
    if state.keeps:
        for i in range(state.count):
            state.states[k * state.count + i] = theta[i]
    state.measured[0] = k + 1
    return 0.0


@unit
def watch(state: Watching, theta: Reals) -> float:
    """Do as `sharpness`, on subnormal numbers too, which training takes as 0."""
    if state.set_environment != 0:
        call(state.set_environment, (state.usual,))
    left = sharpness(state, theta)
    if state.set_environment != 0:
        call(state.set_environment, (state.flushed,))
    return float(left)


class Watch:
    """Measures the sharpness of a problem's states inside compiled calls of its stepper."""

    def __init__(self, problem: Problem, nudge: Floats, tolerance: float) -> None:
        """Take the problem of the measure, and the vector added to that of the last state (T,)."""
        engine = engine_of(problem)
        assert engine is not None
        self._engine = engine
        self._spectrum = spectrum_of(problem, engine)
        self._tolerance = tolerance
        self._vector = np.empty(len(nudge))
        self._measured = np.zeros(1, np.int64)
        self._dtype = problem.dtype
        self.views = engine.layout.views
        """Views of weights (K, P) by name."""
        work = engine.work
        network, sigma, numbers, weights, x, y, base, samples, weight, gradient = work.arguments
        self._fields = {
            "evaluate": engine.layout.loss_and_gradient.address,
            "network": network,
            "sigma": sigma,
            "numbers": numbers,
            "weights": weights,
            "x": x,
            "y": y,
            "base": base,
            "samples": samples,
            "sample_weight": weight,
            "gradient": gradient,
            "count": engine.layout.P,
            "spectrum": self._spectrum.state,
            "iterate": iterate(REAL).address,
            "product": product(REAL).address,
            "dot": _DOT,
            "eigenvectors": _EIGENVECTORS,
            "job": np.array([ord("V")]),
            "orders": np.zeros(3, np.int64),
            "nudge": np.ascontiguousarray(nudge),
            "vector": self._vector,
            "set_environment": ENVIRONMENT,
            "usual": environment() if ENVIRONMENT else 0,
            "flushed": flushing() if ENVIRONMENT else 0,
            "measured": self._measured,
        }

    @property
    def address(self) -> int:
        """The unit that the loop calls."""
        return watch(self._dtype).address

    def begin(self, vector: Floats, count: int, *, keeps: bool) -> Any:
        """Return the record for a call in which at most `count` states are measured.

        `vector` (T,) is where iterations begin; `keeps` whether weights are kept.
        """
        rows = min(self._spectrum.rows, ROWS)
        self._vector[:] = vector
        self._measured[0] = 0
        self._spectrum.state.wanted = 1
        self._spectrum.state.tolerance = self._tolerance
        self._engine.evaluated = None  # of the caller that Python knows
        self.values = np.empty(count)
        self.states = np.empty((count if keeps else 1, self._engine.layout.P), self._dtype)
        """(K,) and (K, P)."""
        return WATCH(
            **self._fields,
            rows=rows,
            diagonal=np.empty(rows),
            beside=np.empty(rows),
            inner=np.empty(rows * rows),
            work=np.empty(2 * rows),
            values=self.values,
            states=self.states,
            keeps=keeps,
        )

    @property
    def measured(self) -> int:
        """States that the last call measured."""
        return int(self._measured[0])

    @property
    def vector(self) -> NDArray[np.float64]:
        """A copy of what is near the eigenvector of the last state (T,)."""
        return self._vector.copy()
