"""Lanczos iterations: the largest eigenvalues of a symmetric operator, and its spectral density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics_cli.measures.arrays import Floats

LIMIT = 300
"""Products of the largest eigenvalues, at most."""


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
    from dynamics_cli.engine.curvature import Spectrum

    P = len(start)
    if k > min(limit, P):
        raise ValueError(f"a space of {P} dimensions has no {k} eigenvalues")
    return Spectrum(P, limit, product).largest(start, k, tolerance)


def quadrature(product: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats:
    """Return nodes and weights (2, steps) with `v^T f(H) v / v^T v ~ sum_i weight_i f(node_i)` for a start `v` (P,).

    The rule is exact for polynomials of degree < 2 steps, and for every function once `v` spans an invariant space;
    NaN stands beyond it. The mean over random `v` is `tr f(H) / P`, the spectral density as a measure.

    Source: Golub and Welsch 1969; Ghorbani, Krishnan and Xiao 2019, Algorithm 1 (stochastic Lanczos quadrature).
    """
    from dynamics_cli.engine.curvature import Spectrum

    values, first = Spectrum(len(start), steps, product).quadrature(start)
    rule = np.full((2, steps), np.nan)
    rule[:, : len(values)] = values, first**2 + 0.0 * values  # no weight where there is no node
    return rule


def density(rules: Floats, at: Floats, width: float) -> Floats:
    """Return the mean density (k,) at points `at` (k,) of rules (probes, 2, steps), every node a Gaussian of a width.

    Source: Ghorbani et al. 2019, Eq. 4.
    """
    nodes, weights = rules[:, 0].ravel(), rules[:, 1].ravel() / len(rules)
    known = ~np.isnan(nodes)
    gaussians = np.exp(-(((at[:, None] - nodes[known]) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(gaussians @ weights[known])
