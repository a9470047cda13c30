"""Eigenvalues, singular values and balance of layers, and their plane of leading directions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats


def _scaled(W: ArrayLike) -> tuple[Floats, Floats]:
    """Return `W (..., m, d)` over its largest entry, and this entry `(..., 1)`.

    It is 0 for a layer of zeros.
    """
    weights = as_floats(W, "W", axes=2, batched=True)
    if weights.size and not np.isfinite(weights).all():
        raise ValueError("W must be finite to have singular values")
    largest = np.abs(weights).max(axis=(-2, -1), initial=0.0, keepdims=True)
    return np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0), largest[
        ..., 0
    ]


def singular_values(W: ArrayLike) -> Floats:
    """Return the singular values `(..., min(m, d))` of `W (..., m, d)`, descending.

    Raises ValueError when W holds a number that is not finite.
    """
    weights, largest = _scaled(W)
    result: Floats = largest * np.linalg.svd(weights, compute_uv=False)
    return result


def eigenvalues(A: Floats) -> Floats:
    """Return the eigenvalues `(m,)` of a symmetric `A (m, m)`, descending.

    NaN when an entry is not finite.
    """
    if not np.isfinite(A).all():
        return np.full(len(A), np.nan)
    return np.asarray(np.linalg.eigvalsh(A)[::-1], np.float64)


def stable_rank(W: ArrayLike) -> Floats:
    """Return `||W||_F^2 / ||W||_2^2` of shape `(...)`, between 1 and the rank; NaN for W = 0."""
    s = np.linalg.svd(_scaled(W)[0], compute_uv=False)
    top = s[..., 0] ** 2
    rank: Floats = np.divide(
        np.sum(s**2, axis=-1), top, out=np.full_like(top, np.nan), where=top > 0
    )
    return rank


def leading_directions(W: ArrayLike, k: int = 2) -> Floats:
    """Return the `k` leading right-singular vectors `(k, d)` of `W (m, d)`.

    They are uncentred principal components.

    Each is turned so that its entry of largest size is positive, which makes the picture the same
    on every machine.
    """
    weights = _scaled(as_floats(W, "W", axes=2))[0]
    vectors: Floats = np.linalg.svd(weights, full_matrices=False)[2][:k]
    heads = vectors[np.arange(k), np.argmax(np.abs(vectors), axis=1)]
    turned: Floats = vectors * np.sign(heads)[:, None]
    return turned


def project(W: ArrayLike, basis: ArrayLike) -> Floats:
    """Return coordinates `(..., m, k)` of neurons `W (..., m, d)` in a `basis (k, d)`."""
    result: Floats = as_floats(W, "W", axes=2, batched=True) @ as_floats(basis, "basis", axes=2).T
    return result


def imbalances(matrices: Sequence[Floats]) -> Floats:
    """Return `||W_{l+1}^T W_{l+1} - W_l W_l^T||_F` (L - 1,) of matrices, inputs first."""
    return np.array([np.linalg.norm(b.T @ b - a @ a.T) for a, b in pairwise(matrices)])


def effective_rank(values: ArrayLike) -> float:
    """Return `exp(-sum p log p)`, `p = values / sum values`, of values (k,) >= 0.

    Roy and Vetterli 2007.
    """
    v = np.asarray(values, np.float64)
    v = v[v > 0]
    if not len(v):
        return float("nan")
    p = v / v.sum()
    return float(np.exp(-np.sum(p * np.log(p))))


def mean_density(rules: Floats, at: Floats, width: float) -> Floats:
    """Return the mean density (k,) at points `at` (k,) of rules (probes, 2, steps).

    Each node is a Gaussian of a width.

    Source: Ghorbani et al. 2019, Eq. 4.
    """
    nodes = rules[:, 0].ravel()
    weights = rules[:, 1].ravel() / len(rules)
    known = ~np.isnan(nodes)
    gaussians = np.exp(-(((at[:, None] - nodes[known]) / width) ** 2) / 2) / (
        width * np.sqrt(2 * np.pi)
    )
    return np.asarray(gaussians @ weights[known])
