"""Derivatives of networks of layers at a state, compiled, in float64: products with the Hessian, and its spectrum.

Products are Pearlmutter's R-operator: the derivative of the gradient along a direction, which costs a few products of
matrices. Lanczos iterations are the same whether the product is a unit or a function of Python.

Sources: Pearlmutter 1994, Fast Exact Multiplication by the Hessian; Golub and Van Loan, Matrix Computations, Sections
8.3 (QL iterations with implicit shifts) and 10.1 (Lanczos).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.engine.layout import Layout, blocks, some
from dynamics_cli.engine.native import call, moved, numbers_at, place, unit
from dynamics_cli.engine.network import (
    ACTIVATIONS,
    AHEAD,
    BACK,
    BENDS,
    DELTAS,
    DOTS,
    EACH,
    FACTORS,
    LAYERS,
    LOSS,
    LOSS_NUMBERS,
    LOWEST,
    PRODUCT,
    SCRATCH,
    SIZES,
    SLOPE,
    SLOPES,
    through_layers,
)  # fmt: skip
from dynamics_cli.engine.products import dots, product
from dynamics_cli.engine.units import activation_unit, bending_unit, pulling_unit

if TYPE_CHECKING:
    from dynamics_cli.kinds import Problem

Floats = NDArray[np.float64]
Layers = list[tuple[NDArray[np.floating], NDArray[np.floating]]]
Record = NDArray[np.int64]
REAL = np.dtype(np.float64)
(
    NET, BENDING, WHOLE, SAMPLES, WEIGHT, X, Y, TRAINED, PLACES, THETA, ALONG, FOUND, Z_ALONG, H_ALONG, DELTA_ALONG,
) = range(15)  # fmt: skip
"""Places in the record of a state: that of its network, the unit of the loss, the problem, and arrays to work on."""
_SLACK = 7
"""Rows that Lanczos iterations want beyond those of their vectors: the next vector, and those that `dots` reads."""
SPARE = 8
"""Numbers beside those of an iteration in rows of its scratch."""
_DOTTED = 6
"""Rows from which on `dots` vectorises."""


@unit("void", "int64 float64* float64*")
def multiply(context, given, out):  # type: ignore[no-untyped-def]
    """Set `out` to the Hessian, or unless `WHOLE` its Gauss-Newton part, times a vector, both of trained weights.

    The gradient at the state is there already, with slopes and bends of the activation.
    """
    state = numbers_at(context, context)
    net = numbers_at(state[NET], context)
    n, L, whole, lowest = state[SAMPLES], net[LAYERS], state[WHOLE] != 0, net[LOWEST]
    x, theta, v, found = (
        numbers_at(state[X], 0.0), numbers_at(state[THETA], 0.0), numbers_at(state[ALONG], 0.0),
        numbers_at(state[FOUND], 0.0),
    )  # fmt: skip
    H, S, slopes, bends = (
        numbers_at(net[ACTIVATIONS], 0.0), numbers_at(net[DELTAS], 0.0), numbers_at(net[SLOPES], 0.0),
        numbers_at(net[BENDS], 0.0),
    )  # fmt: skip
    R, Rh, D = (
        numbers_at(state[Z_ALONG], 0.0), numbers_at(state[H_ALONG], 0.0), numbers_at(state[DELTA_ALONG], 0.0),
    )  # fmt: skip
    places, scale, weight = (
        numbers_at(state[PLACES], n),
        numbers_at(net[FACTORS], 0.0)[L],
        numbers_at(state[WEIGHT], 0.0)[0],
    )
    for i in range(state[TRAINED]):
        v[places[i]] = given[i]
    p, N, count, C = 0, 0, 0, 1
    for layer in range(L):
        h, below, rows, C = moved(H, p), moved(Rh, p), net[SIZES + EACH * layer], net[SIZES + EACH * layer + 1]
        p, count = N, n * C
        z, turned, times = moved(R, p), moved(Rh, p), moved(slopes, p)
        if layer > 0:
            W = moved(theta, net[SIZES + EACH * layer + 2])
            if C == 1:
                call(net[DOTS], (below, W, n, rows, z))
            else:
                call(net[PRODUCT], (below, rows, 1, W, C, z, C, n, rows, C, z, 0, 0))
        call(net[AHEAD], (net, layer, v, h if layer > 0 else x, z, n, 1 if layer > 0 else 0))
        for k in range(count if layer + 1 < L else 0):
            turned[k] = times[k] * z[k]
        N += count
    z, delta = moved(R, p), moved(D, p)
    for k in range(count):
        z[k] *= scale
    call(
        state[BENDING],
        (moved(H, p), numbers_at(state[Y], 0.0), z, delta, n, C, weight, numbers_at(net[LOSS_NUMBERS], 0.0)),
    )
    for k in range(count):
        delta[k] *= scale
    for layer in range(L - 1, lowest - 1, -1):
        delta, slope, rows, m = moved(D, p), moved(S, p), net[SIZES + EACH * layer], net[SIZES + EACH * layer + 1]
        count = n * rows
        p -= count
        call(net[SLOPE], (net, layer, moved(H, p) if layer > 0 else x, delta, found, n, 0))
        if whole and layer > 0:
            call(net[SLOPE], (net, layer, moved(Rh, p), slope, found, n, 1))
        if layer > lowest:
            below, times, bent, z = moved(D, p), moved(slopes, p), moved(bends, p), moved(R, p)
            more = moved(numbers_at(net[SCRATCH], 0.0), 1 + rows * m)
            if whole and m == 1:  # in one go: numbers that leave the fastest cache take longer than this
                W, V = moved(theta, net[SIZES + EACH * layer + 2]), moved(v, net[SIZES + EACH * layer + 2])
                for k in range(n):
                    at, one, other = k * rows, delta[k], slope[k]
                    for i in range(rows):
                        below[at + i] = (one * W[i] + other * V[i]) * times[at + i] + bent[at + i] * z[at + i]
                continue
            call(net[BACK], (net, layer, theta, delta, n, below))
            if whole:
                call(net[BACK], (net, layer, v, slope, n, more))
                for k in range(count):
                    below[k] = (below[k] + more[k]) * times[k] + bent[k] * z[k]
            else:
                for k in range(count):
                    below[k] *= times[k]
    for i in range(state[TRAINED]):
        out[i] = found[places[i]]


# -- Lanczos iterations


@unit("void", "float64* float64* int64 float64* float64* float64* int64")
def eigen(alpha, beta, m, d, e, Z, r):  # type: ignore[no-untyped-def]
    """Set `d` (m,) to the eigenvalues, ascending, of a tridiagonal matrix, by QL iterations with implicit shifts.

    `Z` (m, r) holds some columns of the identity and becomes these of `V^T`: its rows are the eigenvectors. Where
    the matrix is not finite, all is NaN. `e` (m,) is scratch.
    """
    size = 0.0
    for i in range(m):
        size += abs(alpha[i]) + (abs(beta[i]) if i + 1 < m else 0.0)
    size = 1.0 if size == 0.0 else size
    for i in range(m):
        d[i] = alpha[i] / size
        e[i] = beta[i] / size if i + 1 < m else 0.0
    failed = not np.isfinite(size)
    for first in range(0 if failed else m):
        for turn in range(64):
            last = first
            while last + 1 < m and abs(e[last]) > 1.1e-16 * (abs(d[last]) + abs(d[last + 1])):
                last += 1
            if last == first:
                break
            failed = failed or turn == 63
            g = (d[first + 1] - d[first]) / (2.0 * e[first])
            g = d[last] - d[first] + e[first] / (g + np.copysign(np.sqrt(g * g + 1.0), g))
            s, c, p, i = 1.0, 1.0, 0.0, last - 1
            while i >= first:
                f, b = s * e[i], c * e[i]
                q = np.sqrt(f * f + g * g)
                e[i + 1] = q
                if q == 0.0:
                    d[i + 1] -= p
                    e[last] = 0.0
                    break
                s, c, g = f / q, g / q, d[i + 1] - p
                q = (d[i] - g) * s + 2.0 * c * b
                p = s * q
                d[i + 1], g = g + p, c * q - b
                low, high = moved(Z, i * r), moved(Z, i * r + r)
                for k in range(r):
                    low[k], high[k] = c * low[k] - s * high[k], s * low[k] + c * high[k]
                i -= 1
            if i < first:
                d[first] -= p
                e[first], e[last] = g, 0.0
    for i in range(m):
        least = i
        for k in range(i + 1, m):
            least = k if d[k] < d[least] else least
        d[i], d[least] = d[least], d[i]
        for k in range(r):
            Z[i * r + k], Z[least * r + k] = Z[least * r + k], Z[i * r + k]
        d[i] = np.nan if failed else d[i] * size
    for i in range(m * r if failed else 0):
        Z[i] = np.nan


@unit("int64", "int64 int64 int64* float64* float64* int64 int64 int64 int64 int64 float64 float64*")
def iterate(multiply, context, units, Q, work, P, first, room, limit, k, tolerance, vectors):  # type: ignore[no-untyped-def]
    """Do Lanczos iterations after the first so many; return their number m, or `-m` where the caller has to act.

    `Q` has space for `room` vectors (P,), `q_0`, `q_1`, ..., in a row; `multiply` is called with `context`
    for `H q`; where it is 0 the caller has put that of the last vector behind it, and is asked for the next. The
    caller is asked for space, too. All ends at the `limit`, where there is no further direction, or where the largest
    relative residual of the k largest eigenvalues is at most the tolerance; without k residuals are not asked for.
    Then `vectors` (k, P) are those of the k largest, in descending order, or without k the first entries (m,) of the
    eigenvectors of the tridiagonal matrix. `work` has rows of `limit + SPARE`: that matrix, scratch, its eigenvalues,
    ascending; the residual stands before the second row.
    """
    row = limit + SPARE
    alpha, beta, e, d = work, moved(work, row), moved(work, 2 * row), moved(work, 3 * row)
    along, Z = moved(work, 4 * row), moved(work, 5 * row)
    m, done = first, False
    if m == 0:
        call(units[0], (Q, Q, _DOTTED, P, along))
        size = np.sqrt(along[0])
        for i in range(P):
            Q[i] /= size
    while not done:
        m += 1
        w, fresh, again, largest, size = moved(Q, m * P), True, True, 0.0, 0.0
        if multiply != 0:
            call(multiply, (context, moved(w, -P), w))
        while again:
            square = 0.0
            for turn in range(2):  # twice is enough (Parlett)
                call(units[0], (Q, w, m + 1 if m + 1 > _DOTTED else _DOTTED, P, along))
                if fresh and turn == 0:
                    alpha[m - 1] = along[m - 1]
                square = along[m]
                for i in range(m):
                    square -= along[i] * along[i]
                    along[i] = -along[i]
                call(units[1], (along, m, 1, Q, P, w, P, 1, m, P, w, P, 1))
            size, again = np.sqrt(square), False
            if fresh:
                beta[m - 1] = size
                for i in range(m):
                    largest = max(largest, abs(alpha[i]), beta[i])
                exhausted = not size > 1e-14 * largest
                done = exhausted or m == limit
                if m >= k > 0 and (done or 2 < m < 9 or (m > 9 and m % 2 == 0)):
                    for i in range(m):
                        Z[i] = 1.0 if i == m - 1 else 0.0
                    call(units[2], (alpha, beta, m, d, e, Z, 1))
                    part = 0.0
                    for i in range(m - k, m):
                        part = max(part, abs(Z[i]))
                    work[row - 1] = size * part / max(abs(d[0]), abs(d[m - 1]), 1e-300)
                    done = done or work[row - 1] <= tolerance
                elif done and m < k:  # the start lies in an invariant space of fewer than k dimensions
                    fresh, again, done, beta[m - 1] = False, True, False, 0.0
                    seed = np.uint64(m)
                    for i in range(P):
                        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                        w[i] = np.float64(seed >> np.uint64(11)) / 2.0**53 - 0.5
        if not done:
            for i in range(P):
                w[i] /= size
            if multiply == 0 or m + _SLACK >= room:
                return -m
    r = m if k > 0 else 1
    for i in range(m):
        for q in range(r):
            Z[i * r + q] = 1.0 if i == q else 0.0
    call(units[2], (alpha, beta, m, d, e, Z, r))
    for i in range(k):
        own = moved(vectors, i * P)
        call(units[1], (moved(Z, (m - 1 - i) * m), m, 1, Q, P, own, P, 1, m, P, own, P, 0))
    for i in range(0 if k > 0 else m):
        vectors[i] = Z[i]
    return m


class Lanczos:
    """The memory of Lanczos iterations on vectors (P,), kept from call to call: new memory takes long."""

    def __init__(self, P: int, limit: int) -> None:
        self.P, self.limit = P, min(limit, P)
        self._units = np.array([one(REAL).address for one in (dots, product, eigen)])
        self._directions = np.empty((min(self.limit, 8) + 1 + _SLACK) * P)
        self._row = self.limit + SPARE
        self._work = np.empty(5 * self._row + self.limit**2)
        self._iterate, self._units_at, self._work_at = iterate(REAL).call, place(self._units), place(self._work)

    def iterate(
        self, multiply: int | Callable[[Floats], Floats], context: int, start: Floats, k: int, tolerance: float = 0.0
    ) -> tuple[Floats, Floats, float]:
        """Return eigenvalues (m,) after m iterations, ascending, their companions, and the relative residual.

        `multiply` is the address of a unit, or a function. With them go vectors (k, P) of the k largest, in descending
        order, or without k the first entries (m,) of the eigenvectors of the tridiagonal matrix.
        """
        P, Q = self.P, self._directions
        found, m = np.empty((k, P) if k else self.limit), 0
        Q[:P] = start / np.linalg.norm(start) if callable(multiply) else start  # `iterate` sees to the length
        while m <= 0:
            if callable(multiply):
                Q[P - m * P : 2 * P - m * P] = multiply(Q[-m * P : P - m * P])
            m = self._iterate(
                0 if callable(multiply) else multiply, context, self._units_at, place(Q), self._work_at, P, -m,
                len(Q) // P, self.limit, k, tolerance, place(found),
            )  # fmt: skip
            if m <= 0 and _SLACK - m >= len(Q) // P:
                Q, before = np.empty(2 * len(Q)), Q
                Q[: P - m * P] = before[: P - m * P]
                self._directions = Q
        values = self._work[3 * self._row : 3 * self._row + m].copy()
        return values, found if k else found[:m], float(self._work[self._row - 1])


# -- states of a problem


class Work:
    """The arrays of units at a state, for `n` samples: weights, gradient (P,), what centring subtracts from outputs."""

    def __init__(self, layout: Layout, n: int) -> None:
        N, P = n * layout.numbers, layout.P
        self.arrays = blocks(REAL, N, N, N, N, layout.scratch(n), P, P, P, P, N, N, N, n * layout.sizes[-1])
        h, delta, *_, self.base = self.arrays
        self.gradient, self.theta = self.arrays[5:7]
        self.net, self._views = layout.record(self.arrays[:6]), layout.views(self.theta)
        ends = np.cumsum([0, *(n * m for m in layout.sizes[1:])]).tolist()
        parts = [slice(*pair) for pair in pairwise(ends)]
        self.layers: Layers = [(h[at].reshape(n, -1), delta[at].reshape(n, -1)) for at in parts]
        """Of every layer `h_l` (n, m_l) and `dF/dz_l` times its multiplier, as they were evaluated."""
        self.state: Record = np.empty(0, np.int64)
        self.net_at = self.state_at = 0
        self.arguments: tuple[float, ...] = ()

    def write(self, parameters: Mapping[str, Any]) -> None:
        """Set the weights."""
        for name, view in self._views.items():
            view[...] = parameters[name]


class Engine:
    """The compiled derivatives of a problem by its trained weights, at all of its states."""

    def __init__(self, problem: Problem, names: list[str]) -> None:
        self.names, self._layout = names, Layout(problem, names, REAL)
        numbered = self._layout.views(np.arange(float(self._layout.P)))
        self.places = np.concatenate([numbered[name].ravel() for name in names]).astype(np.int64)
        """Where the trained weights are among all of the layout."""
        self.learning = [
            (layer, float(c), *learns)
            for layer, (c, learns) in enumerate(zip(self._layout.multipliers, self._layout.learns, strict=True))
            if any(learns)
        ]
        """Number and multiplier of the layers that are trained, and whether weights and biases are."""
        samples, sigma = problem.dataset, activation_unit(problem.config.architecture.sigma, REAL, 2)  # type: ignore[attr-defined]
        self._x, self._y = (np.array(one, np.float64, order="C") for one in (samples.x, samples.y))
        self._weight = np.array([problem.loss.sample_weight(samples.n)])
        self._sigma, self._sigma_numbers = sigma.address, some(sigma.numbers)
        self._sigma_numbers_at = place(self._sigma_numbers)
        self._gradient, self._multiply = through_layers(REAL).call, multiply(REAL)
        self._bending = bending_unit(problem.loss, REAL)
        self._lanczos: Lanczos | None = None
        self.spare: Work | None = None
        """The arrays of a former state: new memory takes longer than many a product."""

    def work(self, n: int) -> Work:
        """Return the arrays of a state: those of a former state, if there are any."""
        work, self.spare = self.spare or Work(self._layout, n), None
        if not len(work.state):
            problem = self._weight, self._x, self._y, self.places
            weight, x, y, places = (place(one) for one in problem)
            own = (place(work.arrays[k]) for k in (6, 7, 8, 9, 10, 11))
            work.state = np.array(
                [place(work.net), self._bending.address, 1, n, weight, x, y, len(self.places), places, *own]
            )
            work.net_at, work.state_at = place(work.net), place(work.state)
            work.arguments = self._arguments(work, self._x, self._y, float(self._weight[0]))
        return work

    def evaluate(self, work: Work, *, centring: bool = False) -> None:
        """Fill `work` with the gradient and all that the derivatives share; or with what centring subtracts."""
        net = place(self._layout.centring(work.net)) if centring else work.net_at
        self._gradient(net, *work.arguments, not centring)

    def batch(self, n: int) -> tuple[Work, Floats, Floats, Callable[[], float]]:
        """Return arrays for `n` samples, inputs (n, d), labels (n,) or (n, C), and a function of what stands in them.

        It returns the sum of the losses, and fills the gradient of their mean.
        """
        work, x, y = Work(self._layout, n), np.empty((n, *self._x.shape[1:])), np.empty((n, *self._y.shape[1:]))
        given = place(work.net), *self._arguments(work, x, y, 1 / n), True
        return work, x, y, lambda: self._gradient(*given)

    def _arguments(self, work: Work, x: Floats, y: Floats, weight: float) -> tuple[float, ...]:
        """Return the arguments of `through_layers` but the first and the last."""
        theta, base, g = place(work.theta), place(work.base), place(work.gradient)
        return self._sigma, self._sigma_numbers_at, theta, place(x), place(y), base, len(x), weight, g

    def multiply(self, work: Work, v: Floats, *, whole: bool) -> Floats:
        """Return the Hessian, or unless `whole` its Gauss-Newton part, times `v` (P,), at the evaluated state."""
        given, out, work.state[WHOLE] = np.ascontiguousarray(v, np.float64), np.empty(len(v)), whole
        self._multiply.call(work.state_at, place(given), place(out))
        return out

    def largest(
        self, work: Work, start: Floats, k: int, whole: bool, tolerance: float, limit: int
    ) -> tuple[Floats, Floats]:
        """Return the k largest eigenvalues, descending, and their vectors (P, k), at the evaluated state."""
        self._lanczos = self._lanczos or Lanczos(len(self.places), limit)
        work.state[WHOLE] = whole
        values, vectors, _ = self._lanczos.iterate(self._multiply.address, work.state_at, start, k, tolerance)
        return values[: -k - 1 : -1], np.ascontiguousarray(vectors.T)

    def pulled(self, parameters: Mapping[str, Any], x: Floats) -> Iterator[Layers]:
        """Yield for every output the `Work.layers` of F, the sum of this output over samples `x`."""
        n, C, samples = len(x), self._layout.sizes[-1], np.array(x, np.float64, order="C")
        for k in range(C):
            work = Work(self._layout, n)
            work.write(parameters)
            work.net[LOSS] = pulling_unit()
            labels = np.tile(np.eye(C)[k], n)
            self._gradient(place(work.net), *self._arguments(work, samples, labels, 1.0), True)
            yield work.layers
