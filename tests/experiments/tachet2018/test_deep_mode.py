from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import (
    balanced_logit,
    deep_logit,
    deep_rate,
    deep_time,
    depth_crossing,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import expi, expit


@pytest.mark.parametrize("depth", [2, 3, 4, 8, 20])
@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0])
def test_agrees_with_an_ode_solver_and_inverts(depth, norm):
    t, u0 = np.linspace(0, 60, 61), 0.05
    path = solve_ivp(
        lambda _, u: norm ** (2 / depth) * depth * u ** (2 - 2 / depth) * expit(-u),
        (0, 60),
        [u0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-15,
        t_eval=t,
        max_step=0.5,
    )
    u = deep_logit(2 * t, u0, depth, norm, p=0.5)
    np.testing.assert_allclose(u, path.y[0], rtol=1e-11)
    assert u[0] == u0
    np.testing.assert_allclose(deep_time(u, u0, depth, norm), t, atol=1e-11)
    around = deep_logit(np.array([7.0 - 1e-4, 7.0, 7.0 + 1e-4]), u0, depth, norm)
    assert deep_rate(around[1], depth, norm) == pytest.approx((around[2] - around[0]) / 2e-4, rel=1e-6)


def test_negative_inner_weights_are_dead():
    """Appendix B asks for negative inner diagonals for class D_2: the ReLU then outputs 0, for every N > 2."""
    active = np.maximum(np.array([0.0, 0.4]), 0)
    assert np.maximum(np.diag([0.3, -0.3]) @ active, 0).tolist() == [0.0, 0.0]
    assert np.maximum(np.diag([0.3, 0.3]) @ active, 0)[1] > 0


def test_two_layers_are_equation_2_as_printed():
    t, u0, norm = np.linspace(0, 200, 41), 0.05, 1.3
    u = deep_logit(t, u0, 2, norm)
    left, right = np.log(u) + expi(u), 2 * norm * t + np.log(u0) + expi(u0)
    np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-12)


def test_two_layers_at_times_up_to_1e300_and_beyond():
    t = np.array([1e3, 1e10, 1e100, 1e300, 1.7e308])
    for norm in (1e-3, 1.0, 1e3):
        u = balanced_logit(t, 1e-3, norm)
        assert np.isfinite(u).all()
        # Ei(u) ~ exp(u) / u (1 + 1/u + 2/u^2 + ...) = 2 ||x|| t, taken as logarithms
        far = u > 200
        series = np.log(sum(np.prod(np.arange(1, n + 1)) / u[far] ** n for n in range(8)))
        np.testing.assert_allclose(u[far] - np.log(u[far]) + series, np.log(2 * norm) + np.log(t[far]), rtol=1e-13)


@given(st.integers(2, 20), st.floats(-8, 1), st.floats(-2, 290), st.floats(0.2, 5))
@settings(max_examples=150, deadline=None)
def test_logit_and_time_are_inverse_up_to_1e290(depth, log_u0, log_t, norm):
    u0, t = 10.0**log_u0, 10.0**log_t
    u = float(deep_logit(t, u0, depth, norm))
    assert u0 <= u < 800
    ulp = 1e-14 * max(u, u0) / float(deep_rate(u, depth, norm))  # what rounding of u means in time
    whole = 1e-14 * u0 ** (2 / depth - 1)  # the integral is a difference of values of this size
    assert float(deep_time(u, u0, depth, norm)) == pytest.approx(t, rel=1e-11, abs=ulp + whole)


def test_times_and_crossings_of_the_notes():
    times = [float(deep_time(np.log(99), 1e-3, depth)) for depth in (2, 4, 8)]
    assert times == [pytest.approx(22.3, abs=0.05), pytest.approx(35.4, abs=0.05), pytest.approx(61.0, abs=0.05)]
    assert depth_crossing(4) == pytest.approx(0.0033, abs=5e-5)
    assert depth_crossing(8) == pytest.approx(0.0045, abs=5e-5)
    for depth in (4, 8):
        u0 = depth_crossing(depth)
        assert deep_time(np.log(99), 1.1 * u0, depth) < deep_time(np.log(99), 1.1 * u0, 2)
        assert deep_time(np.log(99), 0.9 * u0, depth) > deep_time(np.log(99), 0.9 * u0, 2)


@pytest.mark.parametrize("depth", [2, 3, 4, 8])
def test_larger_inputs_learn_faster_but_less_so_with_depth(depth):
    slow, fast = deep_time(3.0, 0.05, depth, np.array([0.5, 2.0]))
    assert slow / fast == pytest.approx(4.0 ** (2 / depth), rel=1e-11)


def test_reached_already_and_out_of_reach():
    assert deep_time([0.01, 0.05], 0.05, 4).tolist() == [0.0, 0.0]
    assert deep_time([0.01, 0.05], 0.05, 2).tolist() == [0.0, 0.0]
    assert np.isinf(deep_time(5000.0, 0.05, 4))
    assert deep_logit(np.zeros((3, 1)), np.array([0.1, 0.2]), 4).shape == (3, 2)
