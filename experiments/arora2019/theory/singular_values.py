"""How singular values of a product of matrices move along gradient flow (Arora et al. 2019, Section
3).

With `W = W_N ... W_1` and balanced layers, `W_(j+1)^T W_(j+1) = W_j W_j^T`, for any loss of W

    d sigma_r / dt = -N (sigma_r^2)^(1 - 1/N) <grad L(W), u_r v_r^T>

at the singular vectors u_r, v_r: the gradient is measured, its effect predicted. N = 2 has the
factor 2 sigma_r; the deeper, the slower small values move and the faster large ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.assumptions import times_of


def gradients(run: Any, W: Floats) -> Floats:
    """Return the gradients of the training loss by the product `W` (K, rows, columns), of the
    same shape.
    """
    samples = run.dataset()
    loss = run.config.loss
    rows, columns = samples.x.astype(np.int64).T  # of the entries that are seen, each once
    gradient = np.zeros_like(W)
    gradient[:, rows, columns] = loss.sample_weight(samples.n) * loss.derivatives(
        W[:, rows, columns], samples.y
    )
    return gradient


def rates(W: Floats, gradient: Floats, depth: int) -> tuple[Floats, Floats]:
    """Return the singular values (K, r) of `W` (K, rows, columns), descending, and `d sigma_r /
    dt` (K, r).
    """
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    along = np.einsum("kir,kij,krj->kr", U, gradient, Vt, optimize=True)
    return s, -depth * (s**2) ** (1 - 1 / depth) * along


def integrated(run: Any) -> tuple[Floats, Floats]:
    """Return singular values (K, r) of a `matrix_product`, and the initial ones plus the sum of
    the measured rates.
    """
    net = run.config.architecture
    W = net.product(run.parameters)
    s, slope = rates(W, gradients(run, W), net.depth)
    moved = (
        0.5 * (slope[1:] + slope[:-1]) * np.diff(times_of(run, run.snapshot_iterations))[:, None]
    )
    return s, s[0] + np.concatenate([np.zeros((1, s.shape[1])), np.cumsum(moved, axis=0)])
