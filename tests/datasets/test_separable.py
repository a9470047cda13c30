"""Data of two classes or several places: their laws, separability, one stream a seed."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.phuong2021.datasets.orthogonally_separable import (
    OrthogonallySeparable,
)
from dynamics_cli._bundled.experiments.phuong2021.theory.separability import separability_violations
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.datasets.separable import Gaussians
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Streams


def test_gaussians_are_separable_and_of_their_law():
    config = Gaussians(per_class=2000, mean=[2.0], dim=3, deviation=0.5, test_per_class=7)
    data = config.load(Streams(0))
    assert data.x.shape == (4000, 3)
    assert data.x_test.shape == (14, 3)
    for sign in (1, -1):
        x = data.x[data.y == sign]
        assert_allclose(x.mean(axis=0), [2.0 * sign, 0, 0], atol=0.05)
        assert_allclose(x.std(axis=0), 0.5, rtol=0.05)
    near = Gaussians(per_class=300, mean=[0.2, 0.1], deviation=1.0).load(Streams(0))
    assert (near.y * (near.x @ [0.2, 0.1]) > 0).all()
    assert not np.array_equal(data.x, config.load(Streams(1)).x)
    assert_array_equal(data.x, config.load(Streams(0)).x)


def test_a_fixed_draw_with_an_outlier_is_the_recipe_of_the_notes():
    r = np.random.default_rng(91)
    positive = 0.5 * r.standard_normal((50, 2)) + (0, 3)
    negative = 0.5 * r.standard_normal((50, 2)) - (0, 3)
    config = Gaussians(
        per_class=50, mean=[0.0, 3.0], deviation=0.5, outliers=[[7.52, -2.74]], draw=91
    )
    for seed in (0, 5):
        data = config.load(Streams(seed))
        assert_allclose(data.x, np.concatenate([positive, [[7.52, -2.74]], negative]))
        assert data.y.tolist() == [1.0] * 51 + [-1.0] * 50


def draw(seed=0, **keys):
    return OrthogonallySeparable(**keys).load(Streams(seed))


@pytest.mark.parametrize(("n", "dim"), [(2, 2), (500, 20), (50, 300), (3, 7)])
def test_eq_1_of_phuong_and_lampert_holds_at_any_size(n, dim):
    data = draw(n=n, dim=dim)
    assert (data.n, data.d) == (n, dim)
    assert set(data.y) == {-1.0, 1.0}
    assert separability_violations(data.x, data.y) == 0
    assert (data.x @ np.where(np.arange(dim) % 2 == 0, 1.0, -1.0) >= 0).all()


def test_seeds_are_independent_and_both_classes_are_always_there():
    assert_array_equal(draw(3, n=9, dim=4).x, draw(3, n=9, dim=4).x)
    assert not np.array_equal(draw(3, n=9, dim=4).x, draw(4, n=9, dim=4).x)
    assert all(set(draw(seed, n=2, dim=2).y) == {-1.0, 1.0} for seed in range(20))
    with pytest.raises(InputError, match=r"dataset\.dim must be at least 2"):
        draw(n=4, dim=1)
