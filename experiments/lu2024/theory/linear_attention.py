"""Reduced linear attention on regression in context: errors at finite size, and in the limit.

The output is `<Gamma, H>` for the features `H = x_q v^T`, `v = [(d/N) sum_n y_n x_n, (1/N) sum_n
y_n^2]` (`averaged` of `in_context_regression`), of N pairs with `x ~ N(0, I/d)`, noise of variance
rho and tasks w of length sqrt(d). The limit is that of d with fixed `alpha = N/d`, `kappa = k/d`
for k tasks, and `tau = n/d^2` for n sequences; `x = (1 + rho) / alpha`. Its formulas
broadcast over their arguments.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from dynamics_cli.measures.arrays import Floats


def expected_error(Gamma: Floats, N: int, rho: float, mean: Floats, moment: Floats) -> float:
    """Return the expected squared error of `Gamma` (d, d + 1), exact at finite d and N.

    Tasks have the given mean (d,) and second moment (d, d): 0 and I are new tasks, in context
    learning; those of the k tasks of training are the distribution of training.
    """
    d = len(mean)
    square = 1 + rho  # mean of y^2
    with_task = np.vstack([moment, square * mean])  # (d + 1, d), E[v w^T]
    second = np.empty((d + 1, d + 1))  # E[v v^T]
    second[:d, :d] = d * square / N * np.eye(d) + (1 + 1 / N) * moment
    second[:d, d] = square * (1 + 2 / N) * mean
    second[d, :d] = second[:d, d]
    second[d, d] = square**2 * (1 + 2 / N)
    explained = 2 * np.trace(Gamma @ with_task) - np.sum((Gamma @ second) * Gamma)
    return float(rho + (np.trace(moment) - explained) / d)


def resolvent(x: float, kappa: float) -> tuple[float, float]:
    """Return `M_kappa(x) = lim (1/d) tr (R + x I)^-1` and its derivative, R the second moment of
    the tasks.

    M is the positive root of `(x/kappa) M^2 + (x + 1 - 1/kappa) M = 1`. An infinite kappa is `R =
    I`.
    """
    linear = x + 1 - 1 / kappa
    root = np.sqrt(linear**2 + 4 * x / kappa)
    M = 2 / (linear + root)
    return float(M), float(-M * (1 + M / kappa) / root)


@np.vectorize
def new_task_error(alpha: float, kappa: float, tau: float, rho: float) -> float:
    """Return the limit of `e_ICL`, the error on new tasks, without ridge."""
    x = (1 + rho) / alpha
    m, _ = resolvent(x, kappa)
    if tau < 1:
        mu = x * resolvent(x, kappa / tau)[0]
        fitted = 1 - tau * (1 - mu) ** 2 - mu * (x - rho) / x
        return float(tau * (1 + x) / (1 - tau) * fitted - 2 * tau * (1 - mu) + 1 + rho)
    excess = 1 / (tau - 1)
    K = 1 / (1 - kappa * (m / (kappa + m)) ** 2)
    by_tasks = (K - excess) * (1 + x) * (x * m) ** 2 + (3 - 2 * tau) * excess * m * x**2
    return float(by_tasks + x * ((1 + rho) * m * excess + 1) + rho * m * excess + rho)


@np.vectorize
def same_task_error(alpha: float, kappa: float, tau: float, rho: float) -> float:
    """Return the limit of `e_IDG`, the error on the tasks of training, without ridge."""
    x = (1 + rho) / alpha
    if tau > 1:
        m, _ = resolvent(x, kappa)
        return float(tau / (tau - 1) * (rho + x * (1 - x * m)))
    rest = 1 - tau
    mu = x * resolvent(x, kappa / tau)[0]
    xi = rest * x / (tau * mu)
    c = 1 / (1 - kappa / (1 + kappa * xi / rest) ** 2)
    noise = (rho + x - 2 * x * rest * (x / xi + 1)) / (rest - c * rest**2)
    return float(tau * ((x + xi) ** 2 / xi + noise))


@np.vectorize
def ridge_error(alpha: float, kappa: float, tau: float, rho: float, ridge: float) -> float:
    """Return the limit of `e_ICL` for the penalty `lambda ||Gamma||^2 / d` of squared errors.

    The renormalised ridge xi solves `1 - tau + tau lambda / xi = xi M_kappa(xi + x)`, whose right
    side rises from 0 to 1, and is at least `xi / (xi + x + 1)`.
    """
    x = (1 + rho) / alpha

    def balance(xi: float) -> float:
        return 1 - tau + tau * ridge / xi - xi * resolvent(xi + x, kappa)[0]

    xi = brentq(balance, ridge, 2 * ridge + 2 * (1 + x) / tau, xtol=1e-15, rtol=1e-13)
    nu = xi + x
    M, slope = resolvent(nu, kappa)
    kept = 1 - 2 * nu * M - nu**2 * slope
    c = (rho + nu - nu**2 * M - xi * kept) / (1 - 2 * xi * M - xi**2 * slope - tau)
    return float((1 + x) * (kept - c * (M + xi * slope)) - 2 * (1 - nu * M) + 1 + rho)


def bayes_gap(
    d: int, N: int, tasks: int, rho: float, draws: int, rng: np.random.Generator
) -> float:
    """Return the error on new tasks less that on the k tasks of the posterior mean over these k.

    The estimator is dMMSE; tasks are Gaussian, as in the released code, and both errors are means
    over `draws` contexts.
    """
    pool = rng.standard_normal((tasks, d))
    errors = []
    for w in (rng.standard_normal((draws, d)), pool[rng.integers(tasks, size=draws)]):
        x = rng.standard_normal((draws, N, d)) / np.sqrt(d)
        y = np.einsum("ntd,nd->nt", x, w) + np.sqrt(rho) * rng.standard_normal((draws, N))
        moments = np.einsum("nt,ntd->nd", y, x) @ pool.T  # (draws, k)
        squares = np.square(x @ pool.T).sum(1)
        estimate = softmax((moments - squares / 2) / rho, axis=1) @ pool
        errors.append(np.mean((estimate - w) ** 2))
    return float(errors[0] - errors[1])
