from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.arguments import log_residual, solve_increasing
from scipy.optimize import brentq


def test_agrees_with_brentq_for_functions_of_very_different_steepness():
    powers = np.array([1.0, 3.0, 9.0, 41.0])

    def f(x, index):
        return x ** powers[index] - 0.3, powers[index] * x ** (powers[index] - 1)

    roots = solve_increasing(f, np.zeros(4), np.ones(4))
    expected = [brentq(lambda x, n=n: x**n - 0.3, 0, 1, xtol=1e-15) for n in powers]
    np.testing.assert_allclose(roots, expected, rtol=1e-14)


def test_wrong_slopes_infinite_values_and_roots_at_the_ends():
    def stepped(x, index):
        return np.where(x < 0.25, -np.inf, x - 0.75), np.full_like(x, 1e-9)

    assert solve_increasing(stepped, np.zeros(1), np.ones(1)) == pytest.approx(0.75, abs=2e-15)
    ends = solve_increasing(
        lambda x, index: (x - np.array([0.0, 1.0])[index], np.ones_like(x)), np.zeros(2), np.ones(2)
    )
    assert ends.tolist() == [0.0, 1.0]
    assert solve_increasing(lambda x, index: (x, x), np.empty(0), np.empty(0)).shape == (0,)


def test_the_residual_is_smooth_at_the_target():
    value, slope = log_residual(np.log([1.0, 2.0, 4.0]), np.zeros(3), np.log([2.0, 2.0, 2.0]))
    np.testing.assert_allclose(value, [-0.5, 0.0, np.log(2.0)], atol=1e-15)
    np.testing.assert_allclose(slope, [0.5, 0.5, 0.25])
