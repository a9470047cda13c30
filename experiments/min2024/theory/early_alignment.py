"""Times of Min et al. 2024, Theorem 1, with the constants of its proof (Appendices C and D).

Times belong to gradient flow on the *sum* of the losses over the samples; on the mean, multiply by
n.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.neurons import cosines, directions, norms

from .cones import centres, least_correlation


@dataclass(frozen=True)
class AlignmentConstants:
    """Constants of the data in the bounds (and, for `zeta`, of the initial directions)."""

    n: int
    mu: float
    zeta: float
    """The smaller of zeta_1 (Lemma 8) and zeta_2 (Assumption 2). The text prints max, the proof
    needs both.
    """
    x_min: float

    @property
    def xi(self) -> float:
        """Lemma 9: vectors of the cone K and those outside S_+ and S_- have cosines up to
        `sqrt(1 - xi)`; `mu^2`.
        """
        return self.mu**2

    @property
    def rate(self) -> float:
        """`min(zeta, xi) sqrt(mu) X_min`: an edge of a path takes at most 4 over this and the
        active points.
        """
        return float(min(self.zeta, self.xi) * np.sqrt(self.mu) * self.x_min)

    @property
    def t1(self) -> float:
        """The bound on the alignment, `16 log n / rate`."""
        return float(16.0 * np.log(self.n) / self.rate)


def alignment_constants(x: Floats, y: Floats, W: Floats, v: Floats) -> AlignmentConstants:
    """Return the constants for inputs `x (n, d)`, labels `y (n,)`, initial neurons `W (m, d)` and
    weights `v (m,)`.

    With `u_i = y_i x_i / ||x_i||`: the cone K is spanned by the u_i, and the cosine to u_i is least
    on K at one of them, so `xi = mu^2`; the ball around x_+ (x_-) stays in S_+ (S_-) up to `zeta_1
    = min_i cos^2(x_+-, u_i)`.
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


@dataclass(frozen=True)
class DataConstants:
    """Bounds of the proofs of Lemma 1 and of Theorem 1 for data `x (n, d)` and a balanced start
    of scale epsilon.
    """

    n: int
    mu: float
    scale: float
    """epsilon, of `W(0) = epsilon W_0`."""
    width: int
    """h"""
    x_min: float
    x_max: float
    w_min: float
    """Least, and largest, norm of a row of W_0."""
    w_max: float
    fewest: int
    """The smaller of n_+ and n_-."""

    @property
    def validity(self) -> float:
        """T of Lemma 1: `ln(1 / (sqrt(h) epsilon)) / (4 n X_max)`."""
        return float(np.log(1 / (np.sqrt(self.width) * self.scale)) / (4 * self.n * self.x_max))

    @property
    def norm(self) -> float:
        """`2 epsilon W_max^2 / sqrt(h)`, above all squared norms up to T (Lemma 3)."""
        return float(2 * self.scale * self.w_max**2 / np.sqrt(self.width))

    @property
    def output(self) -> float:
        """`2 epsilon sqrt(h) X_max W_max^2`, above |f| up to T (Lemma 3)."""
        return float(2 * self.scale * np.sqrt(self.width) * self.x_max * self.w_max**2)

    @property
    def largest(self) -> float:
        """`1 / (4 sqrt(h) X_max W_max^2)`, the largest epsilon of Lemmas 1 and 3."""
        return float(1 / (4 * np.sqrt(self.width) * self.x_max * self.w_max**2))

    def asked(self, alignment: AlignmentConstants) -> float:
        """Return log10 of the largest epsilon of Theorem 1 (Eq. 28), which float64 cannot hold."""
        least = min(alignment.mu, alignment.zeta, alignment.xi)
        share = least * np.sqrt(alignment.mu) * self.x_min / (self.n * self.x_max)
        return float(
            min(
                log_scale(alignment.t1, self.n, self.x_max, self.width),
                np.log10(self.largest * share),
            )
        )

    @property
    def deviation(self) -> float:
        """`4 epsilon n sqrt(h) X_max^2 W_max^2`, above the deviation from Eq. 4 up to T (Lemma
        1).
        """
        return 2 * self.n * self.x_max * self.output

    @property
    def alpha(self) -> float:
        """Of Theorem 1: `(mu X_min)^2 / (32 X_max)`."""
        return (self.mu * self.x_min) ** 2 / (32 * self.x_max)

    def t2(self, t1: float) -> float:
        """Return the bound of Eq. 39 on t_2 for a time `t1` of alignment."""
        root = np.sqrt(self.mu) * self.x_min
        start = np.log(2 / (self.scale**2 * root * self.w_min**2))
        return float(t1 + (6 + 4 * (start + 4 * self.n * self.x_max * t1)) / (root * self.fewest))


