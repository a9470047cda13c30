"""Gaussians on a ring or a grid."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.datasets.mixture import Mixture
from dynamics_cli.kinds import Streams


def test_ring_lies_on_the_circle():
    means = Mixture(modes=8, radius=2.0).centres()
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 2.0)
    np.testing.assert_allclose(np.linalg.norm(means - np.roll(means, 1, axis=0), axis=1), 4 * np.sin(np.pi / 8))


def test_grid_fills_the_square():
    means = Mixture(layout="grid", modes=9, radius=1.0).centres()
    assert {tuple(row) for row in means} == {(a, b) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)}


@pytest.mark.parametrize("layout", ["ring", "grid"])
def test_points_have_the_moments_of_the_mixture(layout):
    config = Mixture(layout=layout, modes=4, deviation=0.05, n=40_000)
    data = config.load(Streams(3))
    means = config.centres()
    apart = np.linalg.norm(data.x[:, None] - means[None], axis=2)
    nearest = apart.argmin(axis=1)
    assert set(data.y) == {1.0}
    # binomial: five standard deviations of a count of 10 000 are 433; of a variance, sqrt(2 / 80 000) each
    assert np.abs(np.bincount(nearest) - 10_000).max() < 433
    assert np.var(data.x - means[nearest]) == pytest.approx(0.05**2, rel=5 * np.sqrt(2 / 80_000))
    np.testing.assert_array_equal(config.load(Streams(3)).x, data.x)
    assert not np.array_equal(config.load(Streams(4)).x, data.x)
