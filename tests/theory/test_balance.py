from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynamics_cli.measures.neurons import balancedness
from dynamics_cli.theory.balance import invariant_drift, is_balanced, step_drift
from dynamics_cli.theory.vector_field import neuron_vectors, square_loss, velocity

seeds = st.integers(0, 2**32 - 1)


def problem(seed, n=4, d=3, m=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(m, d)), rng.normal(size=m)


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
def test_velocity_is_minus_the_gradient(slope):
    x, y, W, a = problem(0)
    dW, da = velocity(x, y, W, a, slope=slope, loss_factor=2.0)
    step = 1e-6
    for j, i in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[j, i] += step
        down[j, i] -= step
        rise = square_loss(x, y, up, a, slope=slope, loss_factor=2.0)
        rise = rise - square_loss(x, y, down, a, slope=slope, loss_factor=2.0)
        assert -rise / (2 * step) == pytest.approx(dW[j, i], abs=1e-7)
    unit = step * np.eye(len(a))
    for j in range(len(a)):
        rise = square_loss(x, y, W, a + unit[j], slope=slope, loss_factor=2.0)
        rise = rise - square_loss(x, y, W, a - unit[j], slope=slope, loss_factor=2.0)
        assert -rise / (2 * step) == pytest.approx(da[j], abs=1e-7)


def test_losses_by_hand():
    x, y, W, a = np.eye(2), np.array([1.0, -2.0]), np.array([[3.0, -1.0]]), np.array([1.0])
    assert square_loss(x, y, W, a) == pytest.approx((4 + 4) / 4)
    assert square_loss(x, y, W, a, loss_factor=2.0) == pytest.approx((4 + 4) / 2)
    np.testing.assert_allclose(neuron_vectors(x, y, W, a), [[-1.0, 0.0]])


def test_snapshots_are_evaluated_together():
    x, y, W, a = problem(1)
    batch_W, batch_a = np.stack([W, 2 * W]), np.stack([a, -a])
    losses, (dW, da) = square_loss(x, y, batch_W, batch_a), velocity(x, y, batch_W, batch_a)
    assert losses[1] == pytest.approx(float(square_loss(x, y, 2 * W, -a)))
    np.testing.assert_allclose(dW[1], velocity(x, y, 2 * W, -a)[0])
    np.testing.assert_allclose(da[0], velocity(x, y, W, a)[1])


@given(seeds, st.sampled_from([0.0, 0.3, 1.0]))
def test_the_flow_conserves_the_invariant_to_first_order(seed, slope):
    x, y, W, a = problem(seed)
    dW, da = velocity(x, y, W, a, slope=slope)
    np.testing.assert_allclose(2 * a * da - 2 * np.sum(W * dW, axis=1), 0.0, atol=1e-12)


def test_lemma_1_along_an_integrated_flow():
    x, y, W, a = problem(7)

    def field(t, theta):
        dW, da = velocity(x, y, theta[:15].reshape(5, 3), theta[15:])
        return np.concatenate([dW.ravel(), da])

    path = solve_ivp(field, (0, 5), np.concatenate([W.ravel(), a]), rtol=1e-10, atol=1e-12, t_eval=[0, 1, 5]).y.T
    assert invariant_drift(path[:, :15].reshape(-1, 5, 3), path[:, 15:]).max() < 1e-8
    assert np.abs(path[-1] - path[0]).max() > 0.1


@settings(deadline=None)
@given(seeds)
def test_drift_of_one_descent_step_is_exact_and_negative_when_balanced(seed):
    x, y, W, a = problem(seed)
    a = np.sign(a) * np.linalg.norm(W, axis=1)
    dW, da = velocity(x, y, W, a, loss_factor=2.0)
    change = balancedness(W + 0.01 * dW, a + 0.01 * da) - balancedness(W, a)
    predicted = step_drift(x, y, W, a, 0.01, loss_factor=2.0)
    np.testing.assert_allclose(change, predicted, atol=1e-13)
    assert (predicted <= 1e-16).all()


def test_balanced_or_not():
    W = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert is_balanced(W, [-5.0, 0.0])
    assert is_balanced(1e-20 * W, [5e-20, 0.0])
    assert not is_balanced(W, [-5.1, 0.0])
    assert is_balanced(np.stack([W, W]), [[5.0, 0.0], [5.0, 1.0]]).tolist() == [True, False]
    assert invariant_drift(np.stack([W, W]), [[5.0, 0.0], [5.0, 1.0]]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="snapshots"):
        invariant_drift(W, [5.0, 0.0])
