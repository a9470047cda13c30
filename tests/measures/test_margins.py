"""Normalised and smoothed margins."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.classification import normalised_margin, smoothed_margin


def test_margins_of_equations_5_and_6():
    h, y = np.array([2.0, -3.0, 5.0]), np.array([1.0, -1.0, 1.0])
    assert normalised_margin(h, y, 4.0) == pytest.approx(0.5)
    assert np.isnan(normalised_margin(h, y, 0.0))
    assert smoothed_margin(0.5, 1.0) == pytest.approx(np.log(1 / (np.exp(0.5) - 1)))
    # one point with margin q: L = log(1 + exp(-q)), so exp(L) - 1 = exp(-q) and the smoothed margin is q
    q = np.array([0.1, 3.0, 30.0, 600.0])
    np.testing.assert_allclose(smoothed_margin(np.log1p(np.exp(-q)), 2.0), q / 2, rtol=1e-12)
    assert np.isfinite(smoothed_margin(1000.0, 1.0))
    with pytest.raises(ValueError, match="not negative"):
        smoothed_margin(-1.0, 1.0)
