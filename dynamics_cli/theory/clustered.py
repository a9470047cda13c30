"""A clustered leaky ReLU network has an approximately linear boundary (Sarussi et al. 2021, Theorem 5.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_floats
from dynamics_cli.measures.groups import cluster_radius, clustering_ratio, group_means, outside_linear_regime
from dynamics_cli.measures.two_layer import outputs


def linear_classifier(W: ArrayLike, U: ArrayLike) -> Floats:
    """Return the normal `w_bar - u_bar` (d,) of the classifier that the network agrees with."""
    w_bar, u_bar = group_means(W, U)
    return w_bar - u_bar


def signs_differ(x: ArrayLike, W: ArrayLike, U: ArrayLike, alpha: float) -> Bools:
    """Return where (n,) the network and the linear classifier have different signs."""
    points = as_floats(x, "x", axes=2)
    weights = np.concatenate([np.asarray(W, dtype=np.float64), np.asarray(U, dtype=np.float64)])
    a = np.concatenate([np.ones(len(np.asarray(W))), -np.ones(len(np.asarray(U)))])
    h = outputs(points, weights, a, alpha)
    result: Bools = np.sign(h) != np.sign(points @ linear_classifier(W, U))
    return result


def violations(x: ArrayLike, W: ArrayLike, U: ArrayLike, alpha: float) -> int:
    """Return the number of points of `x (n, d)` in the linear regime at which the signs differ; 0 by Theorem 5.1."""
    inside = ~outside_linear_regime(x, W, U)
    return int(np.count_nonzero(signs_differ(x, W, U, alpha) & inside))


def tightness(x: ArrayLike, W: ArrayLike, U: ArrayLike, alpha: float) -> float:
    """Return the largest `|<w_bar - u_bar, x>| / (r ||x||)` at which the signs differ; 2 would make the bound tight.

    0 when they differ nowhere.
    """
    points = as_floats(x, "x", axes=2)
    differ = signs_differ(points, W, U, alpha)
    radius = float(cluster_radius(W, U))
    if not differ.any() or radius == 0:
        return 0.0
    scores = np.abs(points[differ] @ linear_classifier(W, U))
    return float(np.max(scores / (radius * np.linalg.norm(points[differ], axis=1))))


def largest_bend(W: ArrayLike, U: ArrayLike) -> float:
    """Return by how many degrees the boundary may leave the linear one: `arcsin` of the clustering ratio (Eq. 7).

    90, no bound at all, when the ratio is 1 or more.
    """
    return float(np.degrees(np.arcsin(min(float(clustering_ratio(W, U)), 1.0))))
