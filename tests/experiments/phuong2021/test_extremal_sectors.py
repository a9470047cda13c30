"""Extremal sectors: Lemma 2 on random data, and the enumeration against a fine search on the circle."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.phuong2021.theory.extremal_sectors import G, extremal_directions, predicted_sector, sector_of


def separable(n, d, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return y[:, None] * np.abs(rng.standard_normal((n, d))), y


@pytest.mark.parametrize(("n", "d"), [(2, 2), (8, 2), (9, 3), (8, 4), (5, 6)])
@pytest.mark.parametrize("sign", [1, -1])
def test_lemma_2(n, d, sign):
    for seed in range(5):
        x, y = separable(n, d, seed)
        (one,) = extremal_directions(x, y, sign)
        np.testing.assert_array_equal(one.sector, predicted_sector(x, y, sign))
        np.testing.assert_array_equal(one.sector, sector_of(x, one.direction[None])[0])
        assert np.linalg.norm(one.direction) == pytest.approx(1.0)


def test_a_point_orthogonal_to_the_other_class_has_sign_0():
    x = np.array([[1.0, 0.1, 0.0], [0.3, 1.0, 0.0], [-1.0, -0.5, 0.4], [0.0, 0.0, 2.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(predicted_sector(x, y, 1), [1, 1, -1, 0])
    (one,) = extremal_directions(x, y, 1)
    np.testing.assert_array_equal(one.sector, [1, 1, -1, 0])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sign", [1, -1])
def test_general_data_against_a_search_on_the_circle(seed, sign):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((6, 2)), rng.choice([-1.0, 1.0], 6)
    angles = np.linspace(-np.pi, np.pi, 200_001)[:-1]
    values = sign * G(x, y, np.stack([np.cos(angles), np.sin(angles)], axis=1))
    peaks = np.flatnonzero((values > np.roll(values, 1) + 1e-14) & (values > np.roll(values, -1) + 1e-14))
    found = sorted(float(np.arctan2(one.direction[1], one.direction[0])) for one in extremal_directions(x, y, sign))
    np.testing.assert_allclose(found, angles[peaks], atol=1e-4)


def test_too_many_points_and_points_at_0_are_refused():
    with pytest.raises(ValueError, match="up to 14 points, not 15"):
        extremal_directions(np.ones((15, 2)), np.ones(15))
    with pytest.raises(ValueError, match="an input is 0"):
        extremal_directions([[0.0, 0.0]], [1.0])
