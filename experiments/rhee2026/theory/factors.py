"""Two factors `W2 W1` that learn a matrix of singular values s, each mode on its own.

The factors of a mode are equal numbers p whose product `p^2` learns `s`. Gradient descent is `p <-
p + eta p (s - p^2)`. Muon, whose steps have singular values 1, is `p <- p +- eta`: p stops at `sqrt
s` after `sqrt(s) / eta` updates, and stays within a step of it.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Floats


def growing_parts(W1: Floats, W2: Floats, U: Floats, V: Floats) -> Floats:
    """Return the numbers p (r,) from which modes of vectors U (outputs, r), V (inputs, r) grow.

    Mode i has the hidden vectors `W2^T u_i` and `W1 v_i`. From small weights their mean `g_i`
    grows, and their difference shrinks. What stronger modes have taken of the hidden space is lost
    to the others: p is the distance of `g_i` from the span of `g_1, ..., g_(i-1)`.
    """
    means = (W2.T @ U + W1 @ V) / 2  # (hidden, r)
    triangle: Floats = np.linalg.qr(means)[1]
    return np.abs(np.diag(triangle))


def descent(start: Floats, s: Floats, eta: float, updates: int) -> Floats:
    """Return the factors (updates + 1, r) of modes of strengths s (r,) under gradient descent."""
    p = np.empty((updates + 1, len(s)))
    p[0] = start
    for t in range(updates):
        p[t + 1] = p[t] + eta * p[t] * (s - p[t] ** 2)
    return p


def muon(start: float, s: Floats, steps: Floats) -> Floats:
    """Return the factors (updates + 1, r) of modes of strengths s (r,) under Muon, all from `start`
    and with step sizes `steps` (updates,).
    """
    p = np.empty((len(steps) + 1, len(s)))
    p[0] = start
    for t, step in enumerate(steps):
        p[t + 1] = p[t] + step * np.sign(s - p[t] ** 2)
    return p


def cycle_losses(s: float, eta: float) -> Floats:
    """Return the two losses (2,), the smaller first, between which gradient descent on the first
    mode alternates in the end, for a step between `1 / s` and `(sqrt 5 - 1) / s`.

    With `a = 1 + eta s` the numbers `u = eta p^2` of both states have the sum a and the product 1:
    each update is `u <- u (a - u)^2`. The cycle attracts for `|9 - 2 a^2| < 1`.
    """
    a = 1 + eta * s
    u = (a + np.array([-1.0, 1.0]) * np.sqrt(a**2 - 4)) / 2
    return np.sort((s - u / eta) ** 2 / 2)
