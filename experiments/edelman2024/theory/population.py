"""The minimal model on infinitely many chains: the level of its start, and its first growth.

A chain has the transition matrix P, and its first symbol is uniform. At `W = 0` and `v = 0` the
outputs are 0 and, to first order, linear in W, with the average `(A x)_s = sum_{j <= s} x_j / (s +
1)`. Then

    -dL/dW_ab = mean_t E[1(x_t = a) sum_{s <= t} (A x)_{s,b} (1(x_{t+1} = x_s) - 1/k)],

the same number `diagonal` for all a = b and `off_diagonal` for all others, where the law of P does
not change when symbols are renamed. The derivative by v is linear in W, too:

    -dL/dv_m = (W_aa - W_ab) D_m,
    D_m = mean_t sum_{s <= t} 1/(s+1) (f_t(s, s - m) - mean_{j <= s} f_t(s, j)),
    f_t(s, j) = E[1(x_t = x_j) (1(x_{t+1} = x_s) - 1/k)],

the first part for m <= s. So n updates with small steps eta of W and eta_v of v give `W_aa = n eta
diagonal` and `v_m = n (n - 1) / 2 eta eta_v (diagonal - off_diagonal) D_m`. Expectations are sums
over powers of P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad

from dynamics_cli.measures.arrays import Floats


@dataclass(frozen=True)
class Growth:
    """Minus the gradient of the population loss at the start: `diagonal` and `off_diagonal` of W,
    and D (T,) of v, by the lag, for each unit of `W_aa - W_ab`.
    """

    diagonal: float
    off_diagonal: float
    D: Floats

    @property
    def lags(self) -> Floats:
        """Return the factors (T,) of `n (n - 1) / 2 eta eta_v` in v."""
        return np.asarray((self.diagonal - self.off_diagonal) * self.D)


def _nodes(T: int) -> tuple[Floats, Floats]:
    """Return nodes on [0, 1] and weights, which sum to 1, that integrate polynomials of degree T +
    1 exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(T // 2 + 2)
    return (nodes + 1) / 2, weights / 2


def two_symbols(T: int) -> tuple[Floats, Floats]:
    """Return matrices (B, 2, 2) with rows `(1 - a, a)`, `(b, 1 - b)`, and weights (B,) of a mean
    over uniform a and b, exact for chains of T + 1 symbols: Gauss-Legendre quadrature.
    """
    nodes, weights = _nodes(T)
    a, b = (grid.ravel() for grid in np.meshgrid(nodes, nodes))
    rows = [np.stack([1 - a, a], -1), np.stack([b, 1 - b], -1)]
    return np.stack(rows, 1), np.outer(weights, weights).ravel()


def two_doubly_stochastic(T: int) -> tuple[Floats, Floats]:
    """Return the same of doubly stochastic matrices, for which b = a."""
    a, weights = _nodes(T)
    rows = [np.stack([1 - a, a], -1), np.stack([a, 1 - a], -1)]
    return np.stack(rows, 1), weights


def growth(P: Floats, weights: Floats, T: int) -> Growth:
    """Return the growth on chains of T + 1 symbols whose matrices (B, k, k) have such weights (B,),
    which sum to 1.
    """
    k = P.shape[-1]
    powers = np.empty((T + 1, *P.shape))
    powers[0] = np.eye(k)
    for n in range(T):
        powers[n + 1] = powers[n] @ P
    sums = np.cumsum(powers, 0)  # sums[n] = I + P + ... + P^n
    laws = powers.mean(-2)  # (T + 1, B, k), of x_j
    returns = np.einsum("nbuu->nbu", sums)

    # f[s, m], sum over t >= s of f_t(s, s - m)
    f = np.zeros((T, T))
    pairs = 0.0
    for s in range(T):
        after = T - 1 - s
        follows = np.einsum("buc,bcu->bcu", P, sums[after])
        pairs += np.sum(weights[:, None] * laws[s] * (returns[after + 1] - 1)) - (after + 1) / k
        for m in range(s + 1):
            first = laws[s - m]
            same = returns[after + m]
            if m:
                same = same - returns[m - 1]
            both = np.einsum("b,bu,buc,bcu->", weights, first, powers[m], follows)
            f[s, m] = both - np.sum(weights[:, None] * first * same) / k
    f /= T
    pairs /= T

    lengths = np.arange(1, T + 1)
    means = f.sum(1) / lengths
    trace = means.sum()  # of -dL/dW; `pairs` is the sum of all its entries
    seen = np.tri(T, dtype=bool)  # m <= s
    D = np.where(seen, (f - means[:, None]) / lengths[:, None], 0.0).sum(0)
    return Growth(float(trace / k), float((pairs - trace) / (k * (k - 1))), D)


def entropy_of_rows() -> float:
    """Return the mean entropy of the row of the last symbol, in nats, for two symbols and uniform
    rows: `2 int_0^1 h(a) (1 - a log(1 + 1/a)) da`, h the entropy of (a, 1 - a).

    The stationary law has `b / (a + b)` on the first symbol.
    """

    def integrand(a: float) -> float:
        h = -a * np.log(a) - (1 - a) * np.log(1 - a)
        return float(2 * h * (1 - a * np.log(1 + 1 / a)))

    return float(quad(integrand, 0, 1)[0])


def batch_error(n: int) -> float:
    """Return the standard deviation of the mean entropy rate of n chains, for two symbols and
    uniform rows: what differs among batches of n chains for the network that predicts by the true
    rows; the loss of another network varies otherwise.

    The entropy rate is `(b h(a) + a h(b)) / (a + b)`.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    a, b = np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2)
    joint = np.outer(weights, weights) / 4

    def h(p: Floats) -> Floats:
        return np.asarray(-p * np.log(p) - (1 - p) * np.log(1 - p))

    rate = (b * h(a) + a * h(b)) / (a + b)
    variance = np.sum(joint * rate**2) - np.sum(joint * rate) ** 2
    return float(np.sqrt(variance / n))
