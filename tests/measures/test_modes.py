"""Coverage of modes."""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.modes import coverage

CENTRES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def test_counts_good_samples_and_covered_modes():
    samples = np.array([[0.0, 0.29], [0.31, 0.0], [1.0, 0.1], [5.0, 5.0]])
    found = coverage(samples, CENTRES, 0.1)
    assert found.counts.tolist() == [1, 1, 0]
    assert (found.good, found.covered) == (0.5, 2)


def test_a_mode_needs_its_least_share():
    samples = np.concatenate([np.zeros((99, 2)), [[1.0, 0.0]]])
    assert coverage(samples, CENTRES, 0.1, least=0.01).covered == 2
    assert coverage(samples, CENTRES, 0.1, least=0.02).covered == 1


def test_nothing_good_covers_nothing():
    found = coverage(np.full((10, 2), 7.0), CENTRES, 0.1)
    assert (found.good, found.covered) == (0.0, 0)
