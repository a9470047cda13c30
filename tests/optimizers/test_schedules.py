"""Factors of the step size against their formulas, and as configs name them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Schedule
from dynamics_cli.optimizers.descent import ConstantRate, Cosine, Power, Step

CONFIG: dict[str, Any] = {
    "name": "scheduled",
    "dataset": {"kind": "points", "x": [[1.0]], "y": [1.0]},
    "architecture": {"kind": "two_layer", "width": 1},
    "initialization": {"kind": "balanced", "scale": 0.1},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 0.2, "iterations": 4},
}
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
    ],
)
def test_factors(schedule: Schedule, iterations: int, expected: list[float]) -> None:
    found = [schedule.factor(i, iterations) for i in range(iterations)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert all(isinstance(factor, float) for factor in found)


def test_a_cosine_ends_near_0() -> None:
    assert Cosine().factor(999, 1000) == pytest.approx((math.pi / 1000) ** 2 / 4, rel=1e-5)


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ("constant", [0.2, 0.2, 0.2, 0.2]),
        ({"kind": "step", "every": 2, "gamma": 0.5}, [0.2, 0.2, 0.1, 0.1]),
        ({"kind": "power", "exponent": 1}, [0.2, 0.1, 0.2 / 3, 0.05]),
    ],
)
def test_steps_of_an_optimizer(written: Any, steps: list[float]) -> None:
    optimizer: Any = load_config({**CONFIG, "optimizer": CONFIG["optimizer"] | {"schedule": written}}).optimizer
    np.testing.assert_allclose([optimizer.step_size(i, 4) for i in range(4)], steps, rtol=1e-15)


def test_without_a_schedule_the_step_is_the_same_number() -> None:
    optimizer: Any = load_config(CONFIG).optimizer
    assert {optimizer.step_size(i, 4) for i in range(4)} == {0.2}
    assert "schedule" not in optimizer.model_dump(exclude_none=True)  # so that hashes of old configs stay
