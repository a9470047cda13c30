"""Linear attention on infinitely many sequences: descent on the population loss, its saddles, and
their scalar ODE.

For `x ~ N(0, Lambda)`, `w ~ N(0, I)` and N pairs the output `h = sum_i v_i <U_i, z>` of linear
attention, z the cubic features `beta x_q^T` of `beta = sum_n y_n x_n`, depends on `M = sum_i v_i
U_i` alone. Its squared error is

    L = tr Lambda - 2 <M, A> + <M, B M Lambda>,  A = E[y_q z] = N Lambda^2,
    B = E[beta beta^T] = N (N + 1) Lambda^2 + N tr(Lambda) Lambda,

for blocks of the value and of the key that begin at 0 stay 0: derivatives by them are odd in w. A
and B commute with Lambda, so that `M = sum_d s_d (a_d / b_d) e_d e_d^T`, `a = N lambda^2`, `b = B
lambda`, is stationary for every s_d of 0 or 1 where keys and queries have low rank; of merged
matrices only 0 and the minimum are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from dynamics_cli.kinds import Streams
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.theory.assumptions import loss_factor


def moments(eigenvalues: ArrayLike, N: int) -> tuple[Floats, Floats]:
    """Return `a` and `b` (D,) along the eigenvectors of `Lambda`: a mode of strength s adds
    `(a^2 / b) (s^2 - 2 s)`.
    """
    lambda_ = np.asarray(eigenvalues, np.float64)
    return N * lambda_**2, (N * (N + 1) * lambda_**2 + N * lambda_.sum() * lambda_) * lambda_


def saddle_losses(eigenvalues: ArrayLike, N: int) -> Floats:
    """Return the losses (D + 1,) with 0 to D eigenvectors learnt, largest eigenvalues first."""
    a, b = moments(np.sort(np.asarray(eigenvalues, np.float64))[::-1], N)
    return np.asarray(np.sum(eigenvalues) - np.concatenate([[0.0], np.cumsum(a**2 / b)]))


def rise(a: float, b: float, low: float, high: float) -> float:
    """Return the time of gradient flow in which a rank-one head takes a mode from strength `low` to
    `high`.

    Value, key and query have one size v, the strength is `b v^3 / a`, and `v' = 2 (a v^2 - b v^5)`.
    """
    time, _ = quad(
        lambda v: 0.5 / (a * v**2 - b * v**5), np.cbrt(low * a / b), np.cbrt(high * a / b)
    )
    return float(time)


def strengths(M: Floats, covariance: Floats, N: int) -> Floats:
    """Return `s` (..., D) of `M` (..., D, D) along the eigenvectors of `Lambda`, largest
    eigenvalue first.
    """
    lambda_, vectors = np.linalg.eigh(covariance)
    a, b = moments(lambda_, N)
    return np.asarray(np.einsum("di,...de,ei->...i", vectors, M, vectors) * b / a)[..., ::-1]


@np.errstate(over="ignore", invalid="ignore")  # of steps with which it diverges
def descent(
    start: Mapping[str, Floats], covariance: Floats, N: int, step: float, at: Ints
) -> tuple[Floats, Floats]:
    """Return the population losses (K,) and `M` (K, D, D) of descent at the iterations `at` (K,),
    ascending.

    `start` names weights as `linear_attention` does; `step` multiplies the gradient of the loss
    without a factor.
    """
    v = np.array(start["weight_value"], np.float64)[:, 0]  # (H,)
    names = ("weight_key", "weight_query") if "weight_key" in start else ("weight_key_query",)
    parts = [np.array(start[name], np.float64) for name in names]
    A = N * covariance @ covariance
    B = (N + 1) * A + N * np.trace(covariance) * covariance
    wanted = set(np.asarray(at).tolist())
    losses = []
    products = []
    for i in range(int(np.max(at)) + 1):
        U = parts[0] if len(parts) == 1 else parts[0].transpose(0, 2, 1) @ parts[1]  # (H, D, D)
        M = np.tensordot(v, U, 1)
        G = 2 * (B @ M @ covariance - A)
        if i in wanted:
            losses.append(np.trace(covariance) + np.sum(M * (G / 2 - A)))
            products.append(M)
        # (H, D, D)
        g = step * v[:, None, None] * G
        v = v - step * np.tensordot(U, G, 2)
        if len(parts) == 1:
            parts = [parts[0] - g]
        else:
            parts = [parts[0] - parts[1] @ g.transpose(0, 2, 1), parts[1] - parts[0] @ g]
    return np.array(losses), np.array(products)


def setting(run: Any) -> tuple[Floats, int, float]:
    """Return `Lambda` (D, D), N, and the step on the loss without a factor, of a run on
    `in_context_regression`.
    """
    data: Any = run.config.dataset
    covariance = data.covariance(data.streams_of(Streams(run.config.seed)))
    return covariance, data.context, run.config.optimizer.lr * loss_factor(run) / 2
