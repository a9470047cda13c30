"""The interpolators of minimal parameter norm for orthogonal inputs (Boursier et al. 2022, Proposition 1).

For orthogonal inputs of any norm the argument of the paper's Appendix C still holds: a minimiser is balanced, a neuron
with a positive (negative) output weight is active on positive (negative) labels only and is orthogonal to the other
inputs, and merging the neurons of one sign never adds to the norm. What is left is the shortest w with
`a <w, x_k> = y_k`, which points along `v = sum y_k x_k / ||x_k||^2`; balance then gives `a^2 = ||w||^2 = ||v||`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_network, as_points
from dynamics_cli.theory.alignment import D_minus, D_plus, check_sign, require_orthogonal
from dynamics_cli.theory.assumptions import check_orthonormal


def interpolating_neuron(x: ArrayLike, y: ArrayLike, sign: int, *, tolerance: float = 1e-6) -> tuple[Floats, float]:
    """Return the shortest balanced neuron `w (d,)`, `a` that fits all labels of one sign and is 0 on the other points.

    `w = sign v / sqrt(||v||)`, `a = sign sqrt(||v||)` with `v = sum y_k x_k / ||x_k||^2` over the labels of that sign;
    both are 0 when there is none. Raises ValueError when inputs are not orthogonal (up to `tolerance`), when an input
    is 0 but its label is not, or for a sign other than -1 and 1.
    """
    points, labels = as_points(x, y)
    check_sign(sign)
    require_orthogonal(points, tolerance)
    squares = np.sum(points**2, axis=1)
    chosen = sign * labels > 0
    if (squares[chosen] == 0).any():
        raise ValueError("no network without bias fits a label other than 0 at the input 0")
    v = (labels[chosen] / squares[chosen]) @ points[chosen]  # (d,)
    length = float(np.linalg.norm(v))
    if length == 0:
        return np.zeros(points.shape[1]), 0.0
    return sign * v / np.sqrt(length), sign * float(np.sqrt(length))


def minimum_norm_interpolator(x: ArrayLike, y: ArrayLike, *, tolerance: float = 1e-6) -> tuple[Floats, Floats]:
    """Return the two neurons `W (2, d)`, `a (2,)` of a minimum-norm interpolator: the positive one, then the negative.

    A neuron is 0 when no label has its sign. All minimisers are this network with its neurons split into parallel
    ones (Proposition 1). Errors as `interpolating_neuron`.
    """
    w_plus, a_plus = interpolating_neuron(x, y, 1, tolerance=tolerance)
    w_minus, a_minus = interpolating_neuron(x, y, -1, tolerance=tolerance)
    return np.stack([w_plus, w_minus]), np.array([a_plus, a_minus])


def minimum_norm_value(x: ArrayLike, y: ArrayLike, *, tolerance: float = 1e-6) -> float:
    """Return `min ||theta||^2` over interpolators of orthogonal inputs.

    `2 (sqrt(sum_{y_k>0} y_k^2 / ||x_k||^2) + sqrt(sum_{y_k<0} y_k^2 / ||x_k||^2))`. Errors as `interpolating_neuron`.
    """
    W, a = minimum_norm_interpolator(x, y, tolerance=tolerance)
    return float(np.sum(W**2) + np.sum(a**2))


def orthonormal_value(x: ArrayLike, y: ArrayLike, *, tolerance: float = 1e-6) -> float:
    """Return `2 n (||D_+|| + ||D_-||)`, as Proposition 1 states it. Raises ValueError unless inputs are orthonormal."""
    points, labels = as_points(x, y)
    check = check_orthonormal(points, tolerance)
    if not check.holds:
        raise ValueError(str(check))
    lengths = np.linalg.norm(D_plus(points, labels)) + np.linalg.norm(D_minus(points, labels))
    return float(2 * len(labels) * lengths)


def distance_to_minimum_norm(
    x: ArrayLike, y: ArrayLike, W: ArrayLike, a: ArrayLike, *, tolerance: float = 1e-6
) -> float:
    """Return the distance from `theta = (W, a)` to the set of minimum-norm interpolators, at the signs of `a`.

    The set is that of Proposition 1: neurons along `v_+` (or `-v_-`) with squared norms that sum to `||v||`. Neurons
    of each sign are projected on the cone of their direction and rescaled together. Raises ValueError when no neuron
    has a sign that the labels need; otherwise as `interpolating_neuron`.
    """
    hidden, output = as_network(W, a)
    total = 0.0
    for sign in (1, -1):
        w, head = interpolating_neuron(x, y, sign, tolerance=tolerance)
        chosen = sign * output > 0
        if head == 0:
            total += float(np.sum(hidden[chosen] ** 2) + np.sum(output[chosen] ** 2))
            continue
        if not chosen.any():
            raise ValueError(f"no neuron has an output weight of sign {sign:+d}")
        u = w / np.linalg.norm(w)
        # nearest point (c_j u, sign c_j): maximise sum_j c_j p_j over c >= 0 with sum c_j^2 = a^2
        raw = hidden[chosen] @ u + np.abs(output[chosen])
        p = np.maximum(raw, 0.0) if (raw > 0).any() else (np.arange(len(raw)) == np.argmax(raw)).astype(np.float64)
        c = abs(head) * p / np.linalg.norm(p)
        total += float(np.sum((hidden[chosen] - c[:, None] * u) ** 2) + np.sum((np.abs(output[chosen]) - c) ** 2))
    total += float(np.sum(hidden[output == 0] ** 2))
    return float(np.sqrt(total))
