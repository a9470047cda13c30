"""Factors of the step size against their formulas, as configs name them, and time along a run:
sums of steps.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_cli.kinds import Clock, RescaledClock
from dynamics_cli.optimizers.descent import (
    ConstantRate,
    Cosine,
    GradientDescent,
    Piecewise,
    Power,
    Step,
    WarmUpStableDecay,
)

HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("schedule", "iterations", "expected"),
    [
        (ConstantRate(), 3, [1, 1, 1]),
        (Cosine(), 4, [1, (1 + HALF) / 2, 0.5, (1 - HALF) / 2]),  # (1 + cos(pi i / 4)) / 2
        (Cosine(warm_up=2), 6, [0.5, 1, 1, (1 + HALF) / 2, 0.5, (1 - HALF) / 2]),
        (Cosine(warm_up=5), 3, [0.2, 0.4, 0.6]),  # a run that ends while it still warms up
        (Step(every=2), 5, [1, 1, 0.1, 0.1, 0.01]),
        (Step(every=1, gamma=0.5), 4, [1, 0.5, 0.25, 0.125]),
        (Power(exponent=1), 4, [1, 1 / 2, 1 / 3, 1 / 4]),
        (Power(exponent=0.5, scale=2), 3, [1, 1 / math.sqrt(1.5), HALF]),
        (Power(exponent=0), 3, [1, 1, 1]),
        (WarmUpStableDecay(warm_up=2, decay=4), 8, [0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25]),
        (WarmUpStableDecay(decay=2, shape="cosine"), 3, [1, 1, 0.5]),
        (WarmUpStableDecay(decay=4, shape="sqrt"), 4, [1, 0.5, 1 - HALF, 1 - math.sqrt(0.75)]),
        (WarmUpStableDecay(warm_up=4, decay=4), 4, [0.25, 0.5, 0.5, 0.25]),
        (Piecewise(at=[1, 3, 4], factors=[0.0, 1.0, 0.5]), 6, [0, 0, 0.5, 1, 0.5, 0.5]),
        (Piecewise(at=[1, 3], factors=[0.2, 2.0], between="constant"), 4, [0.2, 0.2, 0.2, 2]),
        (Piecewise(at=[0, 2], factors=[1.0, 0.01], between="geometric"), 3, [1, 0.1, 0.01]),
    ],
)
def test_factors(schedule, iterations, expected):
    found = [schedule.factor(i, iterations) for i in range(iterations)]
    assert_allclose(found, expected, rtol=1e-14)
    assert all(isinstance(factor, float) for factor in found)


def test_rescaled_time_is_the_sum_of_steps_over_losses():
    losses = np.array([4.0, 2.0, 1.0, 0.5])
    clock = RescaledClock(0.1)
    times = np.concatenate([clock.advance(i, losses[i:j]) for i, j in ((0, 1), (1, 3), (3, 4))])
    assert_allclose(times, [0.0, 0.025, 0.075, 0.175])
    assert clock.time == pytest.approx(0.375)


def test_scheduled_time_is_the_sum_of_the_steps():
    optimizer = GradientDescent(lr=0.5, iterations=3, schedule=Power(exponent=1))
    clock = optimizer.clock(3)
    assert isinstance(clock, Clock)
    times = np.concatenate([clock.advance(0, np.ones(1)), clock.advance(1, np.ones(3))])
    assert_allclose(times, 0.5 * np.array([0.0, 1.0, 1.5, 1.5 + 1 / 3]), rtol=1e-15)
    assert GradientDescent(lr=0.5, iterations=3).clock(3) is None
