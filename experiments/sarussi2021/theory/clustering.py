"""How tightly the two groups of neurons are clustered, and how linear that makes the boundary (Section 5, Theorem 5.1).

`W` (..., k, d) are the neurons with output weight `+v`, `U` (..., k', d) those with `-v`; leading axes are snapshots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_floats
from dynamics_cli.measures.neurons import directions, norms
from dynamics_cli.measures.two_layer import outputs


def group_means(W: ArrayLike, U: ArrayLike) -> tuple[Floats, Floats]:
    """Return the means `w_bar` and `u_bar` `(..., d)` of both groups."""
    w, u = _groups(W, U)
    return w.mean(axis=-2), u.mean(axis=-2)


def cluster_radius(W: ArrayLike, U: ArrayLike) -> Floats:
    """Return `r = max over both groups of ||w_i - w_bar||` `(...)`."""
    w, u = _groups(W, U)
    radii = [norms(group - group.mean(axis=-2, keepdims=True)).max(axis=-1) for group in (w, u)]
    return np.asarray(np.maximum(*radii))


def clustering_ratio(W: ArrayLike, U: ArrayLike) -> Floats:
    """Return `2 r / ||w_bar - u_bar||` `(...)`: outside the linear regime |cosine| is below it (Eq. 7).

    Infinite where both means are equal.
    """
    w_bar, u_bar = group_means(W, U)
    apart = norms(w_bar - u_bar)
    radius = 2 * cluster_radius(W, U)
    return np.asarray(np.divide(radius, apart, out=np.full(np.shape(apart), np.inf), where=apart > 0))


def outside_linear_regime(x: ArrayLike, W: ArrayLike, U: ArrayLike) -> Bools:
    """Return which points of `x (n, d)` satisfy `|<w_bar - u_bar, x>| < 2 r ||x||`, `(..., n)`.

    Everywhere else the network has the sign of `<w_bar - u_bar, x>` (Theorem 5.1).
    """
    points = as_floats(x, "x", axes=2)
    w_bar, u_bar = group_means(W, U)
    scores = np.abs((w_bar - u_bar) @ points.T)  # (..., n)
    result: Bools = scores < 2 * cluster_radius(W, U)[..., None] * norms(points)
    return result


def largest_angle(W: ArrayLike) -> Floats:
    """Return the largest angle `(...)` between two neurons of one group `W (..., k, d)`, in degrees.

    NaN where a neuron is 0. Computed from differences, which keeps small angles accurate.
    """
    bar = directions(as_floats(W, "W", axes=2, batched=True))
    apart = bar - bar[..., :1, :]  # small for a tight group, so that their differences are accurate
    squares = np.sum(apart**2, axis=-1)
    chords = squares[..., :, None] + squares[..., None, :] - 2 * apart @ np.swapaxes(apart, -1, -2)  # (..., k, k)
    flat = chords.reshape(*chords.shape[:-2], -1)
    k = bar.shape[-2]
    first, second = np.divmod(np.where(np.isnan(flat), np.inf, flat).argmax(axis=-1), k)
    u = np.take_along_axis(bar, first[..., None, None], axis=-2)[..., 0, :]
    v = np.take_along_axis(bar, second[..., None, None], axis=-2)[..., 0, :]
    angle = 2 * np.arctan2(np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1))
    result: Floats = np.where(np.isnan(flat).any(axis=-1), np.nan, np.degrees(angle))
    return result


def _groups(W: ArrayLike, U: ArrayLike) -> tuple[Floats, Floats]:
    w, u = as_floats(W, "W", axes=2, batched=True), as_floats(U, "U", axes=2, batched=True)
    if w.shape[-1] != u.shape[-1] or not w.shape[-2] or not u.shape[-2]:
        raise ValueError(f"groups of shapes {w.shape} and {u.shape} are not the two halves of one network")
    return w, u


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
    """Return the largest `|<w_bar - u_bar, x>| / (r ||x||)` at which the signs differ: at most `sharp_constant(alpha)`.

    0 when they differ nowhere.
    """
    points = as_floats(x, "x", axes=2)
    differ = signs_differ(points, W, U, alpha)
    radius = float(cluster_radius(W, U))
    if not differ.any() or radius == 0:
        return 0.0
    scores = np.abs(points[differ] @ linear_classifier(W, U))
    return float(np.max(scores / (radius * np.linalg.norm(points[differ], axis=1))))


def sharp_constant(alpha: float) -> float:
    """Return `(1 - alpha) / (1 + alpha)`, the least number that may replace the 2 of Theorem 5.1 for every network.

    With `delta = <w_bar - u_bar, x> > 0`, `N(x) / (k v)` is `(1 + alpha) / 2 delta + (1 - alpha) / 2` times the mean of
    `|<w_i, x>|` minus the mean of `|<u_i, x>|`. The first mean is at least `|<w_bar, x>|`, the second at most the
    larger of `|<u_bar, x>|` and `r ||x||`; so the sign is right from `delta = (1 - alpha) / (1 + alpha) r ||x||` on,
    and `sharpest` is a network at which it is wrong just below.
    """
    return (1.0 - alpha) / (1.0 + alpha)


def sharpest(alpha: float, short: float = 1e-9) -> tuple[Floats, Floats, Floats]:
    """Return `W`, `U` (2, 2) and points `x` (1, 2) with a wrong sign at `1 - short` of the sharp constant.

    The neurons `w` are blind to x, and the two neurons `u` lie at `-delta` plus and minus the radius 1 along x.
    """
    delta = (1.0 - short) * sharp_constant(alpha)
    return np.array([[0.0, 1.0]] * 2), np.array([[1.0 - delta, 0.0], [-1.0 - delta, 0.0]]), np.array([[1.0, 0.0]])
