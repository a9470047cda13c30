"""The limit of Theorem 1, its norms and its function."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.least_distance import InfeasibleError
from experiments.phuong2021.theory.canonical_neurons import canonical_neurons, distance_to_limit, kkt_residual

X = np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-1.0, 0.0], [0.0, -1.0]])
Y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])


def test_max_margin_vectors_by_hand():
    found = canonical_neurons(X, Y)
    np.testing.assert_allclose(found.plus.w, [0.5, 0.5])
    np.testing.assert_allclose(found.minus.w, [-1.0, -1.0])
    assert found.plus.support.tolist() == [0, 1]
    assert max(found.plus.kkt_residual, found.minus.kkt_residual) < 1e-12
    assert found.spans
    assert found.share == pytest.approx(1 / 3)  # norms are 1 and 2 times sqrt(1/2)
    np.testing.assert_allclose(found.function([[1.0, 1.0]]), 1.0 / (2 * 3 * np.sqrt(0.5)))


def test_the_distance_is_0_on_the_limit_and_that_of_the_remainder_elsewhere():
    found = canonical_neurons(X, Y)
    w_plus, w_minus = found.plus.w, found.minus.w
    W = np.stack([3 * w_plus, 0 * w_plus, 2 * w_minus])
    assert distance_to_limit(W, w_plus, w_minus) == pytest.approx(0.0, abs=1e-15)
    W = np.array([[1.0, -1.0], [1.0, 1.0]])  # the first row is orthogonal to both rays
    assert distance_to_limit(W, w_plus, w_minus) == pytest.approx(np.sqrt(0.5))
    batch = np.stack([W, 10 * W])
    np.testing.assert_allclose(distance_to_limit(batch, w_plus, w_minus), np.sqrt([0.5, 0.5]))


def test_what_has_no_limit_is_refused():
    with pytest.raises(ValueError, match="both classes"):
        canonical_neurons([[1.0]], [1.0])
    with pytest.raises(InfeasibleError):
        canonical_neurons([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, -1.0])


def test_the_point_of_lemma_c1_is_a_kkt_point_and_others_are_not():
    found = canonical_neurons(X, Y)
    W, a = found.kkt_point([1.0, 2.0, 0.0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(np.maximum(X @ W.T, 0) @ a, [1, 1, 3, -1, -1])
    assert kkt_residual(W, a, X, Y) < 1e-12
    assert kkt_residual(3 * W, 3 * a, X, Y) < 1e-12
    assert kkt_residual(W * [1.2, 1.0], a, X, Y) > 0.05  # feasible once scaled, not stationary
    assert np.isnan(kkt_residual(-W, a, X, Y))
