"""One linear neuron, `f = a <w, x>`, on white inputs: the exact solution for every imbalance (Kunin et al. 2024).

Gradient flow `w' = a (beta* - a w)`, `a' = <w, beta* - a w>` conserves `delta = a^2 - |w|^2`: upstream (delta > 0) the
neuron moves before its output weight, downstream (delta < 0) after it. Derived here, with the curves of the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.assumptions import flow_violations, loss_factor, plain_violations, times_of


def start(delta: float, beta: ArrayLike) -> tuple[Floats, float]:
    """Return the w (d,) and a > 0 of imbalance `delta` whose predictor a w is `beta` (d,)."""
    target = np.asarray(beta, np.float64)
    a = float(np.sqrt((delta + np.hypot(delta, 2 * np.linalg.norm(target))) / 2))
    return target / a, a


def single_neuron(t: ArrayLike, w0: ArrayLike, a0: float, beta: ArrayLike) -> tuple[Floats, Floats]:
    """Return w (T, d) and a (T,) at times `t` (T,) of unit rates, from `w0` (d,), `a0`, towards `beta` (d,) != 0.

    With `h = beta / b`, `k = sqrt(delta^2 + 4 b^2)` and `w0 = p h + perp` both are hyperbolic functions of `k t / 2`
    over a common norm; all are written without what grows.
    """
    time, w, target = (np.asarray(v, np.float64) for v in (t, w0, beta))
    b = float(np.linalg.norm(target))
    if b == 0:
        raise ValueError("a neuron needs something to learn: beta* is 0")
    h, delta = target / b, a0**2 - float(w @ w)
    k, p = float(np.hypot(delta, 2 * b)), float(w @ h)
    perp = w - p * h
    q1, q2 = (2 * b * a0 - delta * p) / k, (2 * b * p + delta * a0) / k
    E = np.exp(-k * time / 2)  # everything below is multiplied by it, squares by its square
    C, Z, E2 = (1 + E**2) / 2, (1 - E**2) / 2, E**2
    sinh, cosh_1 = (1 - E2**2) / 2 / k, ((1 + E2**2) / 2 - E2) / k
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(delta * time) < 1  # where the difference of exponentials would lose digits
        slow = E2 * (-np.expm1(-delta * time) / delta if delta else time)
        faded = np.where(near, slow, (E2 - np.exp(-(delta + k) * time)) / (delta or 1.0))
    total = (p**2 + a0**2) * (time * E2 + sinh) / 2 + (q1**2 + q2**2) * (sinh - time * E2) / 2
    total = total + (p * q1 + a0 * q2) * cosh_1 + float(perp @ perp) * faded
    c = 1 / np.sqrt(E2 + total)
    away = np.exp(-(delta + k) * time / 2)
    return c[:, None] * ((p * C + q1 * Z)[:, None] * h + away[:, None] * perp), c * (a0 * C + q2 * Z)


def kernel_distance(w: ArrayLike, a: ArrayLike, w0: ArrayLike, a0: float) -> Floats:
    """Return `1 - <K_0, K_t> / |K_0||K_t|` (T,) of the tangent kernels where `X X^T = I`: `w` (T, d), `a` (T,)."""
    now, first, a = np.asarray(w, np.float64), np.asarray(w0, np.float64), np.asarray(a, np.float64)
    d, n0, n = len(first), float(first @ first), np.sum(now**2, axis=1)
    inner = d * a0**2 * a**2 + a0**2 * n + a**2 * n0 + (now @ first) ** 2
    sizes = (d * a**4 + 2 * a**2 * n + n**2) * (d * a0**4 + 2 * a0**2 * n0 + n0**2)
    return np.asarray(1 - inner / np.sqrt(sizes))


def last_distance(delta: float, b: float) -> float:
    """Return the limit of the kernel distance in two dimensions from a predictor orthogonal to beta*, of its norm b."""
    k = np.hypot(delta, 2 * b)
    A, B = (k + delta) / 2, (k - delta) / 2
    return float(1 - (2 * A**2 + 2 * A * B) / (2 * A**2 + 2 * A * B + B**2))


class SingleNeuron(Theory, kind="single_neuron"):
    """One linear neuron on white inputs, exactly, whatever its imbalance (Kunin et al. 2024, Theorem 3.1)."""

    example = """\
dataset: {kind: points, x: [[1.0, 0.0], [0.0, 1.0]], y: [0.0, 1.0]}
architecture: {kind: two_layer, width: 1, activation: linear}
initialization: {kind: values, hidden_weight: [[-2.0, 0.0]], output_weight: [0.5]}
loss: {kind: half_mse, reduction: sum}
optimizer: {kind: gd, lr: 5.0e-3, iterations: 4000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network is one linear neuron."""
        net, samples = run.config.architecture, run.dataset()
        if net.kind != "two_layer" or net.activation.kind != "linear" or net.width != 1 or net.outputs is not None:
            return None
        violations = plain_violations(net)
        if not net.train_output:
            violations.append("both layers are trained: architecture.train_output is false")
        gram = samples.x.T @ samples.x
        if np.abs(gram - gram[0, 0] * np.eye(len(gram))).max() > 1e-6 * gram[0, 0]:
            violations.append("inputs are white: their second moment is not the identity times a number")
        return [*violations, *flow_violations(run)]

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the predictor, the output weight, and the loss."""
        samples, first = run.dataset(), run.state(0)
        kappa, c = float(np.sum(samples.x[:, 0] ** 2)), loss_factor(run)
        beta = samples.x.T @ samples.y / kappa
        W, a = (np.asarray(run.parameters[name], np.float64)[:, 0] for name in ("hidden_weight", "output_weight"))

        def exact(iterations: Floats) -> tuple[Floats, Floats]:
            times = c * kappa / samples.n * times_of(run, iterations)
            return single_neuron(times, first["hidden_weight"][0], float(first["output_weight"][0]), beta)

        steps = np.asarray(run.snapshot_iterations, np.float64)
        (w, alpha), (w_at, a_at) = exact(steps), exact(run.loss_iterations)
        h = (w_at * a_at[:, None]) @ samples.x.T
        return {
            "predictor": Curve(r"predictor $a\,w$", steps, a[:, None] * W, alpha[:, None] * w),
            "output weight": Curve("output weight $a$", steps, a, alpha),
            "loss": 0.5 * c * np.mean((h - samples.y) ** 2, axis=1),
        }
