from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.measures.neurons import cosines, directions, norms, parameter_norm_squared

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("scale", [1e-20, 1e-30])
def test_float32_weights_of_tiny_scale_do_not_underflow(scale):
    W = (scale * np.array([[3.0, 4.0]])).astype(np.float32)
    assert norms(W)[0] == pytest.approx(5 * scale, rel=1e-6)
    assert cosines(W, [4.0, 3.0])[0] == pytest.approx(24 / 25, rel=1e-6)
    assert parameter_norm_squared(W, np.float32([6 * scale])) == pytest.approx(61 * scale**2, rel=1e-5)


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
