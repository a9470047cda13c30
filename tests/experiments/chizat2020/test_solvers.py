"""Margins that are known by hand, and the order of the solvers."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.chizat2020.solvers import hidden, largest_margin, output_layer


@pytest.mark.parametrize(
    ("x", "y", "margin"),
    [
        ([[3.0, 4.0]], [1.0], 5.0),  # one neuron along the sample
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.5),  # a neuron for each, of half the norm
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 0.5**0.5),  # one neuron between them
        ([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0], 0.5),  # no neuron sees both
    ],
)
def test_the_largest_margin_is_that_by_hand(x: list[list[float]], y: list[float], margin: float) -> None:
    found, bound = largest_margin(np.array(x), np.array(y))
    assert found == pytest.approx(margin, rel=0.02)
    assert bound == pytest.approx(margin, rel=0.02)


def test_no_output_layer_has_a_larger_margin_of_variation_norm_1() -> None:
    rng = np.random.default_rng(1)
    x, y, a = rng.standard_normal((20, 4)), np.sign(rng.standard_normal(20)), rng.standard_normal((60, 4))
    b = output_layer(a, x, y)
    margins = y * (hidden(a, x) @ b) / len(a)
    assert margins.min() == pytest.approx(1)
    found, bound = largest_margin(x, y)
    assert len(a) / (np.abs(b) @ np.linalg.norm(a, axis=1)) < found <= bound * (1 + 1e-9)
