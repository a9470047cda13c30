"""The vectors and sets of neurons that decide the dynamics from a small initialisation (Boursier et
al. 2022, 4.1).

Everywhere `x (n, d)` and `y (n,)` are inputs and labels.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dynamics_cli.measures.arrays import Bools, Floats


def D_sign(x: Floats, y: Floats, sign: int) -> Floats:
    """Return `D_+` `(d,)` for `sign = 1` and `D_-` for `sign = -1`: `(1/n) sum y_k x_k` over the
    labels of that sign.

    Neurons with a negative output weight align with `-D_-`.
    """
    return np.asarray(np.where(sign * y > 0, y, 0.0) @ x / len(y))


D_plus = partial(D_sign, sign=1)
D_minus = partial(D_sign, sign=-1)


def D_norms(x: Floats, y: Floats) -> tuple[float, float]:
    """Return `||D_+||` and `||D_-||`."""
    return float(np.linalg.norm(D_plus(x, y))), float(np.linalg.norm(D_minus(x, y)))


def S_sign(x: Floats, y: Floats, W: Floats, a: Floats, sign: int) -> Bools:
    """Return which neurons `(m,)` are in `S_{+,1}` (sign 1, Eq. 5) or `S_{-,1}` (sign -1, Eq. 6).

    `sign a_j > 0`, and `<w_j, x_k> >= 0` wherever `sign y_k > 0`, for the initial weights `W (m,
    d)` and `a (m,)`.
    """
    return np.asarray((x @ W.T >= 0)[sign * y > 0].all(axis=0) & (sign * a > 0))


S_plus_1 = partial(S_sign, sign=1)
S_minus_1 = partial(S_sign, sign=-1)


def orthogonality(x: Floats) -> float:
    """Return the largest `|cos|` between two different inputs: 0 for orthogonal inputs, of which
    one may be 0.
    """
    lengths = np.linalg.norm(x, axis=1)
    gram = x @ x.T
    scale = np.outer(lengths, lengths)
    cosines = np.abs(np.divide(gram, scale, out=np.zeros_like(gram), where=scale > 0))
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


def labels_differ(x: Floats, y: Floats) -> bool:
    """Return whether Assumption 2 holds: no label is 0, and `||D_+|| != ||D_-||`.

    The paper says it for orthonormal inputs: the squares of the positive and of the negative labels
    have unequal sums.
    """
    plus, minus = D_norms(x, y)
    return bool((y != 0).all() and abs(plus - minus) > 1e-12 * max(plus, minus))
