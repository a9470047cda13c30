import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.high_dim import explained_variance
from numpy.testing import assert_allclose

from dynamics_cli.measures.spectra import leading_directions, project


def test_leading_directions_are_orthonormal_deterministic_and_capture_the_variance():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(20, 6)) * [1, 5, 1, 1, 3, 1]
    V = leading_directions(W, 2)
    assert_allclose(V @ V.T, np.eye(2), atol=1e-12)
    assert_allclose(leading_directions(-1e-20 * W, 2), V, atol=1e-9)
    assert (V[np.arange(2), np.abs(V).argmax(axis=1)] > 0).all()
    captured = np.sum(project(W, V) ** 2) / np.sum(W**2)
    assert captured == pytest.approx(explained_variance(W)[:2].sum(), rel=1e-12)
