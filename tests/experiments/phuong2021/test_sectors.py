"""Extremal sectors and the limit of Theorem 1, on small data by hand and against all sectors."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.phuong2021.theory import sectors
from numpy.testing import assert_allclose

from dynamics_cli.measures.least_distance import least_distance

X = np.array([[1.0, 0.2], [0.3, 0.9], [-0.8, -0.3], [-0.2, -1.1]])
Y = np.array([1.0, 1.0, -1.0, -1.0])


def test_the_largest_g_on_a_fine_circle_is_in_the_extremal_sector_and_is_climbed_to():
    angles = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for sign in (1, -1):
        heights = np.maximum(circle @ X.T, 0) @ (sign * Y)
        best = circle[np.argmax(heights)]
        wanted = sectors.extremal_sector(X, Y, sign)
        assert (sectors.sectors(best, X) == wanted).all()
        ends = sectors.climb(circle[::5000], X, sign * Y)
        moved = (ends @ X.T > 0).any(axis=1)
        assert moved.sum() > 10
        assert_allclose(ends[moved], np.tile(best, (moved.sum(), 1)), atol=1e-4)


def test_orthogonal_points_of_the_other_class_have_sign_0():
    x = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
    y = np.array([1.0, -1.0, -1.0])
    assert sectors.extremal_sector(x, y, 1).tolist() == [1, 0, -1]
    assert sectors.extremal_sector(x, y, -1).tolist() == [-1, 1, 1]


def test_residuals_are_zero_at_the_limit_and_not_beside_it():
    solutions = [least_distance(X[sign == Y]) for sign in (1, -1)]
    rays = np.stack([solution.w for solution in solutions])
    multipliers = (solutions[0].multipliers, solutions[1].multipliers)
    u = np.array([0.7, 0.2, 0.0])
    z = np.array([0.0, 0.0, 0.5])
    W = np.outer(u, rays[0]) + np.outer(z, rays[1])
    a = np.array([1.0, 1.0, -1.0]) * np.linalg.norm(W, axis=1)
    points = np.random.default_rng(0).standard_normal((50, 2))
    assert sectors.weight_residual(W, a, rays) == pytest.approx(0, abs=1e-12)
    assert sectors.output_residual(W, a, rays) == pytest.approx(0, abs=1e-12)
    assert sectors.function_residual(W, a, rays, points) == pytest.approx(0, abs=1e-12)
    turned = W @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    assert sectors.weight_residual(turned, a, rays) == pytest.approx(0.6, abs=1e-9)
    assert sectors.function_residual(turned, a, rays, points) > 0.1
    assert sectors.kkt_residual(X, Y, rays, multipliers, u, z) < 1e-12
    assert sectors.kkt_residual(X, Y, rays[::-1], multipliers, u, z) > 0.1


def test_a_condition_that_fails_after_it_held_is_counted():
    held = np.array([[False, True], [True, True], [False, True], [True, False]])
    assert sectors.left_after(held) == 2
