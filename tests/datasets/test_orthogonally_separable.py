"""Orthogonally separable data: Eq. 1 at any size, the law of the rejection, one stream a seed."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.datasets.orthogonally_separable import OrthogonallySeparable
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Streams
from experiments.phuong2021.theory.separability import separability_violations


def draw(seed=0, **keys):
    return OrthogonallySeparable(**keys).load(Streams(seed))


@pytest.mark.parametrize(("n", "dim"), [(2, 2), (500, 20), (50, 300), (3, 7)])
@pytest.mark.parametrize("filtered", [True, False])
def test_eq_1_holds_at_any_size(n, dim, filtered):
    data = draw(n=n, dim=dim, filtered=filtered)
    assert (data.n, data.d) == (n, dim)
    assert set(data.y) == {-1.0, 1.0}
    assert separability_violations(data.x, data.y) == 0
    z = np.where(np.arange(dim) % 2 == 0, 1.0, -1.0)
    assert (data.x @ z >= 0).all() or not filtered


def test_the_law_is_that_of_keeping_gaussian_points():
    rng = np.random.default_rng(0)
    g = rng.standard_normal((400_000, 3))
    kept = g[((g > 0).all(1) | (g < 0).all(1)) & (g @ [1, -1, 1] >= 0)]
    data = draw(n=40_000, dim=3)
    for y in (1, -1):
        theirs, ours = kept[kept[:, 0] * y > 0], data.x[data.y == y]
        np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.02)
        np.testing.assert_allclose(ours.std(0), theirs.std(0), atol=0.02)
    assert np.mean(data.y > 0) == pytest.approx(np.mean(kept[:, 0] > 0), abs=0.01)


def test_seeds_are_independent_and_repeat():
    np.testing.assert_array_equal(draw(3, n=9, dim=4).x, draw(3, n=9, dim=4).x)
    assert not np.array_equal(draw(3, n=9, dim=4).x, draw(4, n=9, dim=4).x)


def test_both_classes_are_always_there():
    assert all(set(draw(seed, n=2, dim=2).y) == {-1.0, 1.0} for seed in range(20))


def test_one_dimension_has_no_negative_points_with_the_filter():
    assert draw(n=4, dim=1, filtered=False).n == 4
    with pytest.raises(InputError, match=r"dataset\.dim must be at least 2"):
        draw(n=4, dim=1)
