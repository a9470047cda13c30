from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.measures.neurons import (
    angle_of,
    balancedness,
    cosines,
    directions,
    kinks,
    norms,
    parameter_norm_squared,
    relative_movement,
    signs,
)

seeds = st.integers(0, 2**32 - 1)


def test_norms_of_hand_computed_neurons_and_of_batches():
    W = np.array([[3.0, 4.0], [0.0, 0.0], [-5.0, 12.0]])
    assert norms(W).tolist() == [5.0, 0.0, 13.0]
    assert norms(np.stack([W, 2 * W])).shape == (2, 3)
    assert norms(np.stack([W, 2 * W]))[1].tolist() == [10.0, 0.0, 26.0]


@pytest.mark.parametrize("scale", [1e-20, 1e-30])
def test_float32_weights_of_tiny_scale_do_not_underflow(scale):
    W = (scale * np.array([[3.0, 4.0]])).astype(np.float32)
    assert norms(W)[0] == pytest.approx(5 * scale, rel=1e-6)
    assert cosines(W, [4.0, 3.0])[0] == pytest.approx(24 / 25, rel=1e-6)
    assert balancedness(W, np.float32([6 * scale]))[0] == pytest.approx(11 * scale**2, rel=1e-5)


def test_norms_do_not_underflow_in_float64_either():
    assert norms([[3e-200, 4e-200]])[0] == pytest.approx(5e-200, rel=1e-12)
    assert norms([[3e200, 4e200]])[0] == pytest.approx(5e200, rel=1e-12)


@given(seeds, st.floats(1e-100, 1e100))
def test_directions_and_cosines_ignore_scale_and_norms_follow_it(seed, scale):
    rng = np.random.default_rng(seed)
    W, v = rng.normal(size=(4, 3)), rng.normal(size=3)
    np.testing.assert_allclose(directions(scale * W), directions(W), rtol=1e-12)
    np.testing.assert_allclose(cosines(scale * W, v / scale), cosines(W, v), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(norms(scale * W), scale * norms(W), rtol=1e-12)


@given(seeds)
def test_norms_and_cosines_are_invariant_under_rotations(seed):
    rng = np.random.default_rng(seed)
    W, v = rng.normal(size=(5, 4)), rng.normal(size=4)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    np.testing.assert_allclose(norms(W @ Q), norms(W), rtol=1e-12)
    np.testing.assert_allclose(cosines(W @ Q, v @ Q), cosines(W, v), atol=1e-12)


def test_zero_neuron_has_neither_direction_nor_cosine():
    W = np.array([[0.0, 0.0], [0.0, 2.0]])
    assert np.isnan(directions(W)[0]).all()
    assert np.isnan(cosines(W, [1.0, 0.0])[0])
    assert cosines(W, [1.0, 0.0])[1] == 0.0
    assert np.isnan(cosines(W, [0.0, 0.0])).all()


def test_cosines_with_one_vector_a_neuron():
    assert cosines([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, -3.0]]).tolist() == [1.0, -1.0]


def test_kinks_are_where_the_preactivation_vanishes():
    W = np.array([[2.0, 1.0], [-1.0, 3.0], [0.0, 1.0]])
    places = kinks(W)
    assert places[:2].tolist() == [-0.5, 3.0]
    assert np.isnan(places[2])
    np.testing.assert_allclose(W[:2, 0] * places[:2] + W[:2, 1], 0.0, atol=1e-15)


def test_signs_balance_and_norms_of_a_network():
    W, a = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([-5.0, 2.0])
    assert signs(a).tolist() == [-1.0, 1.0]
    assert balancedness(W, a).tolist() == [0.0, 3.0]
    assert parameter_norm_squared(W, a) == 25 + 25 + 1 + 4
    assert parameter_norm_squared(np.stack([W, W]), np.stack([a, a])).tolist() == [55.0, 55.0]


def test_relative_movement():
    W_0 = np.array([[3.0, 4.0], [0.0, 0.0]])
    W = np.stack([W_0, W_0 + np.array([[0.0, 1.0], [1.0, 0.0]])])
    moved = relative_movement(W, W_0)
    assert moved[:, 0].tolist() == [0.0, 0.2]
    assert np.isnan(moved[:, 1]).all()


def test_angles_in_degrees():
    W = np.array([[2.0, 1.0], [-0.5, 1.0], [-1.0, -0.0], [0.0, -1.0], [0.0, 0.0]])
    angles = angle_of(W)
    np.testing.assert_allclose(angles[:4], [26.565051, 116.565051, 180.0, -90.0], atol=1e-6)
    assert np.isnan(angles[4])
