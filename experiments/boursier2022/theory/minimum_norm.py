"""The interpolators of minimal parameter norm for orthogonal inputs (Boursier et al. 2022, Proposition 1).

For orthogonal inputs of any norm the argument of the paper's Appendix C still holds: a minimiser is balanced, a neuron
with a positive (negative) output weight is active on positive (negative) labels only and is orthogonal to the other
inputs, and merging the neurons of one sign never adds to the norm. There remains the shortest w with
`a <w, x_k> = y_k`, which points along `v = sum y_k x_k / ||x_k||^2`; balance then gives `a^2 = ||w||^2 = ||v||`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_points

from .alignment import require_orthogonal


def interpolating_neuron(x: ArrayLike, y: ArrayLike, sign: int) -> tuple[Floats, float]:
    """Return the shortest balanced neuron `w (d,)`, `a` that fits all labels of one sign and is 0 on the other points.

    `w = sign v / sqrt(||v||)`, `a = sign sqrt(||v||)` with `v = sum y_k x_k / ||x_k||^2` over the labels of that sign;
    both are 0 when there is none. Raises ValueError when inputs are not orthogonal, or when an input is 0 but its label
    is not.
    """
    points, labels = as_points(x, y)
    require_orthogonal(points)
    squares = np.sum(points**2, axis=1)
    chosen = sign * labels > 0
    if (squares[chosen] == 0).any():
        raise ValueError("no network without bias fits a label other than 0 at the input 0")
    v = (labels[chosen] / squares[chosen]) @ points[chosen]  # (d,)
    length = float(np.linalg.norm(v))
    if length == 0:
        return np.zeros(points.shape[1]), 0.0
    return sign * v / np.sqrt(length), sign * float(np.sqrt(length))


def minimum_norm_interpolator(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return the two neurons `W (2, d)`, `a (2,)` of a minimum-norm interpolator: the positive one, then the negative.

    A neuron is 0 when no label has its sign. All minimisers are this network with its neurons split into parallel
    neurons (Proposition 1). Errors as `interpolating_neuron`.
    """
    w_plus, a_plus = interpolating_neuron(x, y, 1)
    w_minus, a_minus = interpolating_neuron(x, y, -1)
    return np.stack([w_plus, w_minus]), np.array([a_plus, a_minus])


def minimum_norm_value(x: ArrayLike, y: ArrayLike) -> float:
    """Return `min ||theta||^2` over interpolators of orthogonal inputs.

    `2 (sqrt(sum_{y_k>0} y_k^2 / ||x_k||^2) + sqrt(sum_{y_k<0} y_k^2 / ||x_k||^2))`. Errors as `interpolating_neuron`.
    """
    W, a = minimum_norm_interpolator(x, y)
    return float(np.sum(W**2) + np.sum(a**2))


def linear_norm(x: ArrayLike, y: ArrayLike) -> float:
    """Return the variation norm (F1, Section 3.2) of the shortest linear function `<v, .>` through all labels.

    It is `2 ||v||`: half the total mass goes to `v`, half to `-v`, since `z = relu(z) - relu(-z)`, and no measure with
    less has the first moment of `v` and an even part that vanishes. NaN when no linear function fits.
    """
    points, labels = as_points(x, y)
    v = np.linalg.lstsq(points, labels, rcond=None)[0]  # (d,)
    return 2.0 * float(np.linalg.norm(v)) if np.allclose(points @ v, labels) else float("nan")
