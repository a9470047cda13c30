"""The vectors and sets of neurons that decide the dynamics from a small initialisation, and Assumption 2.

Boursier et al. 2022, Section 4.1.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_network, as_points
from dynamics_cli.measures.two_layer import preactivations


def D_sign(x: ArrayLike, y: ArrayLike, sign: int) -> Floats:
    """Return `D_+` `(d,)` for `sign = 1` and `D_-` for `sign = -1` (Section 4.1).

    `(1/n) sum y_k x_k` over the labels of that sign, for `x (n, d)`, `y (n,)`. Neurons with a negative output weight
    align with `-D_-`.
    """
    points, labels = as_points(x, y)
    result: Floats = np.where(sign * labels > 0, labels, 0.0) @ points / len(labels)
    return result


D_plus, D_minus = partial(D_sign, sign=1), partial(D_sign, sign=-1)


def S_sign(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, sign: int) -> Bools:
    """Return which neurons `(m,)` are in `S_{+,1}` (sign 1, Eq. 5) or `S_{-,1}` (sign -1, Eq. 6).

    `sign a_j > 0`, and `<w_j, x_k> >= 0` wherever `sign y_k > 0`. `W (m, d)` and `a (m,)` are the weights at
    initialisation; only the signs of `a` matter.
    """
    points, labels = as_points(x, y)
    hidden, output = as_network(W, a)
    on = preactivations(points, hidden) >= 0  # (n, m)
    result: Bools = on[sign * labels > 0].all(axis=0) & (sign * output > 0)
    return result


S_plus_1, S_minus_1 = partial(S_sign, sign=1), partial(S_sign, sign=-1)


def orthogonality(x: ArrayLike) -> float:
    """Return the largest `|cos|` between two different inputs of `x (n, d)`: 0 for orthogonal inputs.

    Inputs that are 0 are orthogonal to all. A single input gives 0.
    """
    points = as_points(x, np.zeros(len(np.asarray(x))))[0]
    lengths = np.linalg.norm(points, axis=1)
    gram = points @ points.T
    scale = np.outer(lengths, lengths)
    cosines = np.abs(np.divide(gram, scale, out=np.zeros_like(gram), where=scale > 0))
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


ORTHOGONAL = 1e-6
"""Largest `|cos|` of orthogonal inputs."""


def require_orthogonal(x: ArrayLike) -> None:
    """Raise ValueError when two inputs of `x (n, d)` have a `|cos|` above 1e-6."""
    worst = orthogonality(x)
    if worst > ORTHOGONAL:
        raise ValueError(f"this closed form needs orthogonal inputs, but two have cosine {worst:.3g} in absolute value")


def labels_differ(x: ArrayLike, y: ArrayLike) -> bool:
    """Return whether Assumption 2 holds: no label is 0, and `||D_+|| != ||D_-||`.

    The paper says it for orthonormal inputs: the squares of the positive and of the negative labels have unequal sums.
    """
    points, labels = as_points(x, y)
    plus, minus = np.linalg.norm(D_plus(points, labels)), np.linalg.norm(D_minus(points, labels))
    return bool((labels != 0).all() and abs(plus - minus) > 1e-12 * max(plus, minus))
