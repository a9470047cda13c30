"""Lanczos iterations: the largest eigenvalues of a symmetric operator, and its spectral density."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynamics_cli.measures.arrays import Floats

LIMIT = 300
"""Products of the largest eigenvalues, at most."""


class Krylov(NamedTuple):
    """What m Lanczos iterations give."""

    directions: Floats
    """(m, P), orthonormal."""
    values: Floats
    """(m,) eigenvalues of the tridiagonal matrix, ascending; NaN where a product is."""
    vectors: Floats
    """(m, m), its eigenvectors by column."""
    residual: float
    """Largest relative residual of the wanted eigenvalues."""


def iterate(
    product: Callable[[Floats], Floats], start: Floats, limit: int, k: int = 0, tolerance: float = 0.0
) -> Krylov:
    """Iterate from a start (P,) until the k largest eigenvalues are within a tolerance, or there is no new direction.

    Sums are those of `einsum`: their bits do not depend on the threads of a library.
    """
    from scipy.linalg.lapack import dstev

    limit, largest = min(limit, len(start)), 0.0
    alpha, beta, Q = np.empty(limit), np.zeros(limit), np.empty((min(limit, 15) + 1, len(start)))
    Q[0] = start / np.sqrt(np.einsum("i,i", start, start))
    for m in range(1, limit + 1):
        w, along = _orthogonal(product(Q[m - 1]), Q[:m])
        alpha[m - 1], length = along[-1], np.sqrt(np.einsum("i,i", w, w))
        largest = max(largest, abs(alpha[m - 1]), length)
        exhausted = not length > 1e-14 * largest
        ends = m == limit or (exhausted and m >= k)
        if ends or (m >= k > 0 and (2 < m < 9 or m % max(2, m // 8) == 0)):
            values, vectors, _ = dstev(alpha[:m], beta[: max(m - 1, 1)])
            last = np.abs(vectors[-1, m - k :]).max(initial=0.0)
            residual = float(length * last / max(abs(values[0]), abs(values[-1]), 1e-300))
            if ends or residual <= tolerance:
                break
        if m == len(Q):
            Q = np.concatenate([Q, np.empty_like(Q)])
        if exhausted:  # the start lies in an invariant space of fewer than k dimensions
            w, _ = _orthogonal(np.random.default_rng(m).standard_normal(len(start)), Q[:m])
            Q[m] = w / np.sqrt(np.einsum("i,i", w, w))
            continue
        beta[m - 1], Q[m] = length, w / length
    return Krylov(Q[:m], values if np.isfinite(largest) else np.full(m, np.nan), vectors, residual)


def _orthogonal(w: Floats, Q: Floats) -> tuple[Floats, Floats]:
    """Return a vector (P,) without its parts along rows of Q (m, P), and these parts; twice is enough (Parlett)."""
    along = np.einsum("ij,j", Q, w)
    w = w - np.einsum("i,ij", along, Q)
    return w - np.einsum("i,ij", np.einsum("ij,j", Q, w), Q), along


def largest_eigenvalues(
    product: Callable[[Floats], Floats],
    start: Floats,
    k: int = 1,
    *,
    tolerance: float = 1e-6,
    limit: int = LIMIT,
) -> tuple[Floats, Floats, float]:
    """Return the k largest eigenvalues, descending, their vectors (P, k), and the largest relative residual.

    Args:
        product: `v -> H v` (P,).
        start: (P,), the closer to the wanted vectors, the fewer products are needed; not 0.
        k: how many.
        tolerance: on `||H v - lambda v|| / max |lambda|`; vectors are orthogonalised fully.
        limit: most products.

    Source: Golub and Van Loan, Matrix Computations, Section 10.1.
    """
    P = len(start)
    if k > min(limit, P):
        raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")
    directions, values, vectors, residual = iterate(product, start, limit, k, tolerance)
    return values[: -k - 1 : -1], np.einsum("mp,mk->pk", directions, vectors[:, : -k - 1 : -1]), residual


def quadrature(product: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats:
    """Return nodes and weights (2, steps) with `v^T f(H) v / v^T v ~ sum_i weight_i f(node_i)` for a start `v` (P,).

    The rule is exact for polynomials of degree < 2 steps, and for every function once `v` spans an invariant space;
    NaN stands beyond it. The mean over random `v` is `tr f(H) / P`, the spectral density as a measure.

    Source: Golub and Welsch 1969; Ghorbani, Krishnan and Xiao 2019, Algorithm 1 (stochastic Lanczos quadrature).
    """
    nodes, rule = iterate(product, start, steps), np.full((2, steps), np.nan)
    rule[:, : len(nodes.values)] = nodes.values, nodes.vectors[0] ** 2 + 0.0 * nodes.values  # no weight without a node
    return rule


def density(rules: Floats, at: Floats, width: float) -> Floats:
    """Return the mean density (k,) at points `at` (k,) of rules (probes, 2, steps), every node a Gaussian of a width.

    Source: Ghorbani et al. 2019, Eq. 4.
    """
    nodes, weights = rules[:, 0].ravel(), rules[:, 1].ravel() / len(rules)
    there = ~np.isnan(nodes)
    gaussians = np.exp(-(((at[:, None] - nodes[there]) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(gaussians @ weights[there])
