"""Growth of the two groups of neurons, and the saddle that lies between (Boursier et al. 2022, Section 4.2, Fact 1).

Balanced neurons aligned with `sign D` have `sum_j a_j w_j = u D / ||D||` where `u` is the sum of their squared norms.
On orthogonal inputs, therefore, `h(x_k) = u y_k ||x_k||^2 / (n ||D||)` on labels of that sign and, from Eq. 3,

    du/dt = 2 ||D|| (1 - u / U) u   with   U = n^3 ||D||^3 / sum y_k^2 ||x_k||^4,

which for orthonormal inputs is the paper's equation, `U = n ||D||`. It is exact as long as the direction stays: always,
where the inputs of that sign have equal norms; only while the loss is small otherwise, since `D(t)` then turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_floats, as_points
from dynamics_cli.theory.alignment import D_minus, D_plus, D_sign, require_orthogonal
from dynamics_cli.theory.minimum_norm import interpolating_neuron


def growth_rate(x: ArrayLike, y: ArrayLike, sign: int, *, loss_factor: float = 1.0) -> float:
    """Return `2 ||D_sign|| loss_factor`, the rate at which `u = sum_j ||w_j||^2` grows while it is small."""
    return 2.0 * loss_factor * float(np.linalg.norm(D_sign(x, y, sign)))


def growth_limit(x: ArrayLike, y: ArrayLike, sign: int, *, tolerance: float = 1e-6) -> float:
    """Return U, where `u` ends: `n^3 ||D||^3 / sum y_k^2 ||x_k||^4`, for orthonormal inputs `n ||D||`.

    Raises ValueError when inputs are not orthogonal (up to `tolerance`) or when no label has this sign.
    """
    points, labels = as_points(x, y)
    require_orthogonal(points, tolerance)
    length = float(np.linalg.norm(D_sign(points, labels, sign)))
    if length == 0:
        raise ValueError(f"there is no label of sign {sign:+d}")
    weights = labels**2 * np.sum(points**2, axis=1) ** 2
    return float((len(labels) * length) ** 3 / np.sum(weights[sign * labels > 0]))


def logistic_growth(
    t: ArrayLike, u_0: float, x: ArrayLike, y: ArrayLike, sign: int = 1, *, loss_factor: float = 1.0
) -> Floats:
    """Return `u(t) = U / (1 + (U / u_0 - 1) exp(-2 ||D|| t))` for times `t` of any shape, from `u(0) = u_0 > 0`.

    Raises ValueError when `u_0` is not positive; otherwise as `growth_limit`.
    """
    _check_start(u_0)
    U = growth_limit(x, y, sign)
    times = as_floats(t, "t", axes=0, batched=True)
    decay = np.exp(-growth_rate(x, y, sign, loss_factor=loss_factor) * times)
    return np.asarray(U / (1.0 + (U / u_0 - 1.0) * decay))


def growth_time(
    u_0: float, x: ArrayLike, y: ArrayLike, sign: int = 1, *, fraction: float = 0.5, loss_factor: float = 1.0
) -> float:
    """Return when `u` reaches `fraction * U` from `u_0`: `ln((U/u_0 - 1) f / (1 - f)) / (2 ||D||)`.

    With `u_0` of order `lambda^2` this is `-ln(lambda) / ||D||` plus a constant. Raises ValueError unless
    `0 < fraction < 1` and `0 < u_0 < U`.
    """
    _check_start(u_0)
    U = growth_limit(x, y, sign)
    if not 0.0 < fraction < 1.0 or u_0 >= U:
        raise ValueError(f"need 0 < fraction < 1 and u_0 < U = {U:.6g}, not fraction {fraction} and u_0 {u_0}")
    odds = np.log(U / u_0 - 1.0) + np.log(fraction / (1.0 - fraction))
    return float(odds / growth_rate(x, y, sign, loss_factor=loss_factor))


def _check_start(u_0: float) -> None:
    if not u_0 > 0:
        raise ValueError(f"u_0, the squared norm to grow from, must be positive, not {u_0}")


def growth_loss(
    u_plus: ArrayLike, u_minus: ArrayLike, x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0
) -> Floats:
    """Return the loss when neurons along `D_+` and `-D_-` have the total squared norms `u_plus` and `u_minus`.

    `u_plus` and `u_minus` have any shape and broadcast. Raises ValueError when inputs are not orthogonal.
    """
    points, labels = as_points(x, y)
    require_orthogonal(points)
    plus, minus = np.linalg.norm(D_plus(points, labels)), np.linalg.norm(D_minus(points, labels))
    n, squares = len(labels), np.sum(points**2, axis=1)
    u = np.stack(np.broadcast_arrays(as_floats(u_plus, "u_plus", axes=0, batched=True), u_minus), axis=-1)  # (..., 2)
    norms = np.array([plus, minus])
    slopes = np.divide(u, n * norms, out=np.zeros_like(u), where=norms > 0)
    h = np.where(labels > 0, slopes[..., :1], slopes[..., 1:]) * labels * squares  # (..., n)
    return np.asarray(0.5 * loss_factor * np.mean((h - labels) ** 2, axis=-1))


@dataclass(frozen=True)
class Saddle:
    """The intermediate saddle `theta_S`: labels of one sign are fitted by parallel neurons, all others are 0."""

    sign: int
    """Sign of the labels that are fitted there (that of the larger `||D||`)."""
    w: Floats
    """(d,) the fitting neurons merged into one balanced neuron; they share its direction."""
    a: float
    """Its output weight; `a^2` is the sum of the squared norms of the fitting neurons, `n ||D||` if orthonormal."""
    fitted: Bools
    """(n,) which points are fitted; `h` is 0 on the others."""
    loss: float
    """`loss_factor / (2n)` times the sum of the squares of the other labels."""


def intermediate_saddle(x: ArrayLike, y: ArrayLike, *, loss_factor: float = 1.0, tolerance: float = 1e-6) -> Saddle:
    """Return the saddle of Fact 1 for orthogonal inputs `x (n, d)` of any norm and labels `y (n,)`.

    Raises ValueError when inputs are not orthogonal, labels have one sign only, or `||D_+|| = ||D_-||` (Assumption 2).
    """
    points, labels = as_points(x, y)
    plus, minus = np.linalg.norm(D_plus(points, labels)), np.linalg.norm(D_minus(points, labels))
    if plus == minus or min(plus, minus) == 0:
        raise ValueError(f"an intermediate saddle needs ||D+|| and ||D-|| positive and different: {plus}, {minus}")
    sign = 1 if plus > minus else -1
    w, a = interpolating_neuron(points, labels, sign, tolerance=tolerance)
    fitted: Bools = sign * labels > 0
    loss = 0.5 * loss_factor * float(np.sum(labels[~fitted] ** 2)) / len(labels)
    return Saddle(sign=sign, w=w, a=a, fitted=fitted, loss=loss)
