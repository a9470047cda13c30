"""Full-batch gradient descent in pre-activation space, for far fewer samples than input columns.

Every update of a hidden weight is a combination of the inputs, so `W_t = W_0 + C_t X` with coefficients C (m, n), and
the pre-activations are `Z_t = W_t X^T = Z_0 + C_t G` with the Gram matrix `G = X X^T` (n, n). One product with G
replaces the two with X.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import OPTIONS
from dynamics_cli.training.kernels.common import loss_derivative, loss_value

_LIFT = 2.0**40


@numba.njit(**OPTIONS)
def run_gram(  # type: ignore[no-untyped-def]
    C, a, Z0, G, y, losses, count, lr, weight, alpha, kind, train_output, loss_scaled, stop_below
):
    """Train with coefficients `C` (m, n) and output weights `a` (m,), in place; return the number of updates done.

    Outputs are summed up as multiples of `1 / _LIFT`, which is exact: of tiny initial weights the products of two
    layers would be denormal numbers, on which some processors take four times as long.
    """
    m, n = C.shape
    zero, one, lift = C.dtype.type(0), C.dtype.type(1), C.dtype.type(_LIFT)
    Z = np.empty((m, n), C.dtype)
    h, r = np.empty(n, C.dtype), np.empty(n, C.dtype)
    for t in range(count):
        np.dot(C, G, Z)
        h[:] = zero
        for j in range(m):
            aj = a[j] * lift
            for k in range(n):
                s = Z[j, k] + Z0[j, k]
                Z[j, k] = s
                h[k] += aj * (s if s > zero else alpha * s)
        loss = zero
        for k in range(n):
            h[k] /= lift
            loss += loss_value(kind, h[k], y[k], one)
            r[k] = loss_derivative(kind, h[k], y[k], one) * weight * lr
        loss *= weight
        losses[t] = loss
        if not np.isfinite(loss) or loss <= stop_below:
            return t
        if loss_scaled:
            for k in range(n):
                r[k] /= loss
        for j in range(m):
            aj, ga = a[j], zero
            for k in range(n):
                s, rk = Z[j, k], r[k]
                ga += rk * (s if s > zero else alpha * s)
                C[j, k] -= aj * (rk if s > zero else alpha * rk)
            if train_output:
                a[j] = aj - ga
    return count
