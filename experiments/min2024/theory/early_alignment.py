"""Times of Min et al. 2024, Theorem 1, with the constants of its proof (Appendices C and D).

Times belong to gradient flow on the *sum* of the losses over the samples; on the mean, multiply by n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import cosines, directions

from .cones import centres, least_correlation


@dataclass(frozen=True)
class AlignmentConstants:
    """Constants of the data in the bounds (and, for `zeta`, of the initial directions)."""

    n: int
    mu: float
    zeta: float
    """The smaller of zeta_1 (Lemma 8) and zeta_2 (Assumption 2). The text prints max, the proof needs both."""
    x_min: float

    @property
    def xi(self) -> float:
        """Lemma 9: vectors of the cone K and those outside S_+ and S_- have cosines up to `sqrt(1 - xi)`; `mu^2`."""
        return self.mu**2

    @property
    def rate(self) -> float:
        """`min(zeta, xi) sqrt(mu) X_min`: an edge of a path takes at most 4 over this and the active points."""
        return float(min(self.zeta, self.xi) * np.sqrt(self.mu) * self.x_min)

    @property
    def t1(self) -> float:
        """The bound on the alignment, `16 log n / rate`."""
        return float(16.0 * np.log(self.n) / self.rate)


def alignment_constants(x: Floats, y: Floats, W: Floats, v: Floats) -> AlignmentConstants:
    """Return the constants for inputs `x (n, d)`, labels `y (n,)`, initial neurons `W (m, d)` and weights `v (m,)`.

    With `u_i = y_i x_i / ||x_i||`: the cone K is spanned by the u_i, and the cosine to u_i is least on K at one of
    them, so `xi = mu^2`; the ball around x_+ (x_-) stays in S_+ (S_-) up to `zeta_1 = min_i cos^2(x_+-, u_i)`.
    """
    u = directions(x) * np.sign(y)[:, None]
    x_plus, x_minus = centres(x, y)
    zetas = [float((cosines(u, side) ** 2).min()) for side in (x_plus, -x_minus) if side.any()]
    for side, members in ((x_minus, v > 0), (x_plus, v < 0)):
        if side.any() and members.any():
            zetas.append(1.0 - max(float(cosines(W[members], side).max()), 0.0) ** 2)
    return AlignmentConstants(
        len(x), least_correlation(x, y), min(zetas), float(np.linalg.norm(x, axis=1).min())
    )


def is_path(counts: Ints, n_plus: int, n_minus: int) -> bool:
    """Return whether counts `(L + 1, 2)` = (k_+, k_-) are a path of Appendix C.

    k_+ never falls, k_- never rises, every step changes either, (0, 0) is absent, and the end is (n_plus, 0).
    """
    gains, losses = np.diff(counts, axis=0).T
    steps = (gains >= 0) & (losses <= 0) & (gains != losses)
    return bool(steps.all() and counts.any(axis=1).all() and tuple(counts[-1]) == (n_plus, 0))


def maximal_path(n_plus: int, n_minus: int) -> Ints:
    """Return P_max: (0, n_-), ..., (0, 1), (1, 1), (1, 0), ..., (n_+, 0) of n_+ + n_- edges, `(n_+ + n_- + 1, 2)`."""
    down = [(0, k) for k in range(n_minus, 0, -1)]
    return np.array([*down, (1, 1), *((k, 0) for k in range(1, n_plus + 1))], dtype=np.int64)


def edge_times(path: Ints, rate: float) -> Floats:
    """Return the bound `4 / (rate (k_+ + k_-))` on the time of every edge (L,) of a path `(L + 1, 2)`; T(P) in all."""
    return np.asarray(4.0 / (rate * path[:-1].sum(axis=1)))


def correspondence(path: Ints, n_minus: int) -> Ints:
    """Return for every edge (L,) of a path the edge of P_max that bounds it (Figures 16 and 17), each used once.

    An edge that loses a negative point goes to the vertical edge of P_max from the same k_-, one that gains a positive
    point to the horizontal edge from the same k_+: these start with no more active points, so they take at
    least as long.
    """
    plus, minus = path[:-1].T
    # edges of P_max: 0..n_- - 2 lose (k_- = n_-, ..., 2), n_- - 1 gains from (0, 1), n_- loses (1, 1), the rest gain
    loses = np.where(minus > 1, n_minus - minus, n_minus)
    gains = np.where(plus == 0, n_minus - 1, n_minus + plus)
    return np.where(np.diff(path[:, 1]) < 0, loses, gains)
