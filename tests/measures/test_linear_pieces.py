from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynamics_cli.measures.linear_pieces import level_sets
from dynamics_cli.measures.two_layer import outputs

WINDOW = (-3.0, 3.0, -3.0, 3.0)


def deep(layers, x, slope):
    for k, (W, b) in enumerate(layers):
        x = x @ W.T + b
        if k < len(layers) - 1:
            x = np.where(x > 0, x, slope * x)
    return x[:, 0]


def crossed(segments, points) -> np.ndarray:
    """Return whether the straight way from each of the `points` (n, 2) to the next crosses `segments` oddly often."""
    p, q = np.asarray(points)[:, None], np.roll(points, -1, axis=0)[:, None]
    a, b = np.reshape(segments, (-1, 2, 2)).transpose(1, 0, 2)

    def side(u, v, w):
        return np.sign((v - u)[..., 0] * (w - u)[..., 1] - (v - u)[..., 1] * (w - u)[..., 0])

    both = (side(p, q, a) != side(p, q, b)) & (side(a, b, p) != side(a, b, q))
    return both.sum(axis=1) % 2 == 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("m", [3, 100])
@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_regions_agree_with_the_signs_of_the_network(m, bias, slope):
    level = 0.0 if slope else 0.1  # ReLU can be 0 on a whole region, which a way crosses without a change of sign
    rng = np.random.default_rng(m)
    W, a = rng.standard_normal((m, 2 + bias)), rng.choice([-1.0, 1.0], m)
    layers = [(W[:, :2], W[:, 2] if bias else np.zeros(m)), (a[None], np.zeros(1))]
    (segments,) = level_sets(layers, slope, WINDOW, (level,))
    x = rng.uniform(-3, 3, (3000, 2))

    def network(points):
        return outputs(np.column_stack([points, np.ones(len(points))]) if bias else points, W, a, slope) - level

    x = x[np.abs(network(x)) > 1e-9]
    positive = network(x) > 0
    np.testing.assert_array_equal(crossed(segments, x), positive != np.roll(positive, -1))
    assert np.abs(network(np.reshape(segments, (-1, 2)))).max(initial=0.0) < 1e-12 * m


def test_levels_of_a_deep_network():
    rng = np.random.default_rng(0)
    sizes = [2, 12, 12, 1]
    layers = [(rng.standard_normal((n, d)), rng.standard_normal(n)) for d, n in itertools.pairwise(sizes)]
    levels = np.array([-1.0, 0.0, 2.0])
    x = rng.uniform(-3, 3, (3000, 2))
    for level, segments in zip(levels, level_sets(layers, 0.1, WINDOW, levels), strict=True):
        above = deep(layers, x, 0.1) > level
        np.testing.assert_array_equal(crossed(segments, x), above != np.roll(above, -1))
        ends = np.reshape(segments, (-1, 2))
        assert deep(layers, ends, 0.1) == pytest.approx(np.full(len(ends), level), abs=1e-10)
