"""The vectors and sets of neurons that decide the dynamics from a small initialisation, and Assumptions 1 to 3.

Boursier et al. 2022, Section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
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
"""Largest `|cos|` of orthogonal inputs, and largest deviation of squared norms from 1."""


def require_orthogonal(x: ArrayLike) -> None:
    """Raise ValueError when two inputs of `x (n, d)` have a `|cos|` above 1e-6."""
    worst = orthogonality(x)
    if worst > ORTHOGONAL:
        raise ValueError(f"this closed form needs orthogonal inputs, but two have cosine {worst:.3g} in absolute value")


@dataclass(frozen=True)
class Assumption:
    """Whether one assumption of the paper holds, and the numbers that say so."""

    name: str
    statement: str
    holds: bool
    detail: str

    def __str__(self) -> str:
        return f"{self.name} ({self.statement}) {'holds' if self.holds else 'is violated'}: {self.detail}"


def check_orthonormal(x: ArrayLike) -> Assumption:
    """Check Assumption 1: `<x_k, x_l> = 1{k = l}` up to 1e-6, for `x (n, d)`.

    The detail tells orthogonal inputs of other norms, for which the dynamics are the same in kind, from the rest.
    """
    points = as_points(x, np.zeros(len(np.asarray(x))))[0]
    worst = orthogonality(points)
    lengths = np.linalg.norm(points, axis=1)
    normalised = bool(np.abs(lengths**2 - 1.0).max() <= ORTHOGONAL)
    orthogonal = worst <= ORTHOGONAL
    angle = "orthogonal" if orthogonal else f"not orthogonal (largest |cos| {worst:.3g})"
    size = "of norm 1" if normalised else f"of norms {lengths.min():.4g} to {lengths.max():.4g}"
    return Assumption("Assumption 1", "orthonormal inputs", orthogonal and normalised, f"inputs are {angle} and {size}")


def check_labels(x: ArrayLike, y: ArrayLike) -> Assumption:
    """Check Assumption 2: no label is 0, and the squares of the positive and of the negative labels have unequal sums.

    For orthogonal inputs of any norm the second part reads `||D_+|| != ||D_-||`, which is checked.
    """
    points, labels = as_points(x, y)
    zeros = int(np.count_nonzero(labels == 0))
    plus, minus = float(np.linalg.norm(D_plus(points, labels))), float(np.linalg.norm(D_minus(points, labels)))
    differ = abs(plus - minus) > 1e-12 * max(plus, minus)
    detail = f"{zeros} of {len(labels)} labels are 0, ||D+|| = {plus:.6g}, ||D-|| = {minus:.6g}"
    return Assumption("Assumption 2", "no zero label, ||D+|| != ||D-||", zeros == 0 and differ, detail)


def check_neurons(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike) -> Assumption:
    """Check Assumption 3: `S_{+,1}` and `S_{-,1}` are both non-empty for the initial weights `W (m, d)`, `a (m,)`."""
    plus, minus = int(S_plus_1(x, y, W, a).sum()), int(S_minus_1(x, y, W, a).sum())
    detail = f"S+,1 has {plus} and S-,1 has {minus} of {len(np.asarray(a))} neurons"
    return Assumption("Assumption 3", "S+,1 and S-,1 non-empty", plus > 0 and minus > 0, detail)


def check_assumptions(x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike) -> tuple[Assumption, ...]:
    """Return the checks of Assumptions 1, 2 and 3, in this order. Raises ValueError on shapes that do not match."""
    return check_orthonormal(x), check_labels(x, y), check_neurons(x, y, W, a)
