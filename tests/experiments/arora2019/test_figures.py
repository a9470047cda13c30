"""Arora et al. 2019: the convex program and the theorem against what is known exactly, and
figures on trained runs.
"""

from itertools import pairwise

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.arora2019.theory.nuclear_norm import minimum_nuclear_norm
from dynamics_cli._bundled.experiments.arora2019.theory.singular_values import rates
from numpy.testing import assert_allclose, assert_array_equal


def low_rank(n, rank, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))


def test_the_least_nuclear_norm_of_two_rows_is_known():
    """Of `[[1, a], [a, x]]` with x unseen the least norm is at x = a^2 for |a| <= 1: rank 1,
    norm 1 + a^2.
    """
    for a in (0.3, 0.9):
        seen = np.array([[True, True], [True, False]])
        matrix, _ = minimum_nuclear_norm(np.array([[1.0, a], [a, 0.0]]), seen)
        assert matrix[1, 1] == pytest.approx(a**2, abs=1e-2)  # flat: an error of e costs e^2
        assert np.linalg.norm(matrix, "nuc") == pytest.approx(1 + a**2, rel=1e-5)


def test_the_certificate_is_feasible_and_bounds_every_matrix_with_these_entries():
    truth = low_rank(12, 2)
    rng = np.random.default_rng(1)
    seen = rng.random(truth.shape) < 0.4
    matrix, dual = minimum_nuclear_norm(truth, seen)
    assert_array_equal(matrix[seen], truth[seen])
    assert not dual[~seen].any()
    assert np.linalg.norm(dual, 2) <= 1 + 1e-12
    bound = np.sum(dual * truth)
    assert bound <= np.linalg.norm(matrix, "nuc") < (1 + 1e-5) * bound
    for size in (0.1, 1.0):
        other = np.where(seen, truth, matrix + size * rng.standard_normal(truth.shape))
        assert np.linalg.norm(other, "nuc") >= bound


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_rates_are_those_of_a_small_step_of_balanced_layers(depth):
    rng = np.random.default_rng(depth)
    U, V = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
    s = np.array([2.0, 1.1, 0.5, 0.1])
    G = rng.standard_normal((4, 4))
    h = 1e-6
    R = [V, *(np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(depth - 1)), U]
    W = [after * s ** (1 / depth) @ before.T for before, after in pairwise(R)]

    def chain(factors):
        return np.linalg.multi_dot(factors[::-1]) if len(factors) > 1 else factors[0]

    moved = []
    for k, one in enumerate(W):  # dL/dW_k = (W_N ... W_(k+1))^T G (W_(k-1) ... W_1)^T
        above, below = (chain(part) if part else np.eye(4) for part in (W[k + 1 :], W[:k]))
        moved.append(one - h * above.T @ G @ below.T)
    values, slope = rates(chain(W)[None], G[None], depth)
    assert_allclose(values[0], s, rtol=1e-12)
    assert_allclose((np.linalg.svd(chain(moved), compute_uv=False) - s) / h, slope[0], atol=2e-4)
