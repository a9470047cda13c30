"""Margins that are known by hand, and the order of the solvers."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.chizat2020.solvers import largest_margin


@pytest.mark.parametrize(
    ("x", "y", "margin"),
    [
        ([[3.0, 4.0]], [1.0], 5.0),  # one neuron along the sample
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.5),  # a neuron for each, of half the norm
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 0.5**0.5),  # one neuron between them
        ([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0], 0.5),  # no neuron sees both
    ],
)
def test_the_largest_margin_is_that_by_hand(x, y, margin):
    found, bound = largest_margin(np.array(x), np.array(y))
    assert found == pytest.approx(margin, rel=0.02)
    assert bound == pytest.approx(margin, rel=0.02)
