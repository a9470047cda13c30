"""Gradient starvation: a frequent and a rare feature, and bounds on the confidence in the rare one.

Section 6, Eqs. 7 and 8, Theorems 6.1 and D.2, Table 1 of Tachet des Combes et al. 2018.

All points of class D_1 contain the feature `x_1`, a share lambda of them also `x_2`. With `alpha = w (x_1, 0)`,
`beta = w (0, x_2)` and output weight z,

    alpha' = z (lambda / (1 + exp(z (alpha + beta))) + (1 - lambda) / (1 + exp(z alpha))),
    beta'  = z lambda / (1 + exp(z (alpha + beta))),
    z'     = lambda (alpha + beta) / (1 + exp(z (alpha + beta))) + (1 - lambda) alpha / (1 + exp(z alpha)).    (Eq. 8)

Both features have norm 1, and time is (learning rate) x (updates) with samples of the class. `alpha^2 + beta^2 - z^2`
is conserved.

At the time t* at which the frequent feature has confidence `1 - delta`, `z* alpha* = L = log((1 - delta) / delta)`, and
`P((0, x_2)) = sigmoid(z* beta*)`. Since `beta' <= lambda alpha'` while `beta >= 0`, `beta* <= beta0 + lambda (alpha* -
alpha0)`, hence the exponent `lambda L + z* (beta0 - lambda alpha0)`. Theorem D.2 prints `beta0 - alpha0` there; that
bound is violated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit

from dynamics_cli.measures.arrays import Floats

from .confidence_times import required_logit

RTOL, ATOL = 1e-12, 1e-15
TABLE_1_CONFIDENCES = (0.99, 0.9999)
"""Rows of Table 1: `1 - delta` (the table's column is labelled delta)."""
TABLE_1_LAMBDAS = (0.5, 0.2, 0.1, 0.01)
"""Columns of Table 1."""


@dataclass(frozen=True)
class StarvationPath:
    """The neuron at times, or at the instants at which training stops; all arrays have one shape."""

    t: Floats
    alpha: Floats
    beta: Floats
    z: Floats

    @property
    def frequent(self) -> Floats:
        """Confidence on `(x_1, 0)`, `sigmoid(z alpha)`."""
        return np.asarray(expit(self.z * self.alpha))

    @property
    def rare(self) -> Floats:
        """Confidence on `(0, x_2)` alone, `sigmoid(z max(0, beta))`."""
        return np.asarray(expit(self.z * np.maximum(self.beta, 0.0)))


def starvation_path(t: ArrayLike, alpha0: float, beta0: float, z0: float, lambda_: float) -> StarvationPath:
    """Integrate Eq. 8 (relative tolerance 1e-12) and return the neuron at ascending times `t (T,)`, the last above 0.

    Raises ValueError for starts that are not active on the class: needed are `alpha0 > 0`, `alpha0 + beta0 > 0` and
    `z0 > 0`.
    """
    start, times = _active(alpha0, beta0, z0), np.asarray(t, np.float64)

    def field(_: float, state: Floats) -> Floats:
        alpha, beta, z = state
        both, alone = lambda_ * expit(-z * (alpha + beta)), (1.0 - lambda_) * expit(-z * alpha)
        return _velocity(state, both, alone)

    path = solve_ivp(field, (0.0, float(times[-1])), start, t_eval=times, method="DOP853", rtol=RTOL, atol=ATOL)
    return StarvationPath(times, *path.y)


def stopping_points(
    delta: ArrayLike, alpha0: ArrayLike, beta0: ArrayLike, z0: ArrayLike, lambda_: ArrayLike
) -> StarvationPath:
    """Return the neuron when training stops, `t*` of Theorem 6.1: the first time with `sigmoid(z alpha) = 1 - delta`.

    All arguments broadcast; all cases are integrated at once (relative tolerance 1e-12), in the variable `ln(z alpha)`,
    which ascends from the start to `ln log((1 - delta) / delta)` at t* however far away that time is. At t* every point
    of D_1 has the confidence if `beta >= 0`. Raises ValueError unless every confidence exceeds that at the start, and
    as `starvation_path`.
    """
    arrays = np.broadcast_arrays(required_logit(delta), alpha0, beta0, z0, lambda_)
    shape, (level, *neuron, share) = arrays[0].shape, (array.ravel() for array in arrays)
    start = _active(*neuron)
    first = start[2] * start[0]
    if not (level > first).all():
        raise ValueError("every confidence 1 - delta must exceed that at the start")
    span = np.log(level) - np.log(first)

    def field(_: float, flat: Floats) -> Floats:
        state = flat.reshape(4, -1)[:3]
        alpha, beta, z = state
        logit = z * alpha
        # everything times 1 + exp(z alpha), which neither vanishes nor overflows
        ratio = np.exp(log_expit(-logit - z * beta) - log_expit(-logit))
        slow = _velocity(state, share * ratio, 1.0 - share)
        pace = span * logit / (slow[0] * z + slow[2] * alpha)
        return np.concatenate([slow * pace, ((1.0 + np.exp(logit)) * pace)[None]]).ravel()

    initial = np.concatenate([start, np.zeros((1, level.size))]).ravel()
    end = solve_ivp(field, (0.0, 1.0), initial, method="DOP853", rtol=RTOL, atol=ATOL).y[:, -1].reshape(4, *shape)
    return StarvationPath(t=end[3], alpha=end[0], beta=end[1], z=end[2])


def _velocity(state: Floats, both: Floats, alone: Floats) -> Floats:
    """Return `(alpha', beta', z')` for the shares of points with both features and with one, damped already."""
    alpha, beta, z = state
    return np.stack([z * (both + alone), z * both, (alpha + beta) * both + alpha * alone])


def _active(alpha0: ArrayLike, beta0: ArrayLike, z0: ArrayLike) -> Floats:
    """Return the start `(3, ...)`; raises ValueError where the neuron is not active on the class."""
    start = np.array([alpha0, beta0, z0], np.float64)
    if not ((start[0] > 0) & (start[0] + start[1] > 0) & (start[2] > 0)).all():
        raise ValueError("need alpha0 > 0, alpha0 + beta0 > 0 and z0 > 0: the neuron must be active on the class")
    return start


def simple_bound(delta: ArrayLike, lambda_: ArrayLike) -> Floats:
    """Return `sigmoid(lambda log((1 - delta) / delta))` (Eq. 7); it holds when `alpha0 >= beta0 / lambda`.

    Arguments broadcast.
    """
    return np.asarray(expit(np.multiply(lambda_, required_logit(delta))))


def printed_bound(
    delta: ArrayLike, lambda_: ArrayLike, alpha0: ArrayLike, beta0: ArrayLike, z_star: ArrayLike
) -> Floats:
    """Return Theorem D.2 as printed, `sigmoid(lambda L + z* (beta0 - alpha0))`; it can be violated.

    For `beta0 < 0` it is Eq. 7. `z_star` is the output weight at t*. Arguments broadcast.
    """
    return _bound(delta, lambda_, np.subtract(beta0, alpha0), beta0, z_star)


def corrected_bound(
    delta: ArrayLike, lambda_: ArrayLike, alpha0: ArrayLike, beta0: ArrayLike, z_star: ArrayLike
) -> Floats:
    """Return the bound of the proof of Theorem D.2, `sigmoid(lambda L + z* (beta0 - lambda alpha0))`.

    For `beta0 < 0` it is Eq. 7, which the theorem rightly keeps. Arguments broadcast.
    """
    return _bound(delta, lambda_, np.subtract(beta0, np.multiply(lambda_, alpha0)), beta0, z_star)


def assumed_z_star(delta: ArrayLike) -> Floats:
    """Return `sqrt(log((1 - delta) / delta))`, the output weight at t* if `z* = alpha*` (assumed for Fig. 6)."""
    return np.asarray(np.sqrt(required_logit(delta)))


def table_1() -> Floats:
    """Return Eq. 7 in percent, shape (2, 4), for the confidences and lambdas of Table 1."""
    delta = 1.0 - np.array(TABLE_1_CONFIDENCES)
    return 100.0 * simple_bound(delta[:, None], np.array(TABLE_1_LAMBDAS))


def _bound(delta: ArrayLike, lambda_: ArrayLike, lead: Floats, beta0: ArrayLike, z_star: ArrayLike) -> Floats:
    exponent = np.multiply(lambda_, required_logit(delta))
    extra = np.where(np.asarray(beta0) < 0, 0.0, np.multiply(z_star, lead))
    return np.asarray(expit(exponent + extra))
