"""Time along a run: sums of steps over losses, and of scheduled steps."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.kinds import GridClock, RescaledClock
from dynamics_cli.optimizers.descent import GradientDescent, Power


def test_rescaled_time_is_the_sum_of_steps_over_losses():
    losses = np.array([4.0, 2.0, 1.0, 0.5])
    clock = RescaledClock(0.1)
    times = np.concatenate([clock.advance(i, losses[i:j]) for i, j in ((0, 1), (1, 3), (3, 4))])
    np.testing.assert_allclose(times, [0.0, 0.025, 0.075, 0.175])
    assert clock.time == pytest.approx(0.375)


def test_scheduled_time_is_the_sum_of_the_steps():
    optimizer = GradientDescent(lr=0.5, iterations=3, schedule=Power(exponent=1))
    clock = optimizer.clock(3)
    assert isinstance(clock, GridClock)
    times = np.concatenate([clock.advance(0, np.ones(1)), clock.advance(1, np.ones(3))])
    np.testing.assert_allclose(times, 0.5 * np.array([0.0, 1.0, 1.5, 1.5 + 1 / 3]), rtol=1e-15)
    assert GradientDescent(lr=0.5, iterations=3).clock(3) is None
