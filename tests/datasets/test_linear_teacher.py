from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.config import ConfigError, RunConfig, load_config
from dynamics_cli.datasets.linear_teacher import Gaussians, LinearTeacher
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Streams
from dynamics_cli.measures.least_distance import least_distance


def test_gaussians_are_separable_and_of_their_law():
    config = Gaussians(per_class=2000, mean=[2.0], dim=3, deviation=0.5, test_per_class=7)
    data = config.load(Streams(0))
    assert data.x.shape == (4000, 3)
    assert data.x_test is not None
    assert data.x_test.shape == (14, 3)
    for sign in (1, -1):
        x = data.x[data.y == sign]
        np.testing.assert_allclose(x.mean(axis=0), [2.0 * sign, 0, 0], atol=0.05)
        np.testing.assert_allclose(x.std(axis=0), 0.5, rtol=0.05)
    assert (data.y * data.x[:, 0] > 0).all()
    assert not np.array_equal(data.x, config.load(Streams(1)).x)
    np.testing.assert_array_equal(data.x, config.load(Streams(0)).x)


def test_a_fixed_draw_with_an_outlier_is_the_recipe_of_the_notes():
    r = np.random.default_rng(91)
    positive = 0.5 * r.standard_normal((50, 2)) + (0, 3)
    negative = 0.5 * r.standard_normal((50, 2)) - (0, 3)
    config = Gaussians(per_class=50, mean=[0.0, 3.0], deviation=0.5, outliers=[[7.52, -2.74]], draw=91)
    for seed in (0, 5):
        data = config.load(Streams(seed))
        np.testing.assert_allclose(data.x, np.concatenate([positive, [[7.52, -2.74]], negative]))
        assert data.y.tolist() == [1.0] * 51 + [-1.0] * 50


def test_a_linear_teacher_keeps_its_margin():
    data = LinearTeacher(n=400, dim=5, margin=0.3, n_test=10).load(Streams(2))
    assert data.x.shape == (400, 5)
    assert set(data.y) == {-1.0, 1.0}
    assert 1 / np.linalg.norm(least_distance(data.y[:, None] * data.x).w) >= 0.3
    biased = LinearTeacher(n=4, dim=5, append_bias=True).load(Streams(2))
    assert biased.bias
    assert biased.d == 6


def test_a_margin_that_hardly_any_point_has_is_refused():
    with pytest.raises(InputError, match="smaller margin"):
        LinearTeacher(n=50, dim=2, margin=8.0).load(Streams(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("dataset.dim=1", "at least 2"),
        ("dataset.mean=[0.0, 0.0]", "must not be 0"),
        ("dataset.outliers=[[1.0]]", "has 1 coordinate"),
    ],
)
def test_settings_that_do_not_fit_are_named(change, message):
    from dynamics_cli._bundled import CONFIGS

    path = CONFIGS / "sarussi2021" / "outlier.yaml"
    assert isinstance(load_config(path), RunConfig)
    with pytest.raises(ConfigError, match=message):
        load_config(path, [change])
