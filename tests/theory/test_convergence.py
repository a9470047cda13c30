from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.theory.convergence import pl_at_minimum_norm, pl_constant, pl_lower_bound, pl_ratio
from dynamics_cli.theory.minimum_norm import minimum_norm_interpolator

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([0.0, 0.2, 1.0]), st.sampled_from([1.0, 2.0]))
def test_the_constant_bounds_the_ratio_for_any_labels(seed, slope, factor):
    rng = np.random.default_rng(seed)
    x, y, W, a = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(6, 4)), rng.normal(size=6)
    c = pl_constant(x, W, a, slope=slope, loss_factor=factor)
    assert pl_ratio(x, y, W, a, slope=slope, loss_factor=factor) >= c * (1 - 1e-9)


def test_the_constant_is_reached():
    rng = np.random.default_rng(0)
    x, W, a = rng.normal(size=(3, 4)), rng.normal(size=(6, 4)), rng.normal(size=6)
    h = np.maximum(x @ W.T, 0) @ a
    angles = rng.normal(size=(20000, 3))
    ratios = [float(pl_ratio(x, h - 1e-3 * r, W, a)) for r in angles[:2000]]
    c = pl_constant(x, W, a)
    assert c <= min(ratios) < 1.05 * c


def test_at_the_minimum_norm_interpolator_of_orthonormal_inputs():
    x, y = np.eye(4), np.array([2.0, 1.0, -1.0, -0.5])
    W, a = minimum_norm_interpolator(x, y)
    exact = pl_at_minimum_norm(x, y)
    assert pl_constant(x, W, a) == pytest.approx(exact, rel=1e-12)
    assert exact == pytest.approx(2 * pl_lower_bound(x, y), rel=1e-12)  # 2 ||D_-||, where Lemma 5 claims ||D_-||
    assert pl_lower_bound(x, y) == pytest.approx(np.linalg.norm([1.0, 0.5]) / 4)


def test_a_single_label_of_a_sign_doubles_the_constant_once_more(two_points):
    assert pl_at_minimum_norm(np.eye(2), [2.0, -1.0]) == pytest.approx(4 * 0.5)
    x, y = two_points
    W, a = minimum_norm_interpolator(x, y)
    assert pl_at_minimum_norm(x, y, loss_factor=2.0) == pytest.approx(pl_constant(x, W, a, loss_factor=2.0), rel=1e-12)


@given(seeds)
def test_lemma_5_in_a_ball_of_balanced_weights(seed):
    rng = np.random.default_rng(seed)
    x, y = np.eye(4), np.array([2.0, 1.0, -1.0, -0.5])
    W, a = minimum_norm_interpolator(x, y)
    near = W + 0.02 * rng.normal(size=W.shape)
    ratio = pl_ratio(x, y, near, np.sign(a) * np.linalg.norm(near, axis=1))
    assert ratio >= pl_lower_bound(x, y)


def test_loss_decays_at_the_rate_near_the_end(descend):
    x, y = np.eye(2), np.array([2.0, -1.0])
    W, a = minimum_norm_interpolator(x, y)
    W, a = W * 1.001, a * 1.001
    lr = 1e-3
    W, a = descend(x, y, W, a, lr=lr, steps=3000)  # what decays faster is gone
    losses = []
    for _ in range(2):
        W, a = descend(x, y, W, a, lr=lr, steps=500)
        losses.append(np.mean((np.maximum(x @ W.T, 0) @ a - y) ** 2) / 2)
    rate = -np.log(losses[1] / losses[0]) / (500 * lr)
    assert rate == pytest.approx(pl_at_minimum_norm(x, y), rel=0.01)


def test_batches_zero_loss_and_errors():
    x, y = np.eye(2), np.array([2.0, -1.0])
    W, a = np.eye(2), np.array([2.0, -1.0])
    ratios = pl_ratio(x, y, np.stack([W, 2 * W]), np.stack([a, a]))
    assert np.isnan(ratios[0])
    assert ratios[1] > 0
    assert pl_constant(x, np.zeros((1, 2)), [0.0]) == 0.0
    assert pl_at_minimum_norm(x, [3.0, 4.0]) == pytest.approx(2 * 2.5)  # labels of one sign: 2 ||D_+||
    with pytest.raises(ValueError, match="label is 0"):
        pl_at_minimum_norm(x, [1.0, 0.0])
