"""The kernels of two-layer networks, which `training/steppers/compiled.py` alone calls.

`run_full_batches` trains on few input columns, which it unrolls. `run_samples` trains sample by
sample, on inputs given by their non-zero entries: black pixels are free. Weights stand with neurons
last, `W` (d, m) and `a` (m,), so that the inner loops run over neurons and vectorise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas import compiling  # noqa: F401 - decides where compiled code is kept
from dynamics_cli.training.kernels import EXPONENTIAL, HALF_MSE, LOGISTIC, MSE

Array = NDArray[Any]
_Decorator = Callable[[Callable[..., Any]], Any]
OPTIONS: dict[str, Any] = {
    # sums may be reordered (they vectorise) and contracted; NaN and infinity keep their meaning
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}
# A piece compiled by itself would be optimised once more whenever a kernel that calls it is loaded
# from the cache, and where sums may be reordered, round differently
# (tests/training/test_fresh_kernels.py): numba inlines pieces itself.
_inline: _Decorator = numba.njit(inline="always", **OPTIONS)
_kernel: _Decorator = numba.njit(cache=True, nogil=True, **OPTIONS)


# -- losses, by the numbers of `LOSS_NUMBERS`. `unity` is 1 in the precision of the run: a literal
# would widen the numbers beside it.


@_inline
def loss_value(kind: int, h: Any, y: Any, unity: Any) -> Any:
    """Return `l(h, y)`."""
    zero = unity - unity
    half = unity / (unity + unity)
    if kind == MSE:
        return (h - y) * (h - y)
    if kind == HALF_MSE:
        return (h - y) * (h - y) * half
    z = y * h
    if kind == LOGISTIC:
        return max(-z, zero) + np.log1p(np.exp(-abs(z)))
    if kind == EXPONENTIAL:
        return np.exp(-z)
    return max(unity - z, zero)


@_inline
def loss_derivative(kind: int, h: Any, y: Any, unity: Any) -> Any:
    """Return `dl/dh`."""
    zero = unity - unity
    if kind == MSE:
        return (h - y) + (h - y)
    if kind == HALF_MSE:
        return h - y
    z = y * h
    if kind == LOGISTIC:
        s = np.exp(-abs(z))
        return -y * (s if z > 0 else unity) / (unity + s)
    if kind == EXPONENTIAL:
        return -y * np.exp(-z)
    return -y if z < unity else zero


# -- full batches of few columns


@_inline
def sample_forward(W: Array, a: Array, x: Array, columns: Any, k: int, z: Array, alpha: Any) -> Any:
    """Return the output on sample k, and write the pre-activations into `z[k]`."""
    D = len(columns)
    zero = W.dtype.type(0)
    h = zero
    for j in range(a.shape[0]):
        s = zero
        for i in range(D):
            s += x[k * D + i] * W[i, j]
        z[k, j] = s
        h += a[j] * (s if s > zero else alpha * s)
    return h


@_inline
def sample_update(
    W: Array,
    a: Array,
    x: Array,
    columns: Any,
    z: Array,
    gW: Array,
    r: Array,
    loss: Any,
    alpha: Any,
    train_output: bool,
    loss_scaled: bool,
) -> None:
    """Update the weights, given the weighted derivatives `r` (n,) of the loss.

    `gW` (d, m) is work space. The gradient of `a_j` is `<w_j, g_j>`, where `a_j g_j` is the
    gradient of `w_j`: activations are homogeneous.
    """
    D = len(columns)
    zero = W.dtype.type(0)
    gW[:] = zero
    for k in range(r.shape[0]):
        active = r[k] / loss if loss_scaled else r[k]
        passive = alpha * active
        for j in range(a.shape[0]):
            g = active if z[k, j] > zero else passive
            for i in range(D):
                gW[i, j] += g * x[k * D + i]
    for j in range(a.shape[0]):
        aj = a[j]
        ga = zero
        for i in range(D):
            ga += W[i, j] * gW[i, j]
            W[i, j] -= aj * gW[i, j]
        if train_output:
            a[j] = aj - ga


@_kernel
def run_full_batches(
    W: Array,
    a: Array,
    x: Array,
    columns: Any,
    y: Array,
    losses: Array,
    done: Array,
    first: int,
    last: int,
    lr: Array,
    weight: Any,
    alpha: Array,
    kind: int,
    train_output: bool,
    loss_scaled: bool,
    stop_below: Array,
) -> None:
    """Train replicas `first` to `last` in place; `last` itself is not trained.

    `done` (R,) gets the numbers of updates. Weights are `W` (R, d, m) and `a` (R, m), data `x`
    (R or 1, n d) and `y` (R or 1, n). `columns` is a tuple with an entry for each input column: its
    length is a constant for the compiler, which unrolls the loops over columns.
    """
    n = y.shape[1]
    count = losses.shape[1]
    zero = W.dtype.type(0)
    unity = W.dtype.type(1)
    z = np.empty((n, W.shape[2]), W.dtype)
    r = np.empty(n, W.dtype)
    gW = np.empty(W.shape[1:], W.dtype)
    for q in range(first, last):
        data = q if y.shape[0] > 1 else 0
        step = weight * lr[q]
        done[q] = count
        for t in range(count):
            loss = zero
            for k in range(n):
                h = sample_forward(W[q], a[q], x[data], columns, k, z, alpha[q])
                loss += loss_value(kind, h, y[data, k], unity)
                r[k] = loss_derivative(kind, h, y[data, k], unity) * step
            loss *= weight
            losses[q, t] = loss
            if not np.isfinite(loss) or loss <= stop_below[q]:
                done[q] = t
                break
            sample_update(
                W[q], a[q], x[data], columns, z, gW, r, loss, alpha[q], train_output, loss_scaled
            )


# -- sample by sample, from non-zero entries


@_inline
def dot_products(W: Array, values: Array, indices: Array, starts: Array, k: int, z: Array) -> None:
    """Write `<w_j, x_k>` of all neurons into `z` (m,), from the non-zero entries of `x_k`.

    Four entries are taken at a time.
    """
    z[:] = W.dtype.type(0)
    p = starts[k]
    end = starts[k + 1]
    while p + 4 <= end:
        w0 = W[indices[p]]
        w1 = W[indices[p + 1]]
        w2 = W[indices[p + 2]]
        w3 = W[indices[p + 3]]
        v0 = values[p]
        v1 = values[p + 1]
        v2 = values[p + 2]
        v3 = values[p + 3]
        for j in range(z.shape[0]):
            z[j] += (v0 * w0[j] + v1 * w1[j]) + (v2 * w2[j] + v3 * w3[j])
        p += 4
    while p < end:
        i = indices[p]
        v = values[p]
        for j in range(z.shape[0]):
            z[j] += v * W[i, j]
        p += 1


@_inline
def output(a: Array, z: Array, alpha: Any) -> Any:
    """Return `sum_j a_j sigma(z_j)`."""
    zero = a.dtype.type(0)
    h = zero
    for j in range(z.shape[0]):
        h += a[j] * (z[j] if z[j] > zero else alpha * z[j])
    return h


@_inline
def subtract_outer(
    W: Array, values: Array, indices: Array, starts: Array, k: int, z: Array
) -> None:
    """Subtract `x_ki z_j` from `W` (d, m) for the non-zero entries of `x_k`, four at a time."""
    p = starts[k]
    end = starts[k + 1]
    while p + 4 <= end:
        w0 = W[indices[p]]
        w1 = W[indices[p + 1]]
        w2 = W[indices[p + 2]]
        w3 = W[indices[p + 3]]
        v0 = values[p]
        v1 = values[p + 1]
        v2 = values[p + 2]
        v3 = values[p + 3]
        for j in range(z.shape[0]):
            w0[j] -= v0 * z[j]
            w1[j] -= v1 * z[j]
            w2[j] -= v2 * z[j]
            w3[j] -= v3 * z[j]
        p += 4
    while p < end:
        w = W[indices[p]]
        v = values[p]
        for j in range(z.shape[0]):
            w[j] -= v * z[j]
        p += 1


@_kernel
def run_samples(
    W: Array,
    a: Array,
    values: Array,
    indices: Array,
    starts: Array,
    y: Array,
    samples: Array,
    lr: Any,
    alpha: Any,
    kind: int,
    train_output: bool,
) -> None:
    """Update once for each of `samples`; only the rows of its non-zero entries change."""
    m = a.shape[0]
    zero = W.dtype.type(0)
    unity = W.dtype.type(1)
    z = np.empty(m, W.dtype)
    ga = np.empty(m, W.dtype)
    for k in samples:
        dot_products(W, values, indices, starts, k, z)
        r = loss_derivative(kind, output(a, z, alpha), y[k], unity) * lr
        for j in range(m):
            s = z[j]
            ga[j] = r * (s if s > zero else alpha * s)
            z[j] = a[j] * (r if s > zero else alpha * r)
        subtract_outer(W, values, indices, starts, k, z)
        if train_output:
            for j in range(m):
                a[j] -= ga[j]


@_kernel
def summed_loss(
    W: Array,
    a: Array,
    values: Array,
    indices: Array,
    starts: Array,
    y: Array,
    first: int,
    last: int,
    alpha: Any,
    kind: int,
) -> Any:
    """Return the sum of the losses of samples `first` to `last - 1`, in float64."""
    z = np.empty(a.shape[0], W.dtype)
    total = 0.0
    unity = W.dtype.type(1)
    for k in range(first, last):
        dot_products(W, values, indices, starts, k, z)
        total += loss_value(kind, output(a, z, alpha), y[k], unity)
    return total
