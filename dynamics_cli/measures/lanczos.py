"""The largest eigenvalues of a symmetric operator, by Lanczos iterations that begin where the last ones ended."""

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
    alpha, beta = np.zeros(limit), np.zeros(limit)
    for j in range(limit):
        w = product(Q[j])
        alpha[j] = Q[j] @ w
        for _ in range(2):  # twice is enough (Parlett)
            w = w - (Q[: j + 1] @ w) @ Q[: j + 1]
        beta[j] = np.linalg.norm(w)
        largest = np.abs(alpha[: j + 1]).max() + beta[: j + 1].max()
        done = beta[j] <= 1e-14 * largest or j + 1 == limit
        if j + 1 >= k and (done or j < 8 or j % 2):
            T = np.diag(alpha[: j + 1]) + np.diag(beta[:j], 1) + np.diag(beta[:j], -1)
            values, vectors = np.linalg.eigh(T)
            residual = float(beta[j] * np.abs(vectors[-1, -k:]).max() / max(np.abs(values).max(), 1e-300))
            if done or residual <= tolerance:
                return values[: -k - 1 : -1], Q[: j + 1].T @ vectors[:, : -k - 1 : -1], residual
        if done:  # the start lies in an invariant space of fewer than k dimensions
            w = np.random.default_rng(j).standard_normal(P)
            w -= (Q[: j + 1] @ w) @ Q[: j + 1]
            beta[j] = 0.0
            w /= np.linalg.norm(w)
            Q[j + 1] = w
            continue
        Q[j + 1] = w / beta[j]
    raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")
