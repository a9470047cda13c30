"""Assumption 1, cones, motion and alignment histories (Min et al. 2024)."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.losses.margin import Exponential
from dynamics_cli.measures.two_layer import outputs
from experiments.min2024.theory.history import hidden_gradient, motion

rng = np.random.default_rng(0)


def test_motion_is_the_derivative_along_the_flow() -> None:
    x, y = rng.standard_normal((30, 6)), rng.choice([-1.0, 1.0], 30)
    W, a, loss = rng.standard_normal((4, 6)), rng.standard_normal(4), Exponential()
    value, gradient = hidden_gradient(x, y, W, a, loss)
    assert value == pytest.approx(float(loss.total(outputs(x, W, a), y)))
    step = 1e-8
    moved = W - step * gradient
    _, growth, turns = motion(x, y, W, a, loss)
    assert growth == pytest.approx((np.sum(moved**2) - np.sum(W**2)) / step, rel=1e-3)
    turned = moved / np.linalg.norm(moved, axis=1, keepdims=True) - W / np.linalg.norm(W, axis=1, keepdims=True)
    assert turns == pytest.approx(np.linalg.norm(turned, axis=1).sum() / step, rel=1e-3)
