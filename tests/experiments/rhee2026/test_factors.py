"""Two factors that learn a matrix: the scalar laws of gradient descent."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.rhee2026.theory.factors import (
    cycle_losses,
    descent,
    growing_parts,
)
from numpy.testing import assert_allclose

from dynamics_cli.theory.linear_modes import linear_mode


def test_small_steps_follow_the_flow_of_two_layers():
    s = np.array([3.0, 1.0])
    factors = descent(np.array([0.1, 0.2]), s, 1e-4, 20000)
    exact = linear_mode(np.array([0.0, 0.5, 2.0]), [0.01, 0.04], s, 2)
    assert_allclose(factors[[0, 5000, 20000]] ** 2, exact, rtol=2e-3)


@pytest.mark.parametrize("step", [0.105, 0.11, 0.12])
def test_above_the_critical_step_the_first_mode_alternates(step):
    last = descent(np.array([0.01]), np.array([10.0]), step, 4000)[-2:, 0]
    assert_allclose(np.sort((10 - last**2) ** 2 / 2), cycle_losses(10.0, step), rtol=1e-6)


def test_weaker_modes_lose_what_stronger_ones_take():
    rng = np.random.default_rng(0)
    W1, W2 = rng.standard_normal((2, 4, 4))
    U, V = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
    means = [(W2.T @ U[:, i] + W1 @ V[:, i]) / 2 for i in range(4)]
    distances = [np.linalg.norm(means[0])]
    for i in range(1, 4):
        before = np.array(means[:i]).T
        nearest = before @ np.linalg.lstsq(before, means[i], rcond=None)[0]
        distances.append(np.linalg.norm(means[i] - nearest))
    assert_allclose(growing_parts(W1, W2, U, V), distances)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_step_of_the_size_of_orthogonal_weights_ends_a_mode_by_the_sign(sign):
    """`W1 (I + Q)` with an orthogonal Q of determinant -1, which has the eigenvalue -1."""
    rng = np.random.default_rng(0)
    W1, W2, P = (np.linalg.qr(rng.standard_normal((5, 5)))[0] for _ in range(3))
    P[:, 0] *= sign * np.linalg.det(W1) * np.linalg.det(W2) * np.linalg.det(P)
    stepped = np.linalg.svd(W1 + W2.T @ P, compute_uv=False)
    assert (stepped[-1] < 1e-12) == (sign < 0)
