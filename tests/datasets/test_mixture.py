"""Gaussians on a ring or a grid, and clusters of two classes."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.chizat2020.datasets.clusters import Clusters
from dynamics_cli._bundled.experiments.tachet2018.datasets.mixture import Mixture
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.kinds import FreshStreams, Streams


def test_points_have_the_moments_of_the_mixture():
    config = Mixture(modes=4, deviation=0.05, n=40_000)
    data = config.load(Streams(3))
    means = config.centres()
    apart = np.linalg.norm(data.x[:, None] - means[None], axis=2)
    nearest = apart.argmin(axis=1)
    assert set(data.y) == {1.0}
    # binomial: five standard deviations of a count of 10 000 are 433; of a variance, sqrt(2 / 80
    # 000) each
    assert np.abs(np.bincount(nearest) - 10_000).max() < 433
    assert np.var(data.x - means[nearest]) == pytest.approx(0.05**2, rel=5 * np.sqrt(2 / 80_000))
    assert_array_equal(config.load(Streams(3)).x, data.x)
    assert not np.array_equal(config.load(Streams(4)).x, data.x)


def test_clusters_are_labelled_by_their_place_alone():
    section = Clusters(n=900, dim=4, k=3, n_test=60, append_bias=True)
    data = section.samples(Streams(1))
    centres = section.centres()
    assert_allclose(sorted(set(centres[:, 0])), [-0.5, -0.125, 0.25])
    x = np.concatenate([data.x, data.x_test])
    place = np.linalg.norm(x[:, None, :2] - centres, axis=2).argmin(1)
    assert np.linalg.norm(x[:, :2] - centres[place], axis=1).max() < 1 / 8
    of_place = [set(np.concatenate([data.y, data.y_test])[place == p]) for p in range(9)]
    assert sorted(map(len, of_place)) == [1] * 9
    assert of_place.count({-1.0}) == 4
    assert np.abs(x[:, 2:4]).max() <= 0.5
    assert (x[:, 4] == 1).all()
    fresh = section.fresh(FreshStreams(1, 3), 50)
    assert_array_equal(
        [of_place[p] for p in np.linalg.norm(fresh.x[:, None, :2] - centres, axis=2).argmin(1)],
        [{y} for y in fresh.y],
    )
