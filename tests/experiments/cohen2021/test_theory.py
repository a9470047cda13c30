"""The central flow, the quadratic model and what is read off a run, against values worked out by
hand.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.cohen2021.taylor import taylor
from dynamics_cli._bundled.experiments.cohen2021.theory.central_flow import (
    central_flow,
    complementary,
    loss_of,
    states_of,
    third,
    trained_weights,
)
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.gradients.derivatives import derivatives_of
from dynamics_cli.training.problem import build_problem
from tests.experiments.helpers import one_run

TWO_WEIGHTS = (
    "dataset={kind: points, x: [[1.0]], y: [1.0]}",
    "architecture={kind: two_layer, width: 1, activation: linear}",
    "initialization={kind: values, hidden_weight: [[0.3]], output_weight: [2.0]}",
    "loss={kind: half_mse}",
    "optimizer={kind: gd, lr: 0.3, iterations: 40}",
)
"""`L(w, a) = (w a - 1)^2 / 2`."""


def hessian(w, a):
    return np.array([[a * a, 2 * w * a - 1], [2 * w * a - 1, w * w]])


def two_weights(*more):
    return one_run("cohen2021/random_labels.yaml", *TWO_WEIGHTS, *more)


def test_third_derivatives_of_two_weights():
    state = states_of(build_problem(two_weights().config))
    w = 0.7
    a = 1.3
    U = np.linalg.qr(np.array([[1.0, 2.0], [3.0, -1.0]]))[0]
    # dH/dw = [[0, 2a], [2a, 2w]], dH/da = [[2a, 2w], [2w, 0]]
    dH = [np.array([[0, 2 * a], [2 * a, 2 * w]]), np.array([[2 * a, 2 * w], [2 * w, 0]])]
    expected = np.stack([U.T @ one @ U for one in dH], axis=-1)
    assert_allclose(third(state, np.array([w, a]), U), expected, atol=1e-6)
    here = state(np.array([w, a]))
    assert loss_of(here) == pytest.approx((w * a - 1) ** 2 / 2)
    assert_allclose(derivatives_of(here).gradient(), (w * a - 1) * np.array([a, w]), atol=1e-12)
    assert_allclose(derivatives_of(here).hessian(), hessian(w, a), atol=1e-12)


def test_the_complementarity_problem():
    rng = np.random.default_rng(0)
    assert complementary(np.array([[-3.0]]), np.full((1, 1, 1, 1), 2.0), np.zeros((1, 1))) == 1.5
    assert complementary(np.array([[3.0]]), np.full((1, 1, 1, 1), 2.0), np.zeros((1, 1))) == 0.0
    for k in (2, 3):
        T = rng.standard_normal((k, k, 20))
        T = T + T.transpose(1, 0, 2)
        some = rng.standard_normal((k, k))
        square = rng.standard_normal((k, k))
        full = np.einsum("abp,cdp->abcd", T, T)
        inside = square @ square.T + np.eye(k)
        trace = np.einsum("ab,cd->abcd", np.eye(k), np.eye(k))  # A + B[C] = 0 has no solution
        for A, B in (
            (some + some.T - np.eye(k), full),
            (-np.einsum("abcd,cd->ab", full, inside), full),
            (some + some.T - 9 * np.eye(k), trace),
        ):
            C = complementary(A, B, np.zeros((k, k)), rounds=20000)
            left = A + np.einsum("abcd,cd->ab", B, C)
            assert np.linalg.eigvalsh(C).min() > -1e-9
            assert np.linalg.eigvalsh(left).min() > -1e-5
            assert abs(np.sum(C * left)) < 1e-5


def test_the_central_flow_is_gradient_flow_before_the_edge_and_stays_at_it_afterwards():
    run = two_weights("dtype=float64")
    problem = build_problem(run.config)
    w = trained_weights(run)[0]
    assert_array_equal(w, [0.3, 2.0])
    central = central_flow(problem, w, 0.05, 30, top=1)  # sharpness of at most 4.3: far below 40
    # gradient flow conserves a^2 - w^2 and ends where w a = 1
    assert_allclose(central.weights[:, 1] ** 2 - central.weights[:, 0] ** 2, 3.91, rtol=1e-2)
    assert_array_equal(central.variance, 0)
    # at eta = 0.6 the minimum of the flow, of sharpness w^2 + a^2 = 4.39, is above 2 / 0.6
    edge = central_flow(problem, w, 0.6, 40, substeps=4, top=1)
    assert edge.top[-1, 0] == pytest.approx(2 / 0.6, rel=1e-3)
    assert edge.weights[-1].prod() == pytest.approx(1.0, abs=1e-2)
    assert_allclose(edge.predicted - edge.losses, edge.variance / 0.6)
    assert edge.variance.max() > 0


def test_the_quadratic_model_is_descent_on_the_taylor_polynomial():
    run = two_weights("dtype=float64")
    w = 0.3
    a = 2.0
    eta = 0.3
    model = taylor(run, 0, steps=5)
    g = (w * a - 1) * np.array([a, w])
    H = hessian(w, a)
    d = np.zeros(2)
    losses = []
    for _ in range(6):
        losses.append((w * a - 1) ** 2 / 2 + g @ d + d @ H @ d / 2)
        d = d - eta * (g + H @ d)
    assert_allclose(model.losses, losses, rtol=1e-10)
    assert_allclose(model.actual, run.losses[:6])