def log_scale(t1: float, n: int, x_max: float, width: int) -> float:
    """Return log10 of the largest epsilon for which T of Lemma 1 is `t1` or more."""
    return float(-(4 * n * x_max * t1 + np.log(np.sqrt(width))) / np.log(10.0))


def data_constants(x: Floats, y: Floats, W: Floats, scale: float) -> DataConstants:
    """Return the constants for inputs `x (n, d)`, labels `y (n,)` and initial neurons `W (m, d)`
    of a scale.
    """
    sizes = norms(x)
    shape = norms(W) / scale
    counts = [int(np.count_nonzero(y > 0)), int(np.count_nonzero(y <= 0))]
    return DataConstants(
        n=len(x),
        mu=least_correlation(x, y),
        scale=scale,
        width=len(W),
        x_min=float(sizes.min()),
        x_max=float(sizes.max()),
        w_min=float(shape.min()),
        w_max=float(shape.max()),
        fewest=min(counts),
    )


def turned(units: Floats, forces: Floats, spans: Floats) -> Floats:
    """Return directions `units (..., d)` after times `spans (..., 1)` under constant `forces (...,
    d)`, by Eq. 4.

    A direction moves on a great circle towards E, the direction of its force of size F: its part
    along E is `tanh(artanh <E, w> + F t)`. Without a force, or with one along E, it stays.
    """
    sizes = np.linalg.norm(forces, axis=-1, keepdims=True)
    ends = forces / np.where(sizes > 0, sizes, 1.0)
    along = np.sum(units * ends, axis=-1, keepdims=True)
    across = units - along * ends
    width = np.linalg.norm(across, axis=-1, keepdims=True)
    moves = width > 0
    sides = across / np.where(moves, width, 1.0)
    angle = np.arcsinh(along / np.where(moves, width, 1.0)) + sizes * spans
    result = np.tanh(angle) * ends + sides / np.cosh(angle)
    return np.where(moves & (sizes > 0), result, units)


def is_path(counts: Ints, n_plus: int, n_minus: int) -> bool:
    """Return whether counts `(L + 1, 2)` = (k_+, k_-) are a path of Appendix C.

    k_+ never falls, k_- never rises, every step changes either, (0, 0) is absent, and the end is
    (n_plus, 0).
    """
    gains, losses = np.diff(counts, axis=0).T
    steps = (gains >= 0) & (losses <= 0) & (gains != losses)
    return bool(steps.all() and counts.any(axis=1).all() and tuple(counts[-1]) == (n_plus, 0))


def maximal_path(n_plus: int, n_minus: int) -> Ints:
    """Return P_max: (0, n_-), ..., (0, 1), (1, 1), (1, 0), ..., (n_+, 0) of n_+ + n_- edges,
    `(n_+ + n_- + 1, 2)`.
    """
    down = [(0, k) for k in range(n_minus, 0, -1)]
    return np.array([*down, (1, 1), *((k, 0) for k in range(1, n_plus + 1))], dtype=np.int64)


def edge_times(path: Ints, rate: float) -> Floats:
    """Return the bound `4 / (rate (k_+ + k_-))` on the time of every edge (L,) of a path `(L +
    1, 2)`; T(P) in all.
    """
    return np.asarray(4.0 / (rate * path[:-1].sum(axis=1)))


def longest_times(n_plus: int, n_minus: int) -> Floats:
    """Return the largest travel time that any path from each (k_+, k_-) to (n_+, 0) has, `(n_+ + 1,
    n_- + 1)`.

    In units of `4 / rate`, over all paths: each edge goes to any point with no fewer positive and
    no more negative points, but (0, 0); such a time is that of the edge and the longest from its
    end. -inf for (0, 0).
    """
    longest = np.full((n_plus + 1, n_minus + 1), -np.inf)
    longest[n_plus, 0] = 0.0
    for minus, plus in product(range(n_minus + 1), range(n_plus, -1, -1)):
        further = longest[plus:, : minus + 1].copy()
        further[0, minus] = -np.inf  # an edge changes either count
        if (plus, minus) not in {(0, 0), (n_plus, 0)}:
            longest[plus, minus] = 1.0 / (plus + minus) + further.max()
    return longest


def correspondence(path: Ints, n_minus: int) -> Ints:
    """Return for every edge (L,) of a path the edge of P_max that bounds it (Figures 16 and 17),
    each used once.

    An edge that loses a negative point goes to the vertical edge of P_max from the same k_-, one
    that gains a positive point to the horizontal edge from the same k_+: these start with no more
    active points, so they take at least as long.
    """
    plus, minus = path[:-1].T
    # edges of P_max: 0..n_- - 2 lose (k_- = n_-, ..., 2), n_- - 1 gains from (0, 1), n_- loses (1,
    # 1), the rest gain
    loses = np.where(minus > 1, n_minus - minus, n_minus)
    gains = np.where(plus == 0, n_minus - 1, n_minus + plus)
    return np.where(np.diff(path[:, 1]) < 0, loses, gains)
