"""The limit of gradient flow of a diagonal linear network: `argmin Q(beta)` under `X beta = y`
(Woodworth et al. 2020).

Started at `u = v = alpha 1`, `beta = u^D - v^D` begins at 0, and `Q(beta) = sum_i mu q_D(beta_i /
mu)` with `mu = alpha^D`, `q_D' = h_D^-1` and

    h_2(s) = 2 sinh(s),   h_D(s) = (1 - s)^(-D/(D-2)) - (1 + s)^(-D/(D-2))  on |s| < 1 for D > 2.

Solved by its dual, with an unknown for each sample: minimise `mu sum_i H(s_i) - <y, nu>`, `s = X^T
nu`, `H' = h`; then `beta = mu h(s)`. Newton's method, from a large mu downwards, each started at
the last `nu`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from dynamics_cli.measures.arrays import Floats, as_points

START = float(np.log(1e4))
"""`ln mu` from which the path is followed: the kernel regime."""
STEP = 0.5 * float(np.log(10.0))
"""Largest step in `ln mu`."""
ROUNDS = 200
FITTED = 1e-10
"""Relative residual at which an interpolator has been found."""


def derivative(s: Floats, depth: int, log_mu: float) -> tuple[Floats, Floats, Floats]:
    """Return `mu H(s)`, `mu h(s)` and `mu h'(s)`, elementwise; infinite outside |s| < 1 for
    `depth` > 2.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if depth == 2:
            # mu itself may underflow
            up = np.exp(s + log_mu)
            down = np.exp(-s + log_mu)
            near = np.abs(s) < 1
            mu = np.exp(log_mu)
            H = np.where(
                near, 4.0 * mu * np.sinh(np.where(near, s, 0.0) / 2) ** 2, up + down - 2.0 * mu
            )
            return (
                H,
                np.where(near, 2.0 * mu * np.sinh(np.where(near, s, 0.0)), up - down),
                up + down,
            )
        mu = np.exp(log_mu)
        p = depth / (depth - 2.0)
        inside = np.abs(s) < 1
        a = np.where(inside, 1.0 - s, np.nan)
        b = np.where(inside, 1.0 + s, np.nan)
        H = (np.expm1((1.0 - p) * np.log(a)) + np.expm1((1.0 - p) * np.log(b))) / (p - 1.0)
        values = mu * H, mu * (a**-p - b**-p), mu * p * (a ** (-p - 1.0) + b ** (-p - 1.0))
        return np.where(inside, values[0], np.inf), values[1], values[2]


def minimum_q(
    X: ArrayLike,
    y: ArrayLike,
    mu: ArrayLike,
    depth: int = 2,
    last: Callable[[Floats], bool] | None = None,
) -> Floats:
    """Return the minimisers (M, d) of Q for every `mu = alpha^D` (M,), in any order.

    Below the largest mu whose minimiser is the `last` that is asked for, minimisers are NaN.

    Raises ValueError for a depth below 2, linearly dependent inputs, or no mu.
    """
    points, labels = as_points(X, y)
    logs = np.log(np.atleast_1d(np.asarray(mu, np.float64)))
    # they tell the rank, as `np.linalg.matrix_rank` does, and the norm
    values = np.linalg.svd(points, compute_uv=False)
    reach = float(values.max())
    negligible = reach * max(points.shape) * np.finfo(np.float64).eps
    if depth < 2 or np.sum(values > negligible) < len(points) or logs.size == 0:
        raise ValueError(
            "argmin Q needs a depth of 2 at least, and samples that some predictor interpolates"
        )
    beta = np.full((len(logs), points.shape[1]), np.nan)
    now = max(START, float(logs.max()))
    nu = (
        np.linalg.solve(points @ points.T, labels)
        * np.exp(-now)
        * (0.5 if depth == 2 else (depth - 2) / (2 * depth))
    )
    for place in np.argsort(-logs):
        for log in np.linspace(
            now, logs[place], 1 + max(1, int(np.ceil((now - logs[place]) / STEP)))
        )[1:]:
            if depth == 2 and now < -2.0:
                nu = nu * (log / now)  # s grows like ln(1 / mu)
            nu = _newton(points, labels, nu, depth, float(log), reach)
            now = float(log)
        beta[place] = derivative(points.T @ nu, depth, now)[1]
        if last is not None and last(beta[place]):
            break
    return beta


def _newton(X: Floats, y: Floats, nu: Floats, depth: int, log_mu: float, reach: float) -> Floats:
    """Return the dual solution (n,), by Newton's method from `nu` with backtracking; `reach` is
    the norm of `X`.
    """
    size = float(np.linalg.norm(y))
    H, h, slope = derivative(X.T @ nu, depth, log_mu)
    value = float(H.sum() - y @ nu)
    left = X @ h - y
    for _ in range(ROUNDS):
        rounding = (
            16 * np.finfo(np.float64).eps * reach * np.linalg.norm(slope)
        )  # that of s, where h is steep
        if np.linalg.norm(left) <= max(FITTED * size, rounding):
            return nu
        step = np.linalg.solve((X * slope) @ X.T, left)
        fall = float(left @ step)
        t = 1.0
        while True:
            trial = nu - t * step
            H, h, slope = derivative(X.T @ trial, depth, log_mu)
            new = float(H.sum() - y @ trial)
            now = X @ h - y
            # near the end the value is lost in rounding, the residual is not
            if new <= value - 1e-4 * t * fall or np.linalg.norm(now) < 0.5 * np.linalg.norm(left):
                break
            t /= 2
            if t < 1e-12:
                raise ArithmeticError(f"argmin Q: no descent at ln mu = {log_mu:.4g}")
        nu = trial
        value = new
        left = now
    raise ArithmeticError(
        f"argmin Q: no convergence in {ROUNDS} Newton steps at ln mu = {log_mu:.4g}"
    )


def minimum_l1(X: ArrayLike, y: ArrayLike) -> Floats:
    """Return the interpolator (d,) of least L1 norm, by a linear program."""
    points, labels = as_points(X, y)
    d = points.shape[1]
    solved = linprog(
        np.ones(2 * d),
        A_eq=np.hstack([points, -points]),
        b_eq=labels,
        bounds=(0, None),
        method="highs",
    )
    if solved.x is None:
        raise ValueError("no predictor interpolates these samples")
    return np.asarray(solved.x[:d] - solved.x[d:])


def minimum_l2(X: ArrayLike, y: ArrayLike) -> Floats:
    """Return the interpolator (d,) of least L2 norm."""
    return np.asarray(np.linalg.lstsq(np.asarray(X), np.asarray(y), rcond=None)[0])


def q(z: ArrayLike, depth: int = 2) -> Floats:
    """Return `q_D(z)`, elementwise: `2 - sqrt(4 + z^2) + z arcsinh(z/2)` (D = 2), `s z - H(s)`
    at `h_D(s) = z`.
    """
    values = np.abs(np.asarray(z, np.float64))
    if depth == 2:
        return np.asarray(2.0 - np.sqrt(4.0 + values**2) + values * np.arcsinh(values / 2.0))
    low = np.zeros_like(values)
    high = np.ones_like(values)
    for _ in range(200):  # bisection: h rises from 0 to infinity
        s = 0.5 * (low + high)
        above = derivative(s, depth, 0.0)[1] > values
        low = np.where(above, low, s)
        high = np.where(above, s, high)
    return np.asarray(low * values - derivative(low, depth, 0.0)[0])
