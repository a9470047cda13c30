"""Lanczos iterations: the largest eigenvalues of a symmetric operator, and its spectral density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics_cli.measures.arrays import Floats


def largest_eigenvalues(
    product: Callable[[Floats], Floats],
    start: Floats,
    k: int = 1,
    *,
    tolerance: float = 1e-6,
    limit: int = 300,
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
    limit = min(limit, P)
    Q = np.empty((limit + 1, P))
    Q[0] = start / np.linalg.norm(start)
    alpha, beta = np.empty(limit), np.empty(limit)
    for j in range(limit):
        exhausted = _step(product, Q, j, alpha, beta)
        done = exhausted or j + 1 == limit
        if j + 1 >= k and (done or 1 < j < 8 or (j > 8 and j % 2)):
            values, vectors = _eigen(alpha, beta, j + 1)
            last = max(map(abs, vectors[-1, -k:].tolist()))
            residual = float(beta[j] * last / max(abs(values[0]), abs(values[-1]), 1e-300))
            if done or residual <= tolerance:
                return values[: -k - 1 : -1], Q[: j + 1].T @ vectors[:, : -k - 1 : -1], residual
        if done:  # the start lies in an invariant space of fewer than k dimensions
            w = np.random.default_rng(j).standard_normal(P)
            w -= (Q[: j + 1] @ w) @ Q[: j + 1]
            beta[j] = 0.0
            Q[j + 1] = w / np.linalg.norm(w)
    raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")


def quadrature(product: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats:
    """Return nodes and weights (2, steps) with `v^T f(H) v / v^T v ~ sum_i weight_i f(node_i)` for a start `v` (P,).

    The rule is exact for polynomials of degree < 2 steps, and for every function once `v` spans an invariant space;
    NaN stands beyond it. The mean over random `v` is `tr f(H) / P`, the spectral density as a measure.

    Source: Golub and Welsch 1969; Ghorbani, Krishnan and Xiao 2019, Algorithm 1 (stochastic Lanczos quadrature).
    """
    most = min(steps, len(start))
    Q = np.empty((most + 1, len(start)))
    Q[0] = start / np.linalg.norm(start)
    alpha, beta = np.empty(most), np.empty(most)
    for j in range(most):
        if _step(product, Q, j, alpha, beta):
            most = j + 1
            break
    values, vectors = _eigen(alpha, beta, most)
    rule = np.full((2, steps), np.nan)
    rule[:, :most] = values, vectors[0] ** 2 + 0.0 * values  # no weight where there is no node
    return rule


def density(rules: Floats, at: Floats, width: float) -> Floats:
    """Return the mean density (k,) at points `at` (k,) of rules (probes, 2, steps), every node a Gaussian of a width.

    Source: Ghorbani et al. 2019, Eq. 4.
    """
    nodes, weights = rules[:, 0].ravel(), rules[:, 1].ravel() / len(rules)
    there = ~np.isnan(nodes)
    gaussians = np.exp(-(((at[:, None] - nodes[there]) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(gaussians @ weights[there])


def _step(product: Callable[[Floats], Floats], Q: Floats, j: int, alpha: Floats, beta: Floats) -> bool:
    """Set `alpha_j`, `beta_j` and, unless there is none, the next direction `Q_{j+1}`; return whether there is none."""
    from dynamics_cli.measures.blas import lanczos_step

    w = np.array(product(Q[j]), np.float64, order="C")  # a copy: it is changed
    return bool(lanczos_step(Q.reshape(-1), w, j, alpha, beta))


def _eigen(alpha: Floats, beta: Floats, size: int) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors of the tridiagonal matrix of so many steps.

    Raises:
        numpy.linalg.LinAlgError: it has entries that are not finite.
    """
    from dynamics_cli.measures.blas import tridiagonal_eigen

    values, vectors = np.empty(size), np.empty((size, size))
    if tridiagonal_eigen(alpha, beta, size, values, vectors.reshape(-1)):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")
    return values, vectors.T
