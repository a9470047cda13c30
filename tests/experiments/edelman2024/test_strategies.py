"""The order in which strategies are the nearest to a network."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.edelman2024.strategies import Network


@pytest.mark.parametrize(
    ("nearest", "passed", "copies"),
    [
        ([0, 0, 0], 0, False),  # an untrained network is at uniform, which is no step
        ([0, 1, 1], 1, False),
        ([0, 1, 2], 2, True),
        ([0, 2, 2], 0, False),
        ([0, 2, 1], 1, False),
        ([0, 1, 2, 1], 2, False),
    ],
)
def test_what_counts_is_what_comes_after_the_uniform_start(nearest, passed, copies):
    K = len(nearest)
    distances = np.ones((K, 3))
    distances[np.arange(K), nearest] = 0.1
    zeros = np.zeros(K)
    network = Network(np.arange(K), zeros, zeros, distances, np.zeros(3))
    assert network.passed == passed
    assert network.copies == copies
