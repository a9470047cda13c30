"""Gradient flow of a two-layer network on the square loss: D_j, velocities, loss (Boursier et al. 2022, Eqs. 1-3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_network, as_points
from dynamics_cli.measures.two_layer import activate, activation_derivative, outputs, preactivations


def square_loss(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, loss_factor: float = 1.0
) -> Floats:
    """Return `loss_factor / (2n) sum_k (h(x_k) - y_k)^2`, of the shape of the batch of `W (..., m, d)` (Eq. 1)."""
    points, labels = as_points(x, y)
    residuals = outputs(points, W, a, slope) - labels  # (..., n)
    return np.asarray(0.5 * loss_factor * np.mean(residuals**2, axis=-1))


def neuron_vectors(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, loss_factor: float = 1.0
) -> Floats:
    """Return `D_j = -(1/n) sum_k sigma'(<w_j, x_k>) (h(x_k) - y_k) x_k` times `loss_factor`, `(..., m, d)` (Eq. 3).

    `x (n, d)`, `y (n,)`, `W (..., m, d)`, `a (..., m)`.
    """
    points, labels = as_points(x, y)
    z = preactivations(points, W)  # (..., n, m)
    hidden, output = as_network(W, a, batched=True)
    residuals = (activate(z, slope) @ output[..., None])[..., 0] - labels  # (..., n)
    weights = activation_derivative(z, slope) * residuals[..., None]  # (..., n, m)
    result: Floats = -loss_factor / len(labels) * (np.swapaxes(weights, -1, -2) @ points)
    return result.reshape(hidden.shape)


def velocity(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, loss_factor: float = 1.0
) -> tuple[Floats, Floats]:
    """Return `dW/dt = D_j a_j` `(..., m, d)` and `da/dt = <D_j, w_j>` `(..., m)`, minus the gradient (Eq. 3)."""
    hidden, output = as_network(W, a, batched=True)
    D = neuron_vectors(x, y, hidden, output, slope=slope, loss_factor=loss_factor)
    return D * output[..., None], np.sum(D * hidden, axis=-1)
