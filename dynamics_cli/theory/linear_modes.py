"""Modes of deep linear networks (Saxe et al. 2014), each learned on its own.

With the singular values s and vectors a, b of `sum_k y_k x_k^T / n`, weights balanced along them
and inputs whose second moment has the eigenvalue lambda along b, the strength `u = a^T W_N ... W_1
b` of a mode obeys, for the loss `c / (2n) sum ||h - y||^2`, `u' = c N u^(2 - 2/N) (s - lambda u)`
(Eq. 15 for c = lambda = 1; Eq. 12 solves N = 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.spectra import imbalances
from dynamics_cli.theory.assumptions import (
    flow_violations,
    loss_factor,
    plain_violations,
    times_of,
)

TOLERANCE = 0.05
"""Largest relative size of a number that an assumption says is 0."""


def linear_mode(
    t: ArrayLike, u0: ArrayLike, s: ArrayLike, depth: int, *, lambda_: ArrayLike = 1.0
) -> Floats:
    """Return the strengths (T, r) at times `t` (T,) of modes that start at `u0` (r,) > 0.

    Times ascend from 0 on. Raises ValueError for `u0` or `s` that is not positive, or a depth below
    2.
    """
    times = np.asarray(t, np.float64)
    start, s, lambda_ = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(v, np.float64)) for v in (u0, s, lambda_))
    )
    if depth < 2 or not ((start > 0) & (s > 0)).all():
        raise ValueError(
            "modes need a depth of 2 at least, and positive strengths at the start and in the data"
        )
    if depth == 2:
        with np.errstate(over="ignore"):
            return np.asarray(
                s / (lambda_ + (s / start - lambda_) * np.exp(-2.0 * s * times[:, None]))
            )
    powers = 1.0 - 2.0 / depth
    solution = solve_ivp(
        lambda _, v: depth * np.exp(powers * v) * (s - lambda_ * np.exp(v)),
        (0.0, max(float(times[-1]), 1e-300)),
        np.log(start),
        t_eval=times,
        method="LSODA",
        rtol=1e-9,
        atol=1e-11,
    )
    return np.asarray(np.exp(solution.y.T))


@dataclass(frozen=True)
class LinearSetting:
    """Modes of the data, and the weights that learn them."""

    s: Floats
    """(r,) descending."""
    lambda_: Floats
    """(r,)"""
    strengths: Floats
    """(K, r) measured `a^T W_N ... W_1 b`."""
    depth: int
    violations: list[str]
    unexplained: float
    """Mean square of the labels that no mode explains, `tr S_yy - sum s^2 / lambda`."""


def read_setting(run: Any) -> LinearSetting:
    """Return the modes of a run's data, their strengths, and what its start violates."""
    samples = run.dataset()
    run.state(0)  # whose message says that weights are not recorded
    x = samples.x
    y = samples.y.reshape(samples.n, -1)
    A, s, Bt = np.linalg.svd(y.T @ x / samples.n, full_matrices=False)
    r = int((s > 1e-9 * s[0]).sum())
    A = A[:, :r]
    s = s[:r]
    B = Bt[:r].T
    S_xx = x.T @ x / samples.n
    lambda_ = np.einsum("dr,de,er->r", B, S_xx, B)
    layers = []
    for name in run.config.architecture.shapes(samples.d):
        W = np.asarray(run.parameters[name], np.float64)
        layers.append(W.reshape(len(W), -1, W.shape[-1]))  # (K, out, in)
    product = layers[0]
    for W in layers[1:]:
        product = W @ product
    strengths = np.einsum("or,koi,ir->kr", A, product, B)
    first = [W[0] for W in layers]
    violations = []
    if (part := _size(S_xx @ B - B * lambda_, S_xx @ B)) > TOLERANCE:
        violations.append(
            f"inputs are uncorrelated along the modes: {part:.2g} of their second moment is not"
        )
    if (part := _size(product[0] - A * strengths[0] @ B.T, product[0])) > TOLERANCE:
        violations.append(f"the network starts along the modes: {part:.2g} of W_N ... W_1 does not")
    gap = float(imbalances(first).max())
    if (part := gap / max(float(np.linalg.norm(W)) ** 2 for W in first)) > TOLERANCE:
        violations.append(f"layers are balanced: they differ by {part:.2g} of their squares")
    if (strengths[0] <= 0).any():
        violations.append(f"modes start above 0: {int((strengths[0] <= 0).sum())} of {r} do not")
    unexplained = float(np.sum(y**2) / samples.n - np.sum(s**2 / lambda_))
    return LinearSetting(s, lambda_, strengths, len(layers), violations, unexplained)


def _size(part: Floats, whole: Floats) -> float:
    return float(np.linalg.norm(part) / max(float(np.linalg.norm(whole)), 1e-300))


class DeepModes(Theory, kind="deep_modes"):
    """Modes `u' = c N u^(2 - 2/N) (s - lambda u)` of linear networks (Saxe et al. 2014, Eq. 15)."""

    example = """\
dataset: {kind: linear_map, inputs: 6, outputs: 4, singular_values: [3.0, 2.0, 1.0]}
architecture: {kind: two_layer, width: 6, outputs: 4, activation: linear}
initialization: {kind: decoupled, scale: 1.0e-2}
loss: {kind: half_mse}
optimizer: {kind: gd, lr: 1.0e-2, iterations: 600}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network is a product of matrices."""
        net = run.config.architecture
        deep = net.is_linear and len(net.matrices) > 1
        if not deep or getattr(net, "bias", False):
            return None
        setting = read_setting(run)
        violations = plain_violations(net)
        if run.config.loss.square is not None:
            violations += setting.violations
        return violations + flow_violations(run)

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the strengths of all modes, and the loss."""
        setting = read_setting(run)
        c = loss_factor(run)
        start = np.maximum(setting.strengths[0], 1e-12)

        def u(iterations: Floats) -> Floats:
            times = c * times_of(run, iterations)
            return linear_mode(times, start, setting.s, setting.depth, lambda_=setting.lambda_)

        steps = np.asarray(run.snapshot_iterations, np.float64)
        missing = setting.lambda_ * (u(run.loss_iterations) - setting.s / setting.lambda_) ** 2
        return {
            "modes": Curve("strengths of the modes", steps, setting.strengths, u(steps)),
            "loss": 0.5 * c * (setting.unexplained + missing.sum(1)),
        }
