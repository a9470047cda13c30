"""How a two-layer network moves over its trajectory: alignment, rank, rates of norms and directions (Appendix A.5).

The states are read in blocks: thousands of 50 x 784 weights cost seconds, and memory stays at a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.kinds import Loss
from dynamics_cli.measures.arrays import Floats, as_floats, as_network
from dynamics_cli.measures.neurons import cosines, norms

BLOCK = 64
"""States that are converted to float64 at a time."""


@dataclass(frozen=True)
class GroupAlignment:
    """Cosines of one group of neurons with its reference vector, each (K,); NaN while the group is empty."""

    mean: Floats
    """Of the mean neuron `sum_j w_j / |V|`."""
    low: Floats
    high: Floats


@dataclass(frozen=True)
class AlignmentHistory:
    """V_+ and V_- by the current sign of v_j, and the first layer as a matrix, over K states."""

    plus: GroupAlignment
    minus: GroupAlignment
    stable_rank: Floats
    """(K,) `||W||_F^2 / ||W||_2^2`."""
    squared_norm: Floats
    """(K,) `||W||_2^2`."""

    @property
    def smaller(self) -> Floats:
        """(K,) The smaller of the two mean cosines; the only mean cosine while V_+ or V_- is empty."""
        return np.fmin(self.plus.mean, self.minus.mean)

    @property
    def least(self) -> Floats:
        """(K,) The least cosine of any neuron with the reference vector of its group."""
        return np.fmin(self.plus.low, self.minus.low)


def alignment_history(W: ArrayLike, v: ArrayLike, x_plus: ArrayLike, x_minus: ArrayLike) -> AlignmentHistory:
    """Measure the states `W (K, m, d)`, `v (K, m)` against `x_plus (d,)` and `x_minus (d,)`.

    `W` may be a memory map. The spectrum comes from the m x m matrix `W W^T` when m < d. Raises ValueError when the
    numbers of states differ.
    """
    hidden, output = np.asanyarray(W), np.asarray(v)
    if hidden.ndim != 3 or hidden.shape[:2] != output.shape:
        raise ValueError(f"W of shape {hidden.shape} and v of shape {output.shape} are not states of one network")
    parts = [
        _block(hidden[k : k + BLOCK], output[k : k + BLOCK], x_plus, x_minus) for k in range(0, len(hidden), BLOCK)
    ]
    rows = np.concatenate(parts) if parts else np.empty((0, 8))
    plus, minus = GroupAlignment(*rows[:, :3].T), GroupAlignment(*rows[:, 3:6].T)
    return AlignmentHistory(plus, minus, rows[:, 6], rows[:, 7])


def _block(W: ArrayLike, v: ArrayLike, x_plus: ArrayLike, x_minus: ArrayLike) -> Floats:
    """Return the eight numbers (b, 8) of a block of states."""
    weights, output = np.asarray(W, dtype=np.float64), np.asarray(v, dtype=np.float64)
    scale = np.abs(weights).max(axis=(1, 2), keepdims=True)  # small scales would underflow in the squares
    weights = np.divide(weights, scale, out=np.zeros_like(weights), where=scale > 0)
    columns: list[Floats] = []
    for members, target in ((output > 0, x_plus), (output < 0, x_minus)):
        means = np.where(members[..., None], weights, 0.0).sum(axis=1)  # (b, d), direction only
        each = cosines(weights, target)  # (b, m)
        some = members.any(axis=1) & np.isfinite(np.where(members, each, -np.inf)).any(axis=1)
        low = np.where(members & np.isfinite(each), each, np.inf).min(axis=1)
        high = np.where(members & np.isfinite(each), each, -np.inf).max(axis=1)
        columns += [cosines(means, target), np.where(some, low, np.nan), np.where(some, high, np.nan)]
    m, d = weights.shape[1:]
    gram = weights @ weights.swapaxes(1, 2) if m <= d else weights.swapaxes(1, 2) @ weights
    top = np.linalg.eigvalsh(gram)[:, -1]
    total = np.sum(norms(weights) ** 2, axis=1)
    columns += [np.divide(total, top, out=np.full_like(top, np.nan), where=top > 0), top * scale[:, 0, 0] ** 2]
    return np.stack(columns, axis=1)


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


def motion(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, loss: Loss) -> tuple[float, float, float]:
    """Return loss, changes in norms and changes in directions of the network `W (m, d)`, `a (m,)` on `x (n, d)`.

    With `w_j' = -grad_j L` these are `sum_j d/dt ||w_j||^2` and `sum_j || d/dt (w_j / ||w_j||) ||`, in which a neuron
    that is 0 does not count.
    """
    hidden, output = as_network(W, a)
    value, gradient = hidden_gradient(x, y, hidden, output, loss)
    lengths = norms(hidden)
    units = np.divide(hidden, lengths[:, None], out=np.zeros_like(hidden), where=lengths[:, None] > 0)
    along = np.sum(-gradient * units, axis=1)  # (m,) d||w_j||/dt
    across = norms(-gradient - along[:, None] * units)
    turning = np.divide(across, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return value, float(np.sum(2 * along * lengths)), float(turning.sum())
