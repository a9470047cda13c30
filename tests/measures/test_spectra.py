from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.measures.spectra import (
    explained_variance,
    leading_directions,
    project,
    singular_values,
    stable_rank,
)

seeds = st.integers(0, 2**32 - 1)
DIAGONAL = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])


@given(seeds, st.sampled_from([1e-20, 1e-100, 1.0, 1e50]))
def test_scale_and_rotation_invariance(seed, scale):
    rng = np.random.default_rng(seed)
    W, Q = rng.normal(size=(5, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(stable_rank(scale * W @ Q), stable_rank(W), rtol=1e-10)
    np.testing.assert_allclose(explained_variance(scale * W @ Q), explained_variance(W), rtol=1e-9)
    np.testing.assert_allclose(singular_values(scale * W), scale * singular_values(W), rtol=1e-12)
    assert 1.0 <= stable_rank(W) <= 3.0


def test_leading_directions_are_orthonormal_deterministic_and_capture_the_variance():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(20, 6)) * [1, 5, 1, 1, 3, 1]
    V = leading_directions(W, 2)
    np.testing.assert_allclose(V @ V.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(leading_directions(-1e-20 * W, 2), V, atol=1e-9)
    assert (V[np.arange(2), np.abs(V).argmax(axis=1)] > 0).all()
    captured = np.sum(project(W, V) ** 2) / np.sum(W**2)
    assert captured == pytest.approx(explained_variance(W)[:2].sum(), rel=1e-12)
