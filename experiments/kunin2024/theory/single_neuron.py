"""One linear neuron, `f = a <w, x>`, on white inputs: the exact solution for every imbalance (Kunin
et al. 2024).

Gradient flow `w' = a (beta* - a w)`, `a' = <w, beta* - a w>` conserves `delta = a^2 - |w|^2`:
upstream (delta > 0) the neuron moves before its output weight, downstream (delta < 0) after it.
Derived here, with the curves of the paper's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats


def start(delta: float, beta: ArrayLike) -> tuple[Floats, float]:
    """Return the w (d,) and a > 0 of imbalance `delta` whose predictor a w is `beta` (d,)."""
    target = np.asarray(beta, np.float64)
    a = float(np.sqrt((delta + np.hypot(delta, 2 * np.linalg.norm(target))) / 2))
    return target / a, a


def single_neuron(t: ArrayLike, w0: ArrayLike, a0: float, beta: ArrayLike) -> tuple[Floats, Floats]:
    """Return w (T, d) and a (T,) at times `t` (T,) of unit rates, from `w0` (d,), `a0`, towards
    `beta` (d,) != 0.

    With `h = beta / b`, `k = sqrt(delta^2 + 4 b^2)` and `w0 = p h + perp` both are hyperbolic
    functions of `k t / 2` over a common norm; all are written without what grows.
    """
    time, w, target = (np.asarray(v, np.float64) for v in (t, w0, beta))
    b = float(np.linalg.norm(target))
    if b == 0:
        raise ValueError("a neuron needs something to learn: beta* is 0")
    h = target / b
    delta = a0**2 - float(w @ w)
    k = float(np.hypot(delta, 2 * b))
    p = float(w @ h)
    perp = w - p * h
    q1 = (2 * b * a0 - delta * p) / k
    q2 = (2 * b * p + delta * a0) / k
    E = np.exp(-k * time / 2)  # everything below is multiplied by it, squares by its square
    C = (1 + E**2) / 2
    Z = (1 - E**2) / 2
    E2 = E**2
    sinh = (1 - E2**2) / 2 / k
    cosh_1 = ((1 + E2**2) / 2 - E2) / k
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(delta * time) < 1  # where the difference of exponentials would lose digits
        slow = E2 * (-np.expm1(-delta * time) / delta if delta else time)
        faded = np.where(near, slow, (E2 - np.exp(-(delta + k) * time)) / (delta or 1.0))
    total = (p**2 + a0**2) * (time * E2 + sinh) / 2 + (q1**2 + q2**2) * (sinh - time * E2) / 2
    total = total + (p * q1 + a0 * q2) * cosh_1 + float(perp @ perp) * faded
    c = 1 / np.sqrt(E2 + total)
    away = np.exp(-(delta + k) * time / 2)
    return c[:, None] * ((p * C + q1 * Z)[:, None] * h + away[:, None] * perp), c * (
        a0 * C + q2 * Z
    )


def kernel_distance(w: ArrayLike, a: ArrayLike, w0: ArrayLike, a0: float) -> Floats:
    """Return `1 - <K_0, K_t> / |K_0||K_t|` (T,) of the tangent kernels where `X X^T = I`: `w`
    (T, d), `a` (T,).
    """
    now = np.asarray(w, np.float64)
    first = np.asarray(w0, np.float64)
    a = np.asarray(a, np.float64)
    d = len(first)
    n0 = float(first @ first)
    n = np.sum(now**2, axis=1)
    inner = d * a0**2 * a**2 + a0**2 * n + a**2 * n0 + (now @ first) ** 2
    sizes = (d * a**4 + 2 * a**2 * n + n**2) * (d * a0**4 + 2 * a0**2 * n0 + n0**2)
    return np.asarray(1 - inner / np.sqrt(sizes))


def last_distance(delta: float, b: float) -> float:
    """Return the limit of the kernel distance in two dimensions from a predictor orthogonal to
    beta*, of its norm b.
    """
    k = np.hypot(delta, 2 * b)
    A = (k + delta) / 2
    B = (k - delta) / 2
    return float(1 - (2 * A**2 + 2 * A * B) / (2 * A**2 + 2 * A * B + B**2))
