import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.alignment import D_minus, D_plus
from dynamics_cli._bundled.experiments.boursier2022.theory.growth import (
    fact_1_lambda,
    growth_loss,
    intermediate_saddle,
    lemma_5_log_lambda,
    limit_of_flow,
    logistic_growth,
    minimum_norm_value,
    one_sign_saddle_loss,
)
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.optimize import nnls

from dynamics_cli.measures.two_layer import outputs

# orthogonal; equal norms among the positive labels (2) and among the negative ones (0.5)
X = np.diag([2.0, 2.0, 0.5, 0.5])
Y = np.array([1.0, 0.4, -2.0, -0.7])


def square_loss(x, y, W, a, *, loss_factor=1.0):
    """Return Eq. 1 times `loss_factor`, of the shape of the batch of `W (..., m, d)`."""
    return 0.5 * loss_factor * np.mean((outputs(x, W, a) - y) ** 2, axis=-1)


def velocity(x, y, W, a, *, loss_factor=1.0):
    """Return `dW/dt = D_j a_j` `(m, d)` and `da/dt = <D_j, w_j>` `(m,)` (Eq. 3)."""
    z = x @ W.T
    D = loss_factor / len(y) * ((y - np.maximum(z, 0.0) @ a)[:, None] * (z > 0)).T @ x
    return D * a[:, None], np.sum(D * W, axis=1)


def flow_of_aligned_neurons(x, y, *, sign, times, u_0, factor):
    """Return sum ||w||^2 of three neurons of that sign, started along sign D and integrated with
    the full Eq. 3.
    """
    D = D_plus(x, y) if sign > 0 else D_minus(x, y)
    shares = np.sqrt(u_0 * np.array([0.5, 0.3, 0.2]))
    W = shares[:, None] * sign * D / np.linalg.norm(D)
    a = sign * shares
    d = x.shape[1]

    def field(t, theta):
        dW, da = velocity(x, y, theta[: 3 * d].reshape(3, d), theta[3 * d :], loss_factor=factor)
        return np.concatenate([dW.ravel(), da])

    path = solve_ivp(
        field,
        (0, times[-1]),
        np.concatenate([W.ravel(), a]),
        t_eval=times,
        rtol=1e-10,
        atol=1e-14,
        method="DOP853",
    ).y.T
    return path[:, : 3 * d].reshape(-1, 3, d), path[:, 3 * d :]


@pytest.mark.parametrize(("sign", "factor"), [(1, 1.0), (-1, 1.0), (1, 2.0)])
def test_logistic_growth_is_exact_for_equal_norms_within_a_sign(sign, factor):
    times = np.linspace(0, 60, 13)
    W, a = flow_of_aligned_neurons(X, Y, sign=sign, times=times, u_0=1e-6, factor=factor)
    u = np.sum(W**2, axis=(1, 2))
    assert_allclose(logistic_growth(times, 1e-6, X, Y, sign, loss_factor=factor), u, rtol=1e-6)
    other = np.zeros_like(u)
    loss = growth_loss(*((u, other) if sign > 0 else (other, u)), X, Y, loss_factor=factor)
    assert_allclose(loss, square_loss(X, Y, W, a, loss_factor=factor), rtol=1e-6)


@pytest.mark.parametrize("flip", [1, -1])
def test_the_saddle_is_stationary_half_fitted_and_strict(flip):
    x = np.diag([1.0, 0.7, 2.0])
    y = flip * np.array([2.0, 1.0, -0.5])
    saddle = intermediate_saddle(x, y)
    assert np.sign(saddle.a) == flip
    h = outputs(x, saddle.w[None], [saddle.a])
    assert_allclose(h, [*y[:2], 0.0], atol=1e-12)
    W = np.stack([saddle.w, np.zeros(3)])
    a = np.array([saddle.a, 0.0])
    assert square_loss(x, y, W, a) == pytest.approx(saddle.loss)
    for part in velocity(x, y, W, a):
        assert_allclose(part, 0.0, atol=1e-12)
    # a neuron of the other sign along the rest lowers the loss, to second order in its size
    e = x[2] / np.linalg.norm(x[2])
    down = square_loss(x, y, np.stack([saddle.w, 1e-3 * e]), [saddle.a, -flip * 1e-3])
    assert down < saddle.loss
    assert (saddle.loss - down) / 1e-6 == pytest.approx(0.5 * 2.0 / 3, rel=1e-3)  # |y| ||x|| / n


def test_the_saddle_of_one_sign_is_the_best_of_many_networks_of_that_sign():
    """For the five points of Figure 4, against positive neurons with 20 000 random directions."""
    x = np.column_stack([[-1.5, -1.0, 0.0, 0.25, 2.0], np.ones(5)])
    y = np.array([0.7, -0.3, -0.3, 0.4, 0.2])
    level = one_sign_saddle_loss(x, y, 1, loss_factor=2.0)
    assert level == pytest.approx(0.0636316, abs=5e-8)
    assert one_sign_saddle_loss(x, -y, -1) == pytest.approx(level / 2)
    assert one_sign_saddle_loss(x, np.abs(x[:, 0]), 1) == pytest.approx(0.0, abs=1e-15)  # convex
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, 20000)
    z = np.maximum(x @ np.stack([np.cos(angles), np.sin(angles)]), 0.0)
    best = nnls(z, y)[1] ** 2 / 5
    assert level - 1e-15 <= best <= level + 1e-5


def test_lemma_5_needs_a_ball_as_small_as_the_proof_of_lemma_15_asks(two_points):
    """By hand: with ||D_-|| = 0.559 and 60 neurons, 2 p sqrt(30) sqrt(0.559) = 0.2795 up to p^4, so
    that p = 0.0341, and lambda* = p^1920 = 10^-2816.
    """
    log = lemma_5_log_lambda(*two_points, 60, 0.125)
    length = np.linalg.norm(D_minus(*two_points))
    assert length == pytest.approx(0.559, abs=1e-3)
    assert log == pytest.approx(1920 * np.log10(length / 2 / (2 * np.sqrt(30 * length))), rel=1e-4)
    assert log == pytest.approx(-2816, abs=2)


def test_at_lambda_star_the_logistic_growth_is_at_the_bound_of_fact_1(two_points):
    """Neurons along D+ and -D- need no time to align, so that u_0 is the sum of their squared
    norms.
    """
    x, y = two_points
    epsilon = 0.125
    lambda_ = 1e-7
    D = np.array([D_plus(x, y), -D_minus(x, y)])
    W = 5 * lambda_ * D / np.linalg.norm(D, axis=1)[:, None]
    largest = fact_1_lambda(x, y, W, 5 * lambda_ * np.array([1.0, -1.0]), lambda_, epsilon)
    time = -(1 - epsilon) * np.log(largest) / np.linalg.norm(D[1])
    u = logistic_growth(np.array(time), (5 * largest) ** 2, x, y, -1)
    assert np.sqrt(2 * u) == pytest.approx(largest ** (epsilon / 5), rel=1e-9)


def test_the_limit_of_the_flow_interpolates_with_the_least_norm(two_points):
    x, y = two_points
    rng = np.random.default_rng(0)
    W = rng.normal(size=(40, 2))
    theta = limit_of_flow(x, y, W, np.linalg.norm(W, axis=1) * rng.choice([1, -1], 40))
    assert_allclose(outputs(x, theta[:, :-1], theta[:, -1]), y, atol=1e-12)
    assert np.sum(theta**2) == pytest.approx(minimum_norm_value(x, y))
    assert limit_of_flow(x, y, W, np.linalg.norm(W, axis=1)) is None  # no neuron in S-,1
