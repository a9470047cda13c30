from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynamics_cli.measures.linear_pieces import (
    LevelSets,
    boundary_directions,
    level_sets,
    two_layer_pieces,
)
from dynamics_cli.measures.two_layer import outputs

WINDOW = (-3.0, 3.0, -3.0, 3.0)


def deep(layers, x, slope):
    for k, (W, b) in enumerate(layers):
        x = x @ W.T + b
        if k < len(layers) - 1:
            x = np.where(x > 0, x, slope * x)
    return x[:, 0]


def in_band(found: LevelSets, points: np.ndarray) -> np.ndarray:
    """Return the band of each of the `points` (n, 2), -1 outside the window; on a rim the later polygon decides."""
    places = np.asarray(points, np.float64)
    bands = np.full(len(places), -1, dtype=np.int64)
    for corners, band in zip(found.polygons, found.bands, strict=True):
        edges = np.roll(corners, -1, axis=0) - corners
        offsets = places[:, None, :] - corners  # (n, k, 2)
        cross = edges[:, 0] * offsets[..., 1] - edges[:, 1] * offsets[..., 0]
        bands[(cross >= -1e-12).all(axis=1)] = band
    return bands


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("m", [3, 100])
@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_regions_agree_with_the_signs_of_the_network(m, bias, slope):
    rng = np.random.default_rng(m)
    W, a = rng.standard_normal((m, 2 + bias)), rng.choice([-1.0, 1.0], m)
    found = level_sets(two_layer_pieces(W, a, bias=bias), slope, WINDOW)
    x = rng.uniform(-3, 3, (3000, 2))
    columns = np.column_stack([x, np.ones(len(x))]) if bias else x
    h = outputs(columns, W, a, slope)
    clear = np.abs(h) > 1e-9
    np.testing.assert_array_equal(in_band(found, x)[clear], (h > 0)[clear])
    assert found.area(0) + found.area(1) == pytest.approx(36.0, rel=1e-12)
    ends = np.concatenate([np.zeros((0, 2)), *found.segments[0]])
    ends = np.column_stack([ends, np.ones(len(ends))]) if bias else ends
    assert np.abs(outputs(ends, W, a, slope)).max(initial=0.0) < 1e-12 * m


def test_levels_of_a_deep_network():
    rng = np.random.default_rng(0)
    sizes = [2, 12, 12, 1]
    layers = [(rng.standard_normal((n, d)), rng.standard_normal(n)) for d, n in itertools.pairwise(sizes)]
    levels = np.array([-1.0, 0.0, 2.0])
    found = level_sets(layers, 0.1, WINDOW, levels)
    x = rng.uniform(-3, 3, (3000, 2))
    np.testing.assert_array_equal(in_band(found, x), np.searchsorted(levels, deep(layers, x, 0.1)))
    for level, segments in zip(levels, found.segments, strict=True):
        for segment in segments:
            assert deep(layers, segment, 0.1) == pytest.approx(np.full(2, level), abs=1e-10)


def test_lines_through_one_point_off_centre_come_to_an_end():
    W = np.random.default_rng(3).standard_normal((100, 2)) * 10
    found = level_sets(two_layer_pieces(W, np.ones(100)), 0.2, (-4.7, 4.1, -4.3, 4.4), (-1e-3, 1e-3))
    assert len(found.polygons) < 1000


def test_boundary_rays_are_where_the_level_set_is():
    rng = np.random.default_rng(1)
    W, a = rng.standard_normal((100, 2)), rng.choice([-1.0, 1.0], 100)
    angles = np.radians(boundary_directions(W, a, 0.2))
    assert np.abs(outputs(np.stack([np.cos(angles), np.sin(angles)], axis=1), W, a, 0.2)).max() < 1e-12
    circle = np.radians(np.arange(0.05, 360, 0.1))
    signs = np.sign(outputs(np.stack([np.cos(circle), np.sin(circle)], axis=1), W, a, 0.2))
    assert np.count_nonzero(signs != np.roll(signs, 1)) == len(angles)
