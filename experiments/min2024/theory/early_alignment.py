"""Times of Min et al. 2024, Theorem 1, with the constants of its proof (Appendices C and D).

Times belong to gradient flow on the *sum* of the losses over the samples; on the mean, multiply by n.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, Ints, as_points
from dynamics_cli.measures.neurons import cosines, directions

from .cones import centres, correlation


@dataclass(frozen=True)
class AlignmentConstants:
    """Constants of the data in the bounds (and, for `zeta`, of the initial directions)."""

    n: int
    mu: float
    xi: float
    """Lemma 9: vectors of the cone K and vectors outside S_+ and S_- have cosines up to `sqrt(1 - xi)`; here `mu^2`."""
    zeta: float
    """The smaller of zeta_1 (Lemma 8) and zeta_2 (Assumption 2). The text prints max, the proof needs both."""
    x_min: float
    x_max: float

    @property
    def rate(self) -> float:
        """`min(zeta, xi) sqrt(mu) X_min`: an edge of a path takes at most 4 over this and the active points."""
        return float(min(self.zeta, self.xi) * np.sqrt(self.mu) * self.x_min)

    @property
    def t1(self) -> float:
        """The bound on the alignment, `16 log n / rate`."""
        return float(16.0 * np.log(self.n) / self.rate)


def alignment_constants(
    x: ArrayLike, y: ArrayLike, W: ArrayLike | None = None, v: ArrayLike | None = None
) -> AlignmentConstants:
    """Return the constants for inputs `x (n, d)`, labels `y (n,)` and, where given, initial `W (m, d)` and `v (m,)`.

    With `u_i = y_i x_i / ||x_i||`: the cone K is spanned by the u_i, and the cosine to u_i is least on K at one of
    them, so `xi = mu^2`; the ball around x_+ (x_-) stays in S_+ (S_-) up to `zeta_1 = min_i cos^2(x_+-, u_i)`.
    Raises ValueError when Assumption 1 does not hold (mu <= 0): the theorem then says nothing.
    """
    points, labels = as_points(x, y)
    mu = correlation(points, labels).mu
    if mu <= 0:
        raise ValueError(f"Theorem 1 needs mu > 0 (Assumption 1), not {mu:.3g}")
    u = directions(points) * np.sign(labels)[:, None]
    x_plus, x_minus = centres(points, labels)
    zetas = [float((cosines(u, side) ** 2).min()) for side in (x_plus, -x_minus) if side.any()]
    if W is not None and v is not None:
        signs = np.asarray(v, dtype=np.float64)
        for side, members in ((x_minus, signs > 0), (x_plus, signs < 0)):
            if side.any() and members.any():
                worst = float(cosines(np.asarray(W, dtype=np.float64)[members], side).max())
                zetas.append(1.0 - max(worst, 0.0) ** 2)
    lengths = np.linalg.norm(points, axis=1)
    return AlignmentConstants(len(points), mu, mu**2, min(zetas), float(lengths.min()), float(lengths.max()))


def check_path(path: ArrayLike, n_plus: int, n_minus: int) -> Ints:
    """Return a path of counts `(L + 1, 2)` = (k_+, k_-) after checking it against the definition of Appendix C.

    Raises ValueError unless k_+ never falls, k_- never rises, every step changes either, (0, 0) is absent, and the end
    is (n_plus, 0).
    """
    counts = np.asarray(path, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[1] != 2 or not len(counts):
        raise ValueError(f"a path has the shape (L + 1, 2), not {counts.shape}")
    steps = np.diff(counts, axis=0)
    if (steps[:, 0] < 0).any() or (steps[:, 1] > 0).any() or (steps == 0).all(axis=1).any():
        raise ValueError("along a path k_+ does not fall, k_- does not rise, and one of them changes")
    if (counts.sum(axis=1) == 0).any() or tuple(counts[-1]) != (n_plus, 0):
        raise ValueError(f"a path avoids (0, 0) and ends at ({n_plus}, 0)")
    return counts


def maximal_path(n_plus: int, n_minus: int) -> Ints:
    """Return P_max: (0, n_-), ..., (0, 1), (1, 1), (1, 0), ..., (n_+, 0) of n_+ + n_- edges, `(n_+ + n_- + 1, 2)`.

    Raises ValueError unless both counts are at least 1.
    """
    if min(n_plus, n_minus) < 1:
        raise ValueError("the maximal path needs a point of either label")
    down = [(0, k) for k in range(n_minus, 0, -1)]
    return np.array([*down, (1, 1), *((k, 0) for k in range(1, n_plus + 1))], dtype=np.int64)


def edge_times(path: ArrayLike, rate: float) -> Floats:
    """Return the bound `4 / (rate (k_+ + k_-))` on the time of every edge (L,) of a path `(L + 1, 2)`."""
    counts = np.asarray(path, dtype=np.int64)
    times: Floats = 4.0 / (rate * counts[:-1].sum(axis=1))
    return times


def travel_time(path: ArrayLike, rate: float) -> float:
    """Return T(P), the sum of `edge_times`."""
    return float(edge_times(path, rate).sum())


def correspondence(path: ArrayLike, n_plus: int, n_minus: int) -> Ints:
    """Return for every edge (L,) of a path the edge of P_max that bounds it (Figures 16 and 17), each used once.

    An edge that loses a negative point goes to the vertical edge of P_max from the same k_-, one that gains a positive
    point to the horizontal edge from the same k_+: these start with no more active points, so they take at
    least as long. Raises ValueError as `check_path` does.
    """
    counts = check_path(path, n_plus, n_minus)
    # edges of P_max: 0..n_- - 2 lose (k_- = n_-, ..., 2), n_- - 1 gains from (0, 1), n_- loses (1, 1), the rest gain
    edges = []
    for (plus, minus), (_, after) in pairwise(counts.tolist()):
        if after < minus:
            edges.append(n_minus - minus if minus > 1 else n_minus)
        else:
            edges.append(n_minus - 1 if plus == 0 else n_minus + plus)
    return np.array(edges, dtype=np.int64)
