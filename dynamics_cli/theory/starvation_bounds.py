"""Bounds on the confidence in a starved feature (Tachet des Combes et al. 2018, Theorems 6.1 and D.2, Table 1).

At the time t* at which the frequent feature has confidence `1 - delta`, `z* alpha* = L = log((1 - delta) / delta)`, and
`P((0, x_2)) = sigmoid(z* beta*)`. Since `beta' <= lambda alpha'` while `beta >= 0`, `beta* <= beta0 + lambda (alpha* -
alpha0)`, hence the exponent `lambda L + z* (beta0 - lambda alpha0)`. Theorem D.2 prints `beta0 - alpha0` there; that
bound is violated. With features of different norms lambda stands for `lambda ||x_2||^2 / ||x_1||^2` in all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.arguments import as_finite, as_positive
from dynamics_cli.theory.confidence_times import required_logit

TABLE_1_CONFIDENCES = (0.99, 0.9999)
"""Rows of Table 1: `1 - delta` (the table's column is labelled delta)."""
TABLE_1_LAMBDAS = (0.5, 0.2, 0.1, 0.01)
"""Columns of Table 1."""


def effective_lambda(lambda_: ArrayLike, norm1: ArrayLike = 1.0, norm2: ArrayLike = 1.0) -> Floats:
    """Return `lambda ||x_2||^2 / ||x_1||^2`, what the bounds need instead of lambda when the norms differ.

    Arguments broadcast. Raises ValueError for a lambda that is negative or norms that are not positive.
    """
    share = as_finite(lambda_, "lambda_")
    if (share < 0).any():
        raise ValueError("lambda must not be negative")
    return np.asarray(share * (as_positive(norm2, "norm2") / as_positive(norm1, "norm1")) ** 2)


def simple_bound(delta: ArrayLike, lambda_: ArrayLike) -> Floats:
    """Return `sigmoid(lambda log((1 - delta) / delta))` (Eq. 7); it holds when `alpha0 >= beta0 / lambda`.

    Arguments broadcast. Raises ValueError unless `0 < delta < 1` and lambda is not negative.
    """
    return np.asarray(expit(effective_lambda(lambda_) * required_logit(delta)))


def printed_bound(
    delta: ArrayLike, lambda_: ArrayLike, alpha0: ArrayLike, beta0: ArrayLike, z_star: ArrayLike
) -> Floats:
    """Return Theorem D.2 as printed, `sigmoid(lambda L + z* (beta0 - alpha0))`; it can be violated.

    For `beta0 < 0` it is Eq. 7. `z_star` is the output weight at t*. Arguments broadcast.
    Raises ValueError as `simple_bound`.
    """
    return _bound(delta, lambda_, as_finite(beta0, "beta0") - as_finite(alpha0, "alpha0"), beta0, z_star)


def corrected_bound(
    delta: ArrayLike, lambda_: ArrayLike, alpha0: ArrayLike, beta0: ArrayLike, z_star: ArrayLike
) -> Floats:
    """Return what the proof of Theorem D.2 gives, `sigmoid(lambda L + z* (beta0 - lambda alpha0))`.

    For `beta0 < 0` it is Eq. 7, which the theorem rightly keeps. `lambda_` is the effective one when norms differ.
    Arguments broadcast. Raises ValueError as `simple_bound`.
    """
    lead = as_finite(beta0, "beta0") - effective_lambda(lambda_) * as_finite(alpha0, "alpha0")
    return _bound(delta, lambda_, lead, beta0, z_star)


def assumed_z_star(delta: ArrayLike) -> Floats:
    """Return `sqrt(log((1 - delta) / delta))`, the output weight at t* if `z* = alpha*` (assumed for Fig. 6).

    Raises ValueError unless `0 < delta < 1/2`, where the logit is positive.
    """
    return np.asarray(np.sqrt(as_positive(required_logit(delta), "log((1 - delta) / delta)")))


def table_1() -> Floats:
    """Return Eq. 7 in percent, shape (2, 4), for the confidences and lambdas of Table 1."""
    delta = 1.0 - np.array(TABLE_1_CONFIDENCES)
    return 100.0 * simple_bound(delta[:, None], np.array(TABLE_1_LAMBDAS))


def _bound(delta: ArrayLike, lambda_: ArrayLike, lead: Floats, beta0: ArrayLike, z_star: ArrayLike) -> Floats:
    exponent = effective_lambda(lambda_) * required_logit(delta)
    extra = np.where(np.asarray(beta0) < 0, 0.0, as_finite(z_star, "z_star") * lead)
    return np.asarray(expit(exponent + extra))
