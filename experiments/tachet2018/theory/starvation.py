"""Gradient starvation: a frequent and a rare feature, and bounds on the confidence in the rare one.

Section 6, Eqs. 7 and 8, Theorems 6.1 and D.2, Table 1 of Tachet des Combes et al. 2018.

All points of class D_1 contain the feature `x_1`, a share lambda of them also `x_2`. With `alpha =
w (x_1, 0)`, `beta = w (0, x_2)` and output weight z,

    alpha' = z (lambda / (1 + exp(z (alpha + beta))) + (1 - lambda) / (1 + exp(z alpha))), beta'  =
    z lambda / (1 + exp(z (alpha + beta))), z'     = lambda (alpha + beta) / (1 + exp(z (alpha +
    beta))) + (1 - lambda) alpha / (1 + exp(z alpha)).    (Eq. 8)

Both features have norm 1, and time is (learning rate) x (updates) with samples of the class.
`alpha^2 + beta^2 - z^2` is conserved.

At the time t* at which the frequent feature has confidence `1 - delta`, `z* alpha* = L = log((1 -
delta) / delta)`, and `P((0, x_2)) = sigmoid(z* beta*)`. Since `beta' <= lambda alpha'` while `beta
>= 0`, `beta* <= beta0 + lambda (alpha* - alpha0)`, hence the exponent `lambda L + z* (beta0 -
lambda alpha0)`. Theorem D.2 prints `beta0 - alpha0` there; that bound is violated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit

from dynamics_cli.measures.arrays import Floats

from .confidence_times import required_logit

RTOL = 1e-12
ATOL = 1e-15


@dataclass(frozen=True)
class Neuron:
    """The neuron at times, or at the instants at which training stops; all arrays have one
    shape.
    """

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


def starvation_path(t: Floats, start: Floats, lambda_: float) -> Neuron:
    """Integrate Eq. 8 (relative tolerance 1e-12) and return the neuron at ascending times `t (T,)`,
    the last above 0.

    `start (3,)` is alpha0, beta0 and z0, active on the class: `alpha0 > 0`, `alpha0 + beta0 > 0`
    and `z0 > 0`.
    """

    def field(_: float, state: Floats) -> Floats:
        alpha, beta, z = state
        return _velocity(
            state, lambda_ * expit(-z * (alpha + beta)), (1.0 - lambda_) * expit(-z * alpha)
        )

    return Neuron(
        *solve_ivp(field, (0.0, t[-1]), start, t_eval=t, method="DOP853", rtol=RTOL, atol=ATOL).y
    )


def stopping_points(delta: ArrayLike, start: Iterable[ArrayLike], lambda_: ArrayLike) -> Neuron:
    """Return the neuron when training stops, `t*` of Theorem 6.1: the first time with `sigmoid(z
    alpha) = 1 - delta`.

    Arguments broadcast, `start` is as in `starvation_path`. All cases are integrated at once
    (relative tolerance 1e-12), in the variable `ln(z alpha)`, which ascends from the start to `ln
    log((1 - delta) / delta)` at t* however far away that time is. At t* every point of D_1 has the
    confidence if `beta >= 0`. Raises ValueError where the start has the confidence already.
    """
    arrays = np.broadcast_arrays(required_logit(delta), lambda_, *start)
    shape = arrays[0].shape
    level, share, *neuron = (array.ravel() for array in arrays)
    if not (level > neuron[2] * neuron[0]).all():
        raise ValueError("every confidence 1 - delta must exceed that at the start")
    span = np.log(level) - np.log(neuron[2] * neuron[0])

    def field(_: float, flat: Floats) -> Floats:
        alpha, beta, z = state = flat.reshape(3, -1)
        logit = z * alpha
        # everything times 1 + exp(z alpha), which neither vanishes nor overflows
        slow = _velocity(
            state, share * np.exp(log_expit(-logit - z * beta) - log_expit(-logit)), 1.0 - share
        )
        return np.ravel(slow * (span * logit / (slow[0] * z + slow[2] * alpha)))

    end = solve_ivp(field, (0.0, 1.0), np.ravel(neuron), method="DOP853", rtol=RTOL, atol=ATOL).y[
        :, -1
    ]
    return Neuron(*end.reshape(3, *shape))


def _velocity(state: Floats, both: Floats, alone: Floats) -> Floats:
    """Return `(alpha', beta', z')` for the shares of points with both features and with one,
    damped already.
    """
    alpha, beta, z = state
    return np.stack([z * (both + alone), z * both, (alpha + beta) * both + alpha * alone])


def simple_bound(delta: ArrayLike, lambda_: ArrayLike) -> Floats:
    """Return `sigmoid(lambda log((1 - delta) / delta))` (Eq. 7); it holds where `alpha0 >= beta0
    / lambda`.
    """
    return np.asarray(expit(np.multiply(lambda_, required_logit(delta))))


def theorem_d2(
    delta: ArrayLike,
    lambda_: ArrayLike,
    start: Iterable[ArrayLike],
    z_star: ArrayLike,
    *,
    printed: bool,
) -> Floats:
    """Return the bound of Theorem D.2 for `beta0 > 0`: `sigmoid(lambda L + z* (beta0 - lambda
    alpha0))`.

    That is the bound of the proof; `printed` has `beta0 - alpha0` and can be violated. Arguments
    broadcast, `start` is as in `starvation_path` and `z_star` the output weight at t*.
    """
    alpha0, beta0, _ = start
    lead = np.subtract(beta0, np.multiply(1.0 if printed else lambda_, alpha0))
    return np.asarray(
        expit(np.multiply(lambda_, required_logit(delta)) + np.multiply(z_star, lead))
    )
