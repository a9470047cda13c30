"""The last phase: the local Polyak-Lojasiewicz constant (Boursier et al. 2022, Lemma 5), `||grad L||^2 >= c L`.

With residuals r, `||grad L||^2 / L = 2 loss_factor r^T K r / (n r^T r)` where K is the NTK Gram matrix at theta, so the
best constant at theta is `2 loss_factor / n` times the smallest eigenvalue of K. The loss then decays at least like
`exp(-c t)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_points
from dynamics_cli.theory.alignment import D_minus, D_plus
from dynamics_cli.theory.minimum_norm import interpolating_neuron
from dynamics_cli.theory.ntk import ntk
from dynamics_cli.theory.vector_field import square_loss, velocity


def pl_ratio(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, loss_factor: float = 1.0
) -> Floats:
    """Return `||grad L||^2 / L` at `W (..., m, d)`, `a (..., m)`, of the shape of the batch; NaN where L is 0."""
    loss = square_loss(x, y, W, a, slope=slope, loss_factor=loss_factor)
    dW, da = velocity(x, y, W, a, slope=slope, loss_factor=loss_factor)
    squared = np.asarray(np.sum(dW**2, axis=(-2, -1)) + np.sum(da**2, axis=-1))
    result: Floats = np.divide(squared, loss, out=np.full_like(loss, np.nan), where=loss > 0)
    return result


def pl_constant(x: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, loss_factor: float = 1.0) -> float:
    """Return the smallest `||grad L||^2 / L` over all residuals at `W (m, d)`, `a (m,)`; 0 when K is singular."""
    K = ntk(x, x, W, a, slope=slope)
    return float(max(0.0, 2.0 * loss_factor / len(K) * np.linalg.eigvalsh(K)[0]))


def pl_lower_bound(x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0) -> float:
    """Return the constant that Lemma 5 proves near `theta*` for orthonormal inputs: `min(||D_+||, ||D_-||)`."""
    plus, minus = np.linalg.norm(D_plus(x, y)), np.linalg.norm(D_minus(x, y))
    return loss_factor * float(min(plus, minus))


def pl_at_minimum_norm(x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0, tolerance: float = 1e-6) -> float:
    """Return the exact constant at the minimum-norm interpolator of orthogonal inputs.

    On the labels of one sign K is `c diag(||x_k||^2) + y y^T / c` with `c = a^2` of that sign's neuron. For orthonormal
    inputs this gives `2 ||D||` (4 ||D|| for a sign with a single label): twice what Lemma 5 claims. Raises ValueError
    when inputs are not orthogonal or a label is 0 (no active neuron there).
    """
    points, labels = as_points(x, y)
    if (labels == 0).any():
        raise ValueError("a label is 0: no neuron is active there and the constant is 0")
    smallest = np.inf
    for sign in (1, -1):
        chosen = sign * labels > 0
        if chosen.any():
            c = interpolating_neuron(points, labels, sign, tolerance=tolerance)[1] ** 2
            block = c * np.diag(np.sum(points[chosen] ** 2, axis=1)) + np.outer(labels[chosen], labels[chosen]) / c
            smallest = min(smallest, float(np.linalg.eigvalsh(block)[0]))
    return 2.0 * loss_factor / len(labels) * smallest
