import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.alignment import (
    D_minus,
    D_plus,
    S_minus_1,
    S_plus_1,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from dynamics_cli.measures.neurons import cosines, directions, norms
from dynamics_cli.theory.sphere_flow import sphere_flow
from tests.theory.descent import descend

seeds = st.integers(0, 2**32 - 1)


def problem(seed, n=4, d=5, m=8, orthogonal=True):
    rng = np.random.default_rng(seed)
    x = np.linalg.qr(rng.normal(size=(d, d)))[0][:n] if orthogonal else rng.normal(size=(n, d))
    y = rng.uniform(0.3, 2.0, n) * np.where(np.arange(n) % 2, -1, 1)
    return x, y, rng.normal(size=(m, d)), rng.choice([-1.0, 1.0], m)


def test_closed_form_without_switches():
    """One sample, active throughout: cos to D follows tanh, and the norm grows like cosh."""
    x = np.array([[0.0, 2.0]])
    y = np.array([1.5])
    t = np.array([0.0, 0.3, 2.0, np.inf])
    flow = sphere_flow(x, y, [[5.0, 5.0]], [1.0], t)
    tau = np.arcsinh(1.0) + 3.0 * t
    assert_allclose(flow.directions[:, 0, 1], np.tanh(tau), atol=1e-14)
    assert_allclose(flow.log_growth[:3, 0], np.log(np.cosh(tau[:3]) / np.sqrt(2)), atol=1e-14)
    assert flow.log_growth[3, 0] == np.inf
    assert flow.switches[0].size == 0


def test_a_neuron_of_the_wrong_sign_switches_off_and_stops():
    """s = -1 on a positive label: w turns away until <w, x> = 0 at tau = 0, where it stays."""
    x = np.array([[0.0, 1.0]])
    y = np.array([1.0])
    flow = sphere_flow(x, y, [[1.0, 1.0]], [-1.0], [0.0, 0.5, 1.0, 5.0, np.inf])
    off = np.arcsinh(1.0)  # duration until <w, x> = 0
    assert_allclose(flow.switches[0], [off])
    assert_allclose(flow.directions[2:, 0], [[1.0, 0.0]] * 3, atol=1e-12)
    assert flow.directions[1, 0, 1] == pytest.approx(np.tanh(off - 0.5))
    assert_allclose(flow.log_growth[2:, 0], -np.log(np.sqrt(2)), atol=1e-12)


@settings(deadline=None, max_examples=6)
@given(seeds)
def test_against_an_ode_solver_on_orthogonal_inputs(seed):
    x, y, W, a = problem(seed)
    times = np.linspace(0, 8, 5)
    flow = sphere_flow(x, y, W, a, times)
    for j in range(3):

        def field(t, v, s=a[j]):
            w = v[:5]
            active = x @ v[:5] > 0
            D = np.where(active, y, 0.0) @ x / len(y)
            return np.append(s * (D - (D @ w) * w), s * D @ w)

        start = np.append(directions(W[j]), 0.0)
        v = solve_ivp(field, (0, 8), start, t_eval=times, rtol=1e-8, atol=1e-10, max_step=0.02).y.T
        assert_allclose(flow.directions[:, j], v[:, :5], atol=2e-3)
        assert_allclose(flow.log_growth[:, j], v[:, 5], atol=5e-3)


@settings(deadline=None, max_examples=10)
@given(seeds)
def test_against_descent_of_a_tiny_network_on_general_inputs(seed):
    """A really trained network of scale 1e-20; on general inputs directions also slide along
    boundaries.
    """
    x, y, W, a = problem(seed, n=5, d=3, m=6, orthogonal=False)
    W = 1e-20 * W
    a = a * norms(W)
    lr = 5e-4
    steps = 12000
    flow = sphere_flow(x, y, W, a, [lr * steps])
    V, _ = descend(x, y, W, a, lr=lr, steps=steps)
    assert_allclose(directions(V), flow.directions[0], atol=0.02)
    assert_allclose(np.log(norms(V) / norms(W)), flow.log_growth[0], atol=0.05)


def test_sliding_direction_has_no_velocity_across_the_boundary():
    """Two samples 60 degrees apart pull w over the boundary of a third that pushes it back: w
    slides on it.
    """
    x = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.9]])
    y = np.array([1.0, 1.0, -2.0])
    flow = sphere_flow(x, y, [[0.3, 0.2, 0.3]], [1.0], np.linspace(0, 40, 81))
    z = flow.directions[:, 0] @ x.T
    late = flow.times > flow.switches[0][0] + 0.01
    assert flow.switches[0].size >= 1
    assert_allclose(z[late, 2], 0.0, atol=1e-9)
    D = D_plus(x, y)
    along = D - (D @ x[2]) / (x[2] @ x[2]) * x[2]
    assert cosines(flow.directions[-1], along)[0] == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None)
@given(seeds)
def test_lemma_2_and_lemma_7_on_orthonormal_inputs(seed):
    x, y, W, a = problem(seed, m=40)
    plus = S_plus_1(x, y, W, a)
    minus = S_minus_1(x, y, W, a)
    flow = sphere_flow(x, y, W, a, [60.0 / np.linalg.norm(D_minus(x, y)), np.inf])
    assert (cosines(flow.directions[0, plus], D_plus(x, y)) > 1 - 1e-9).all()
    assert (cosines(flow.directions[0, minus], -D_minus(x, y)) > 1 - 1e-9).all()
    assert_allclose(flow.directions[1, plus] @ x[y < 0].T, 0.0, atol=1e-9)  # Lemma 7 (iii)
    started_off = directions(W) @ x.T < 0
    assert (flow.directions[0] @ x.T <= 1e-9)[started_off].all()  # Lemma 6


@pytest.mark.parametrize("seed", range(6))
def test_zero_inputs_repeated_inputs_and_neurons_that_start_on_a_boundary(seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(6, 3)))
    x = np.concatenate([x, x[:2], np.zeros((1, 3))])
    y = np.round(rng.normal(size=9), 1)
    W = np.concatenate([np.eye(3), -np.eye(3)])
    flow = sphere_flow(x, y, W, np.tile([1.0, -1.0], 3), np.append(np.linspace(0, 20, 101), np.inf))
    assert_allclose(norms(flow.directions), 1.0, atol=1e-12)
    assert (np.diff(np.diff(flow.log_growth[:-1], axis=0), axis=0) > -1e-9).all()
