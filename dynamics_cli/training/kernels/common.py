"""Losses by number, for the kernels of two-layer networks."""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE


@numba.njit(**INLINE)
def loss_value(kind, h, y, one):  # type: ignore[no-untyped-def]
    """Return `l(h, y)`; `one` is 1 in the precision of the run, which keeps literals from widening it."""
    if kind == 0:
        return (h - y) * (h - y)
    if kind == 1:
        return (h - y) * (h - y) * (one / (one + one))
    z = y * h
    if kind == 2:
        return max(-z, one - one) + np.log1p(np.exp(-abs(z)))
    if kind == 3:
        return np.exp(-z)
    return max(one - z, one - one)


@numba.njit(**INLINE)
def loss_derivative(kind, h, y, one):  # type: ignore[no-untyped-def]
    """Return `dl/dh`."""
    if kind == 0:
        return (h - y) + (h - y)
    if kind == 1:
        return h - y
    z = y * h
    if kind == 2:
        s = np.exp(-abs(z))
        return -y * (s if z > 0 else one) / (one + s)
    if kind == 3:
        return -y * np.exp(-z)
    return -y if z < one else one - one
