"""Directions through the weights: their norms, and the plane of a trajectory that lies in one."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.landscape import filter_normalised, principal_plane


def test_every_filter_of_a_random_direction_is_as_long_as_the_weights_own() -> None:
    rng = np.random.default_rng(0)
    weights = {"a": rng.standard_normal((3, 4)), "b": rng.standard_normal(5), "c": rng.standard_normal((2, 3, 2, 2))}
    weights["a"][1] = 0.0
    direction = filter_normalised(weights, np.random.default_rng(1))
    for name, axes in (("a", (1,)), ("b", (0,)), ("c", (1, 2, 3))):
        assert direction[name].shape == weights[name].shape
        assert np.sqrt((direction[name] ** 2).sum(axes)) == pytest.approx(np.sqrt((weights[name] ** 2).sum(axes)))
    assert not np.allclose(direction["c"], weights["c"])


def test_the_plane_of_a_trajectory_in_a_plane_is_that_plane() -> None:
    rng = np.random.default_rng(2)
    plane = np.linalg.qr(rng.standard_normal((9, 2)))[0].T
    coordinates = rng.standard_normal((6, 2)) * [5.0, 1.0]
    moves = coordinates @ plane
    directions, path, shares = principal_plane(moves)
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(path @ directions, moves, atol=1e-12)
    s = np.linalg.svd(moves, compute_uv=False)
    np.testing.assert_allclose(shares, s[:2] ** 2 / np.sum(s**2), atol=1e-12)
    line = principal_plane(np.outer([0.0, 1.0, 3.0], plane[0]))
    assert (line[2][1], np.abs(line[0][1]).max()) == (0.0, 0.0)
