import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.phases import (
    largest_epsilon,
    phase_times,
)
from numpy.testing import assert_allclose


def test_times_by_hand_for_orthonormal_points():
    # ||D+|| = 1, ||D-|| = 1/2, r = 2
    x = np.eye(2)
    y = np.array([2.0, -1.0])
    times = phase_times(x, y, np.exp(-10.0), 0.01)
    ends = [times.aligned, times.first_fitted, times.saddle_left, times.second_fitted]
    assert_allclose(ends, [0.2, 10.3, 19.8, 21.2])


def test_largest_epsilon_satisfies_both_conditions_of_appendix_b2_tightly():
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.normal(size=6) * [1, 1, 1, -1, -1, -1]
        y[:3], y[3:] = np.abs(y[:3]), -np.abs(y[3:])
        eps = largest_epsilon(np.eye(6), y)
        plus = np.linalg.norm(y[y > 0]) / 6
        minus = np.linalg.norm(y[y < 0]) / 6
        if minus > plus:
            y, plus, minus = -y, minus, plus
        alpha = (y[y > 0] ** 2).min() / 72 / plus**2
        beta = (y[y < 0] ** 2).min() / 72 / minus**2
        slack = [
            1 - eps - (1 + 3 * eps) * max(1 - alpha, minus / plus),
            1 - eps - (1 + 3 * plus / minus * eps) * (1 - beta),
        ]
        assert min(slack) == pytest.approx(0.0, abs=1e-12)
        assert 0 < eps < 1
        times = phase_times(np.eye(6), y, 1e-6, 0.999 * eps)
        assert times.aligned < times.first_fitted < times.saddle_left < times.second_fitted
