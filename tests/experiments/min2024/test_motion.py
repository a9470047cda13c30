"""Changes in norms and directions of neurons (Min et al. 2024, Appendix A.5)."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.min2024.theory.motion import motion

rng = np.random.default_rng(0)


def test_motion_is_the_derivative_along_the_flow():
    W, gradient = rng.standard_normal((2, 4, 6))
    step = 1e-8
    moved = W - step * gradient
    growth, turns = motion(W, gradient)
    assert growth == pytest.approx((np.sum(moved**2) - np.sum(W**2)) / step, rel=1e-3)
    turned = moved / np.linalg.norm(moved, axis=1, keepdims=True) - W / np.linalg.norm(
        W, axis=1, keepdims=True
    )
    assert turns == pytest.approx(np.linalg.norm(turned, axis=1).sum() / step, rel=1e-3)
