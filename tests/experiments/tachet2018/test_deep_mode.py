from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import balanced_logit, deep_logit
from scipy.integrate import solve_ivp
from scipy.special import expi, expit


@pytest.mark.parametrize("depth", [2, 3, 4, 8, 20])
@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0])
def test_agrees_with_an_ode_solver(depth, norm):
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
