"""Assumption 1, cones, motion and alignment histories (Min et al. 2024)."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.losses.margin import Exponential
from dynamics_cli.measures.neurons import cosines
from dynamics_cli.measures.spectra import singular_values, stable_rank
from dynamics_cli.measures.two_layer import outputs
from experiments.min2024.theory import cones
from experiments.min2024.theory.history import alignment_history, hidden_gradient, motion

rng = np.random.default_rng(0)


def test_correlation_in_blocks_equals_the_whole_matrix() -> None:
    n = cones.BLOCK + 37
    x, y = rng.standard_normal((n, 5)) + 0.3, rng.choice([-1.0, 1.0], n)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    products, upper = u @ u.T, np.triu(np.ones((n, n), bool), 1)
    same = upper & (y[:, None] == y)
    found = cones.correlation(x, y)
    assert found.same == pytest.approx(np.mean(products[same] > 0))
    assert found.different == pytest.approx(np.mean(products[upper & ~same] < 0))
    assert found.mu == pytest.approx((products * np.outer(y, y))[upper].min())


def test_motion_is_the_derivative_along_the_flow() -> None:
    x, y = rng.standard_normal((30, 6)), rng.choice([-1.0, 1.0], 30)
    W, a, loss = rng.standard_normal((4, 6)), rng.standard_normal(4), Exponential()
    value, gradient = hidden_gradient(x, y, W, a, loss)
    assert value == pytest.approx(float(loss.total(outputs(x, W, a), y)))
    step = 1e-6
    moved = W - step * gradient
    _, growth, turns = motion(x, y, W, a, loss)
    assert growth == pytest.approx((np.sum(moved**2) - np.sum(W**2)) / step, rel=1e-3)
    turned = moved / np.linalg.norm(moved, axis=1, keepdims=True) - W / np.linalg.norm(W, axis=1, keepdims=True)
    assert turns == pytest.approx(np.linalg.norm(turned, axis=1).sum() / step, rel=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-200])
def test_alignment_history_equals_single_states(scale: float) -> None:
    W, v = scale * rng.standard_normal((70, 5, 8)), rng.standard_normal((70, 5))
    v[:, 0], v[:, 1] = 1.0, -1.0
    v[3] = np.abs(v[3])  # V_- is empty once
    plus, minus = rng.standard_normal(8), rng.standard_normal(8)
    found = alignment_history(W, v, plus, minus)
    k = 66
    each = cosines(W[k], plus)[v[k] > 0]
    assert (found.plus.low[k], found.plus.high[k]) == pytest.approx((each.min(), each.max()))
    assert found.minus.mean[k] == pytest.approx(cosines(W[k][v[k] < 0].mean(axis=0)[None], minus)[0])
    assert np.isnan([found.minus.mean[3], found.minus.low[3], found.minus.high[3]]).all()
    assert found.smaller[k] == min(found.plus.mean[k], found.minus.mean[k])
    assert found.smaller[3] == found.plus.mean[3]
    np.testing.assert_allclose(found.stable_rank, stable_rank(W))
    if scale == 1.0:
        np.testing.assert_allclose(found.squared_norm, singular_values(W)[:, 0] ** 2)
