"""Whether neurons of one group agree on the training data (Sarussi et al. 2021, Definitions 6.2 and 6.3, Appendix J).

`W` (..., k, d) are the neurons with output weight `+v`, `U` (..., k', d) those with `-v`; leading axes are snapshots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats, as_points
from dynamics_cli.measures.two_layer import preactivations


def agreement_margin(x: ArrayLike, W: ArrayLike, U: ArrayLike, c_w: ArrayLike, c_u: ArrayLike) -> Floats:
    """Return the largest beta `(...)` of the NAR with patterns `c_w`, `c_u` (n,) in {-1, +1}.

    It is the least of `c_w_i <w_j, x_i>` and `c_u_i <u_j, x_i>` over the Frobenius norm of all weights; the network is
    in the NAR (beta, c_w, c_u) when this is at least beta > 0 (Definition 6.2).
    """
    w = as_floats(c_w, "c_w", axes=1)[:, None] * preactivations(x, W)  # (..., n, k)
    u = as_floats(c_u, "c_u", axes=1)[:, None] * preactivations(x, U)
    least = np.minimum(w.min(axis=(-2, -1)), u.min(axis=(-2, -1)))
    norm = np.sqrt(_squares(W) + _squares(U))
    return np.asarray(np.divide(least, norm, out=np.full(np.shape(norm), np.nan), where=norm > 0))


def perfect_agreement(x: ArrayLike, y: ArrayLike, W: ArrayLike, *, sign: int = 1) -> Bools:
    """Return which neurons `(..., k)` classify all data like `sign * y`: those in the PAR (Definition 6.3).

    `sign` is 1 for neurons `w` with output weight `+v` and -1 for neurons `u`.
    """
    points, labels = as_points(x, y)
    return np.asarray((sign * labels[:, None] * preactivations(points, W) > 0).all(axis=-2))


def agreement_share(x: ArrayLike, y: ArrayLike, W: ArrayLike, *, sign: int = 1) -> Floats:
    """Return the share `(...)` of neurons that are in the PAR."""
    return np.asarray(perfect_agreement(x, y, W, sign=sign).mean(axis=-1))


def most_disagreements(x: ArrayLike, W: ArrayLike) -> Ints:
    """Return the largest number `(...)` of points that two neurons of one group classify differently (Appendix J)."""
    signs = np.where(preactivations(x, W) > 0, 1.0, -1.0)  # (..., n, k)
    n = signs.shape[-2]
    agreed = np.swapaxes(signs, -1, -2) @ signs  # (..., k, k): agreements minus disagreements
    return np.asarray(np.rint((n - agreed.min(axis=(-2, -1))) / 2), dtype=np.int64)


def agreed_pattern(x: ArrayLike, W: ArrayLike) -> Floats:
    """Return the sign (n,) that the mean of the group `W (k, d)` gives every point: `c` where all neurons agree."""
    mean = as_floats(W, "W", axes=2).mean(axis=0)
    return np.where(as_floats(x, "x", axes=2) @ mean > 0, 1.0, -1.0)


def _squares(W: ArrayLike) -> Floats:
    weights = as_floats(W, "W", axes=2, batched=True)
    return np.asarray(np.sum(weights**2, axis=(-2, -1)))
