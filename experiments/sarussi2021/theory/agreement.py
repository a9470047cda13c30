"""Whether neurons of one group agree on the training data, and where gradient flow ends if they do (Section 6).

`W` (..., k, d) are the neurons with output weight `+v`, `U` (..., k', d) those with `-v`; leading axes are snapshots.
In a neural agreement regime (NAR) each group has one pattern of signs, `c^w` and `c^u`; in the perfect one (PAR) these
are `y` and `-y`. At the end the network is perfectly clustered, and its margins are linear in the two directions:
`y_i (s_i <w, x_i> - t_i <u, x_i>)` with `s_i` = 1 where `c^w_i = 1` and `alpha` elsewhere, `t_i` likewise. The
directions minimise `||w||^2 + ||u||^2` subject to margins of at least 1: a support vector machine on
`phi(x_i) = y_i (s_i x_i, -t_i x_i)`, solved exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, Ints, as_floats, as_points
from dynamics_cli.measures.least_distance import InfeasibleError, LeastDistance, least_distance
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


def agreement_share(x: ArrayLike, y: ArrayLike, W: ArrayLike, *, sign: int = 1) -> Floats:
    """Return the share `(...)` of neurons that classify all data like `sign * y`: those in the PAR (Definition 6.3).

    `sign` is 1 for neurons `w` with output weight `+v` and -1 for neurons `u`.
    """
    points, labels = as_points(x, y)
    return np.asarray((sign * labels[:, None] * preactivations(points, W) > 0).all(axis=-2).mean(axis=-1))


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


@dataclass(frozen=True)
class Directions:
    """The two directions of a perfectly clustered network, with their certificate."""

    w: Floats
    """(d,) direction of the neurons with output weight `+v`."""
    u: Floats
    """(d,) direction of the neurons with output weight `-v`."""
    solution: LeastDistance
    """Of the convex program: multipliers, support vectors, KKT residual."""

    @property
    def boundary(self) -> Floats:
        """Normal (d,) of the decision boundary: the network has the sign of `<w - u, x>` (Corollary 6.1)."""
        return self.w - self.u

    @property
    def joint(self) -> Floats:
        """`(w, u)` as one vector (2 d,)."""
        return np.concatenate([self.w, self.u])


def agreement_directions(x: ArrayLike, y: ArrayLike, alpha: float, c_w: ArrayLike, c_u: ArrayLike) -> Directions:
    """Return the directions of the KKT point of an NAR with patterns `c_w`, `c_u` (n,) in {-1, +1}.

    They mean something when the network that they define has these patterns; `patterns_hold` tells.

    Raises:
        InfeasibleError: no network of these patterns classifies the data.
        ValueError: shapes do not match, or `alpha` is not in (0, 1].
    """
    points, labels = as_points(x, y)
    if not 0 < alpha <= 1:
        raise ValueError(f"the slope of leaky ReLU must be in (0, 1], not {alpha}")
    s, t = (np.where(as_floats(c, "c", axes=1) > 0, 1.0, alpha) for c in (c_w, c_u))
    phi = labels[:, None] * np.concatenate([s[:, None] * points, -t[:, None] * points], axis=1)  # (n, 2 d)
    solution = least_distance(phi)
    d = points.shape[1]
    return Directions(solution.w[:d], solution.w[d:], solution)


def perfect_agreement_directions(x: ArrayLike, y: ArrayLike, alpha: float) -> Directions:
    """Return the directions of the PAR: Eq. 8 of Theorem 6.2, the NAR with `c^w = y` and `c^u = -y`."""
    labels = as_floats(y, "y", axes=1)
    return agreement_directions(x, labels, alpha, labels, -labels)


def patterns_hold(x: ArrayLike, directions: Directions, c_w: ArrayLike, c_u: ArrayLike) -> bool:
    """Return whether both directions classify the data by the patterns with a positive margin."""
    points = as_floats(x, "x", axes=2)
    w, u = (
        as_floats(c_w, "c_w", axes=1) * (points @ directions.w),
        as_floats(c_u, "c_u", axes=1) * (points @ directions.u),
    )
    return bool((w > 0).all() and (u > 0).all())


def largest_margin(directions: Directions, v: float, k: int) -> float:
    """Return the normalised margin (Eq. 5) to which training tends in the NAR of `found`: `v sqrt(k) / ||(w, u)||`.

    For a network of `k` neurons of either type with output weights `+v` and `-v`.
    """
    return float(v * np.sqrt(k) / np.linalg.norm(directions.joint))


def margin_of_assumption_3(x: ArrayLike, alpha: float, v: float, k: int) -> float:
    """Return `alpha v sqrt(k) max_i ||x_i||`, the smoothed margin (Eq. 6) that Theorem 6.2 asks for.

    Appendix G.1: if all neurons `w` get a positive point wrong, its margin comes from the `alpha <u_j, x_i>` alone, so
    the normalised one is at most this. The formula itself is missing in the text at hand, and derived from that proof.
    """
    return float(alpha * v * np.sqrt(k) * np.linalg.norm(as_floats(x, "x", axes=2), axis=1).max())


def wrongly_classifiable(x: ArrayLike, y: ArrayLike) -> Bools:
    """Return which points (n,) a vector can get wrong that classifies the whole other class right, by some margin.

    Assumption 4 of Theorem 6.2 holds when there is none: a positive point here makes `V-` and a negative one `V+` not
    empty for a small enough margin. Exact: a point is one of them if it and the other class lie in an open half-space.
    """
    points, labels = as_points(x, y)
    wrong = np.zeros(len(labels), dtype=bool)
    for j, point in enumerate(points):
        try:
            least_distance(np.concatenate([points[labels == -labels[j]], point[None]]))
        except InfeasibleError:
            continue
        wrong[j] = True
    return wrong
