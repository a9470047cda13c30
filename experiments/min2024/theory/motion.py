"""How fast norms and directions of the neurons change under gradient flow (Min et al. 2024, Appendix A.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.config.bases import Loss
from dynamics_cli.measures.arrays import Floats, as_floats, as_network
from dynamics_cli.measures.neurons import norms


class Motion(NamedTuple):
    """The loss of a state and its two sums over the neurons."""

    loss: float
    norms: float
    """`sum_j d/dt ||w_j||^2 = sum_j 2 <-grad_j L, w_j>`."""
    directions: float
    """`sum_j || d/dt (w_j / ||w_j||) ||`, where `w_j' = -grad_j L`; a neuron that is 0 does not count."""


def hidden_gradient(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, loss: Loss) -> tuple[float, Floats]:
    """Return the full loss and its gradient `(m, d)` in the hidden weights `W (m, d)` of a ReLU network.

    Products are taken in the precision of `x (n, d)`: float32 inputs halve the time of large data.
    """
    points = np.asarray(x)
    z = points @ np.asarray(W, dtype=points.dtype).T  # (n, m)
    h = (np.maximum(z, 0) @ np.asarray(a, dtype=points.dtype)).astype(np.float64)
    slopes = loss.derivatives(h, np.asarray(y, dtype=np.float64)) * loss.sample_weight(len(points))  # (n,)
    pulls = (z > 0).T * slopes.astype(points.dtype)  # (m, n)
    gradient = (pulls @ points).astype(np.float64) * as_floats(a, "a", axes=1)[:, None]
    return float(loss.total(h, np.asarray(y, dtype=np.float64))), gradient


def motion(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, loss: Loss) -> Motion:
    """Return loss, changes in norms and changes in directions of the network `W (m, d)`, `a (m,)` on `x (n, d)`."""
    hidden, output = as_network(W, a)
    value, gradient = hidden_gradient(x, y, hidden, output, loss)
    lengths = norms(hidden)
    units = np.divide(hidden, lengths[:, None], out=np.zeros_like(hidden), where=lengths[:, None] > 0)
    along = np.sum(-gradient * units, axis=1)  # (m,) d||w_j||/dt
    across = norms(-gradient - along[:, None] * units)
    turning = np.divide(across, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return Motion(value, float(np.sum(2 * along * lengths)), float(turning.sum()))
