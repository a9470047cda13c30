"""How tightly the two groups of neurons are clustered, and how linear that makes the boundary
(Section 5, Theorem 5.1).

`W` (..., k, d) are the neurons with output weight `+v`, `U` (..., k', d) those with `-v`; leading
axes are snapshots.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.measures.neurons import directions, norms
from dynamics_cli.measures.two_layer import outputs


def linear_classifier(W: Floats, U: Floats) -> Floats:
    """Return the normal `w_bar - u_bar` `(..., d)` of the classifier that the network agrees
    with.
    """
    return np.asarray(W.mean(axis=-2) - U.mean(axis=-2))


def cluster_radius(W: Floats, U: Floats) -> Floats:
    """Return `r = max over both groups of ||w_i - w_bar||` `(...)`."""
    radii = [norms(group - group.mean(axis=-2, keepdims=True)).max(axis=-1) for group in (W, U)]
    return np.asarray(np.maximum(*radii))


def clustering_ratio(W: Floats, U: Floats) -> Floats:
    """Return `2 r / ||w_bar - u_bar||` `(...)`: outside the linear regime |cosine| is below it (Eq.
    7).

    Infinite where both means are equal.
    """
    apart = norms(linear_classifier(W, U))
    return np.asarray(
        np.divide(
            2 * cluster_radius(W, U), apart, out=np.full(apart.shape, np.inf), where=apart > 0
        )
    )


def outside_linear_regime(x: Floats, W: Floats, U: Floats, constant: float = 2.0) -> Bools:
    """Return which points of `x (n, d)` satisfy `|<w_bar - u_bar, x>| < constant r ||x||`,
    `(..., n)`.

    Everywhere else the network has the sign of `<w_bar - u_bar, x>`: for the 2 of Theorem 5.1, and
    for every constant down to `sharp_constant(alpha)`.
    """
    scores = np.abs(linear_classifier(W, U) @ x.T)  # (..., n)
    return np.asarray(scores < constant * cluster_radius(W, U)[..., None] * norms(x))


def largest_angle(W: Floats) -> Floats:
    """Return the largest angle (K,) between two neurons of one group `W (K, k, d)`, in degrees; NaN
    where one is 0.

    Computed from distances of the directions, which keeps small angles accurate.
    """
    chords = np.array([pdist(units).max(initial=0.0) for units in directions(W)])
    return np.asarray(np.degrees(2 * np.arcsin(np.minimum(chords / 2, 1.0))))


def signs_differ(x: Floats, W: Floats, U: Floats, alpha: float) -> Bools:
    """Return where (n,) the network and the linear classifier have different signs."""
    h = outputs(x, np.concatenate([W, U]), np.repeat([1.0, -1.0], [len(W), len(U)]), alpha)
    return np.asarray(np.sign(h) != np.sign(x @ linear_classifier(W, U)))


def violations(x: Floats, W: Floats, U: Floats, alpha: float) -> int:
    """Return the number of points of `x (n, d)` in the linear regime at which the signs differ;
    0 by Theorem 5.1.
    """
    return int(np.count_nonzero(signs_differ(x, W, U, alpha) & ~outside_linear_regime(x, W, U)))


def steps_violated(x: Floats, W: Floats, U: Floats) -> tuple[int, int]:
    """Return at how many points of `x (n, d)` the two steps to Theorem 5.1 fail.

    Corollary C.1: in the linear regime `|<w_bar, x>|` or `|<u_bar, x>|` is at least `r ||x||`.
    Lemma C.1: where it is, all neurons of the group have the sign of their mean.
    """
    reach = cluster_radius(W, U) * norms(x)
    far = [np.abs(x @ group.mean(axis=0)) >= reach for group in (W, U)]
    mixed = [np.ptp(np.sign(x @ group.T), axis=1) > 0 for group in (W, U)]
    alone = ~outside_linear_regime(x, W, U) & ~far[0] & ~far[1]
    return int(alone.sum()), int(sum((f & m).sum() for f, m in zip(far, mixed, strict=True)))


def tightness(x: Floats, W: Floats, U: Floats, alpha: float) -> float:
    """Return the largest `|<w_bar - u_bar, x>| / (r ||x||)` at which the signs differ: at most
    `sharp_constant(alpha)`.

    0 when they differ nowhere.
    """
    radius = float(cluster_radius(W, U))
    x = x[signs_differ(x, W, U, alpha)]
    if radius == 0:
        return 0.0
    scores = np.abs(x @ linear_classifier(W, U)) / (radius * np.linalg.norm(x, axis=1))
    return float(scores.max(initial=0.0))


def sharp_constant(alpha: float) -> float:
    """Return `(1 - alpha) / (1 + alpha)`, the least number that may replace the 2 of Theorem 5.1
    for every network.

    With `delta = <w_bar - u_bar, x> > 0`, `N(x) / (k v)` is `(1 + alpha) / 2 delta + (1 - alpha) /
    2` times the mean of `|<w_i, x>|` minus the mean of `|<u_i, x>|`. The first mean is at least
    `|<w_bar, x>|`, the second at most the larger of `|<u_bar, x>|` and `r ||x||`; so the sign is
    right from `delta = (1 - alpha) / (1 + alpha) r ||x||` on, and `sharpest` is a network at which
    it is wrong just below.
    """
    return (1.0 - alpha) / (1.0 + alpha)


def sharpest(alpha: float, short: float = 1e-9) -> tuple[Floats, Floats, Floats]:
    """Return `W`, `U` (2, 2) and points `x` (1, 2) with a wrong sign at `1 - short` of the sharp
    constant.

    The neurons `w` are blind to x, and the two neurons `u` lie at `-delta` plus and minus the
    radius 1 along x.
    """
    delta = (1.0 - short) * sharp_constant(alpha)
    return (
        np.array([[0.0, 1.0]] * 2),
        np.array([[1.0 - delta, 0.0], [-1.0 - delta, 0.0]]),
        np.array([[1.0, 0.0]]),
    )
