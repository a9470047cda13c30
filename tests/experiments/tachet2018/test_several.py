from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import balanced_logit
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import invariant, logistic_mode
from dynamics_cli._bundled.experiments.tachet2018.theory.several import hidden_layer, orthogonal_mode, softmax_mode
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import expit

Y0, Z0 = np.array([0.4, 0.1, 0.3, 0.2, -0.5]), np.array([0.1, 0.5, -0.2, 0.2, 1.0])


def test_agrees_with_an_ode_solver_and_conserves_every_invariant():
    t, norm = np.linspace(0, 40, 21), 1.4
    on = Y0 > 0

    def field(_, state):
        y, z = state.reshape(2, -1)
        f = 0.6 * expit(-(z[on] @ y[on])) * on
        return np.concatenate([norm**2 * z * f, y * f])

    y, z = solve_ivp(
        field, (0, 40), np.concatenate([Y0, Z0]), t_eval=t, method="DOP853", rtol=1e-13, atol=1e-15, max_step=0.5
    ).y.reshape(2, 5, -1)
    path = hidden_layer(t, Y0, Z0, norm, p=0.6)
    np.testing.assert_allclose(path.y, y.T, atol=1e-11)
    np.testing.assert_allclose(path.z, z.T, atol=1e-11)
    np.testing.assert_allclose(invariant(path.y, path.z, norm), np.tile(invariant(Y0, Z0, norm), (21, 1)), atol=1e-13)
    assert (path.y[:, 4] == -0.5).all()


def test_a4_as_printed_breaks_the_invariant():
    """With z' = y / exp(u) instead of y / (1 + exp(u)) the hyperbola is left; the corrected equations keep it."""

    def drift(denominator):
        def field(_, state):
            y, z = state
            return [z / (1 + np.exp(y * z)), y / denominator(y * z)]

        path = solve_ivp(field, (0, 20), [0.5, 0.3], rtol=1e-11, atol=1e-13).y
        return np.ptp(invariant(path[0], path[1], 1.0))

    assert drift(np.exp) > 0.1
    assert drift(lambda u: 1 + np.exp(u)) < 1e-9


def test_one_neuron_and_balanced_neurons():
    t = np.array([0.0, 1.0, 50.0, 1e300])
    np.testing.assert_allclose(hidden_layer(t, [0.3], [0.2], 1.5).u, logistic_mode(t, 0.3, 0.2, 1.5).u, rtol=1e-14)
    z = np.array([0.1, 0.3, 0.2])
    np.testing.assert_allclose(hidden_layer(t, 2 * z, z, 2.0).u, balanced_logit(t, 2 * np.sum(z**2), 2.0), rtol=1e-13)


@given(st.integers(2, 1000), st.floats(0.01, 2), st.floats(-0.5, 2))
@settings(max_examples=60, deadline=None)
def test_softmax_conserves_its_invariant_and_follows_its_equation(classes, y0, z0):
    ratio = classes / (classes - 1)
    path = softmax_mode([0.0, 1.0, 7.0, 1e200], y0, z0, classes, 1.3)
    values = ratio * path.y**2 - 1.69 * path.z**2
    np.testing.assert_allclose(values, ratio * y0**2 - 1.69 * z0**2, atol=1e-11)
    step = 1e-5
    around = softmax_mode([1.0 - step, 1.0, 1.0 + step], y0, z0, classes, 1.3)
    slope = (around.y[2] - around.y[0]) / (2 * step)
    if around.y[2] > 0:
        assert slope == pytest.approx(1.69 * around.z[1] * (1 - around.confidence[1]), rel=1e-6, abs=1e-7)


def test_two_classes_are_the_logistic_mode_of_the_difference():
    t = np.linspace(0, 30, 7)
    soft, root = softmax_mode(t, 0.3, 0.2, 2, 0.9), np.sqrt(2)
    # both columns of Z learn, so that the difference learns twice as fast
    plain = logistic_mode(t, root * 0.3, 0.2 / root, root * 0.9)
    np.testing.assert_allclose(soft.confidence, plain.confidence, rtol=1e-13)


@pytest.mark.parametrize("label", [1, -1])
def test_orthogonal_points_agree_with_an_ode_solver_and_conserve_the_invariant(label):
    t = np.linspace(0, 30, 16)

    def field(_, state):
        y, q = state[:-1], state[-1]  # q = s z
        f = expit(-q * y)
        return np.append(0.49 * q * f, y @ f)

    path = solve_ivp(field, (0, 30), [0.1] * 4 + [0.5], t_eval=t, method="DOP853", rtol=1e-12, atol=1e-16).y
    mode = orthogonal_mode(t, 0.1, 0.5 * label, 4, 0.7, label=label)
    np.testing.assert_allclose(path[:-1], np.tile(mode.y, (4, 1)), rtol=1e-9)
    np.testing.assert_allclose(label * path[-1], mode.z, rtol=1e-9)
    np.testing.assert_allclose(4 * mode.y**2 - 0.49 * mode.z**2, 4 * 0.01 - 0.49 * 0.25, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16])
def test_the_gain_is_the_root_of_m(m):
    """Measured in the notes: 1.4142, 2, 2.8284, 4 for m = 2, 4, 8, 16, from the slope of a small logit."""
    root = np.sqrt(m)
    y0 = 1e-4
    path = orthogonal_mode(np.array([0.0, 1e-4]), y0, root * y0, m)
    growth = np.diff(np.log(path.u))[0] / 1e-4
    assert growth == pytest.approx(root, rel=1e-4)  # 2 sqrt(m) ||x|| / (1 + exp(0))
    t = np.linspace(0, 20, 5)
    np.testing.assert_allclose(
        orthogonal_mode(t, 0.2, root * 0.2, m).u, balanced_logit(root * t, root * 0.04), rtol=1e-12
    )


def test_one_orthogonal_point_is_a_mode():
    t = np.array([0.0, 2.0, 1e300])
    np.testing.assert_array_equal(orthogonal_mode(t, 0.2, -0.1, 1, 0.9).y, logistic_mode(t, 0.2, -0.1, 0.9).y)


def test_a_dying_neuron_is_refused():
    with pytest.raises(ValueError, match="dies"):
        hidden_layer(1.0, [0.3, 0.1], [0.3, -0.2])
