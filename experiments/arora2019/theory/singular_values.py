"""How singular values of a product of matrices move along gradient flow (Arora et al. 2019, Section 3).

With `W = W_N ... W_1` and balanced layers, `W_(j+1)^T W_(j+1) = W_j W_j^T`, for any loss of W

    d sigma_r / dt = -N (sigma_r^2)^(1 - 1/N) <grad L(W), u_r v_r^T>

at the singular vectors u_r, v_r: the gradient is measured, its effect predicted. N = 2 has the factor 2 sigma_r; the
deeper, the slower small values move and the faster large ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dynamics_cli.architectures.linear_models import MatrixProduct
from dynamics_cli.kinds import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.assumptions import flow_violations, plain_violations, times_of

BALANCED = 0.05
"""Part of the squared layers by which they may differ where they should be equal."""


def layers(run: Any) -> list[Floats]:
    """Return the matrices of a linear network, inputs first, each (K, out, in), float64."""
    run.state(0)  # whose message says that weights are not recorded
    factors = [np.asarray(run.parameters[name], np.float64) for name in run.config.architecture.shapes(run.dataset().d)]
    return [W if W.ndim == 3 else W[:, None] for W in factors]


def product(factors: list[Floats]) -> Floats:
    """Return `W_N ... W_1` (K, rows, columns)."""
    W = factors[0]
    for factor in factors[1:]:
        W = factor @ W
    return W


def gradients(run: Any, W: Floats) -> Floats:
    """Return the gradients of the training loss by the product `W` (K, rows, columns), of the same shape."""
    samples, net = run.dataset(), run.config.architecture
    loss, weight = run.config.loss.of(net), run.config.loss.sample_weight(samples.n)
    x, y = samples.x, samples.y
    gradient = np.empty_like(W)
    for k, factor in enumerate(W):
        if not isinstance(net, MatrixProduct):
            h = x @ factor.T if len(factor) > 1 else x @ factor[0]
            gradient[k] = weight * np.atleast_2d(loss.derivatives(h, y).T) @ x
        else:
            at, gradient[k] = tuple(x.astype(np.int64).T), 0.0
            np.add.at(gradient[k], at, weight * loss.derivatives(factor[at], y))
    return gradient


def rates(W: Floats, gradient: Floats, depth: int) -> tuple[Floats, Floats]:
    """Return the singular values (K, r) of `W` (K, rows, columns), descending, and `d sigma_r / dt` (K, r)."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    along = np.einsum("kir,kij,krj->kr", U, gradient, Vt, optimize=True)
    return s, -depth * (s**2) ** (1 - 1 / depth) * along


def imbalance(factors: list[Floats]) -> Floats:
    """Return `||W_(j+1)^T W_(j+1) - W_j W_j^T||_F` (K, N - 1)."""
    gaps = [b.swapaxes(1, 2) @ b - a @ a.swapaxes(1, 2) for a, b in pairwise(factors)]
    sizes = [np.linalg.norm(gap, axis=(1, 2)) for gap in gaps]  # gaps are as wide as the layers that they lie between
    return np.array(sizes).T.reshape(len(factors[0]), len(gaps))


class ProductSingularValues(Theory, kind="product_singular_values"):
    """Singular values of a linear network, moved by the gradients that were measured (Arora et al. 2019, Theorem 3)."""

    example = """\
dataset: {kind: matrix_completion, rows: 12, rank: 2, observed: 80}
architecture: {kind: matrix_product, rows: 12, depth: 3}
initialization: {kind: balanced_product, scale: 1.0e-2}
loss: {kind: mse}
optimizer: {kind: gd, lr: 2.0e-2, iterations: 1500}
record: {snapshots: {kind: every, interval: 5}}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network is a product of matrices."""
        net = run.config.architecture
        linear = getattr(getattr(net, "activation", None), "kind", None) == "linear"
        if not isinstance(net, MatrixProduct) and (
            not linear or net.kind not in ("two_layer", "fully_connected") or getattr(net, "bias", False)
        ):
            return None
        factors = layers(run)
        violations = [*plain_violations(net), *flow_violations(run, squared=False)]
        size = max(float(np.linalg.norm(W[0])) ** 2 for W in factors)
        if (part := float(imbalance(factors)[0].max(initial=0.0)) / size) > BALANCED:
            violations.append(f"layers are balanced: they differ by {part:.2g} of their squares")
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return all singular values: the initial ones plus the rates summed over the recorded states."""
        factors, steps = layers(run), np.asarray(run.snapshot_iterations, np.float64)
        W = product(factors)
        s, slope = rates(W, gradients(run, W), len(factors))
        moved = 0.5 * (slope[1:] + slope[:-1]) * np.diff(times_of(run, steps))[:, None]
        predicted = s[0] + np.concatenate([np.zeros((1, s.shape[1])), np.cumsum(moved, axis=0)])
        return {"singular_values": Curve("singular values", steps, s, predicted)}
