"""Whether neurons of one group agree on the training data, and where gradient flow ends if they do
(Section 6).

`W` (..., k, d) are the neurons with output weight `+v`, `U` (..., k', d) those with `-v`; leading
axes are snapshots. In a neural agreement regime (NAR) each group has one pattern of signs, `c^w`
and `c^u`; in the perfect one (PAR) these are `y` and `-y`. At the end the network is perfectly
clustered, and its margins are linear in the two directions: `y_i (s_i <w, x_i> - t_i <u, x_i>)`
with `s_i` = 1 where `c^w_i = 1` and `alpha` elsewhere, `t_i` likewise. The directions minimise
`||w||^2 + ||u||^2` subject to margins of at least 1: a support vector machine on `phi(x_i) = y_i
(s_i x_i, -t_i x_i)`, solved exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.measures.least_distance import InfeasibleError, LeastDistance, least_distance
from dynamics_cli.measures.two_layer import preactivations


def agreement_margin(x: Floats, W: Floats, U: Floats, c_w: Floats, c_u: Floats) -> float:
    """Return the largest beta of the NAR of `W (k, d)`, `U (k', d)` with patterns `c_w`, `c_u` (n,)
    in {-1, +1}.

    It is the least of `c_w_i <w_j, x_i>` and `c_u_i <u_j, x_i>` over the Frobenius norm of all
    weights; the network is in the NAR (beta, c_w, c_u) when this is at least beta > 0 (Definition
    6.2).
    """
    least = min((c[:, None] * (x @ group.T)).min() for c, group in ((c_w, W), (c_u, U)))
    return float(least / np.sqrt(np.sum(W**2) + np.sum(U**2)))


def agreement_share(x: Floats, labels: Floats, W: Floats) -> Floats:
    """Return the share `(...)` of neurons `W (..., k, d)` that classify all data by `labels` (n,).

    With `y` and `-y` these are the shares of neurons `w` and `u` in the PAR (Definition 6.3).
    """
    return np.asarray((labels[:, None] * preactivations(x, W) > 0).all(axis=-2).mean(axis=-1))


def most_disagreements(x: Floats, W: Floats) -> Ints:
    """Return the largest number `(...)` of points that two neurons of one group classify
    differently (Appendix J).
    """
    signs = np.where(preactivations(x, W) > 0, 1.0, -1.0)  # (..., n, k)
    agreed = np.swapaxes(signs, -1, -2) @ signs  # (..., k, k): agreements minus disagreements
    return np.asarray(np.rint((len(x) - agreed.min(axis=(-2, -1))) / 2), dtype=np.int64)


def agreed_pattern(x: Floats, W: Floats) -> Floats:
    """Return the sign (n,) that the mean of the group `W (k, d)` gives every point: `c` where
    all neurons agree.
    """
    return np.where(x @ W.mean(axis=0) > 0, 1.0, -1.0)


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
        """Normal (d,) of the decision boundary: the network has the sign of `<w - u, x>`
        (Corollary 6.1).
        """
        return self.w - self.u

    @property
    def joint(self) -> Floats:
        """`(w, u)` as one vector (2 d,)."""
        return np.concatenate([self.w, self.u])


def agreement_directions(
    x: Floats, y: Floats, alpha: float, c_w: Floats, c_u: Floats
) -> Directions:
    """Return the directions of the KKT point of an NAR with patterns `c_w`, `c_u` (n,) in {-1, +1}.

    They mean something when the network that they define has these patterns; `patterns_hold` tells.
    Eq. 8 of Theorem
    6.2, the PAR, is the one with `c_w = y` and `c_u = -y`.

    Raises InfeasibleError: no network of these patterns classifies the data.
    """
    s, t = (np.where(c > 0, 1.0, alpha)[:, None] for c in (c_w, c_u))
    solution = least_distance(y[:, None] * np.concatenate([s * x, -t * x], axis=1))  # (n, 2 d)
    w, u = np.split(solution.w, 2)
    return Directions(w, u, solution)


def patterns_hold(x: Floats, directions: Directions, c_w: Floats, c_u: Floats) -> bool:
    """Return whether both directions classify the data by the patterns with a positive margin."""
    return bool((c_w * (x @ directions.w) > 0).all() and (c_u * (x @ directions.u) > 0).all())


def largest_margin(directions: Directions, v: float, k: int) -> float:
    """Return the normalised margin (Eq. 5) to which training tends in an NAR: `v sqrt(k) / ||(w,
    u)||`.

    For a network of `k` neurons of either type with output weights `+v` and `-v`.
    """
    return float(v * np.sqrt(k) / np.linalg.norm(directions.joint))


def margin_of_assumption_3(x: Floats, alpha: float, v: float, k: int) -> float:
    """Return `alpha v sqrt(k) max_i ||x_i||`, the smoothed margin (Eq. 6) that Theorem 6.2 asks
    for.

    Appendix G.1: if all neurons `w` get a positive point wrong, its margin comes from the `alpha
    <u_j, x_i>` alone, so the normalised one is at most this. The formula itself is missing in the
    text at hand, and derived from that proof.
    """
    return float(alpha * v * np.sqrt(k) * np.linalg.norm(x, axis=1).max())


def wrongly_classifiable(x: Floats, y: Floats) -> Bools:
    """Return which points (n,) a vector can get wrong that classifies the whole other class right,
    by some margin.

    Assumption 4 of Theorem 6.2 holds when there is none: a positive point here makes `V-` and a
    negative one `V+` not empty for a small enough margin. Exact: a point is one of them if it and
    the other class lie in an open half-space.
    """
    wrong = np.zeros(len(y), dtype=bool)
    for j, point in enumerate(x):
        try:
            least_distance(np.concatenate([x[y == -y[j]], point[None]]))
        except InfeasibleError:
            continue
        wrong[j] = True
    return wrong
