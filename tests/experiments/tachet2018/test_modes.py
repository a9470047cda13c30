from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import balanced_logit
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import (
    Outcome,
    death_time,
    invariant,
    logistic_mode,
    logit_bound,
    outcome,
    time_to_logit,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.special import expit

# (y0, z0, ||x||, label): three hyperbolas, both signs of theta, both lines, death, frozen; both classes
STARTS = [
    (0.3, 0.1, 1.0, 1), (0.1, 0.3, 0.7, 1), (0.5, -0.3, 0.7, 1), (0.2, -0.6, 0.7, 1), (0.7, 1.0, 0.7, 1),
    (0.7, -1.0, 0.7, 1), (-0.3, 0.2, 1.0, 1), (1e-3, 1e-5, 3.0, 1), (0.3, -0.1, 2.0, -1), (0.1, -0.4, 0.5, -1),
    (0.2, 0.6, 0.7, -1), (0.5, -0.5, 1.0, -1),
]  # fmt: skip
weights = st.floats(-2, 2).map(lambda v: round(v, 6))
norms = st.floats(0.2, 4)
labels = st.sampled_from([1, -1])


def theta(y, z, norm, label=1):
    """Return the angle of Eqs. 20 and 21 with the sign of `s y z`."""
    return np.log(np.abs((y + label * norm * z) / (y - label * norm * z)))


def integrate(t, y0, z0, norm, label, p):
    """Return y and z of Eqs. 12 and 16 by DOP853, the neuron stopped where y reaches 0."""

    def field(_, state):
        f = label * p * expit(-label * state[0] * state[1])
        return [norm**2 * state[1] * f, state[0] * f]

    def dead(_, state):
        return state[0]

    dead.terminal = True
    if y0 <= 0:
        return np.full_like(t, y0), np.full_like(t, z0)
    path = solve_ivp(
        field, (0, t[-1]), [y0, z0], method="DOP853", rtol=1e-13, atol=1e-15, dense_output=True, events=dead,
        max_step=0.5,
    )  # fmt: skip
    return path.sol(np.minimum(t, path.t[-1]))


@pytest.mark.parametrize(("y0", "z0", "norm", "label"), STARTS)
def test_agrees_with_an_ode_solver(y0, z0, norm, label):
    t = np.linspace(0, 40, 81)
    y, z = integrate(t, y0, z0, norm, label, 0.5)
    path = logistic_mode(t, y0, z0, norm, p=0.5, label=label)
    np.testing.assert_allclose(path.y, y, atol=2e-12, rtol=0)
    np.testing.assert_allclose(path.z, z, atol=2e-12, rtol=0)
    np.testing.assert_allclose(path.confidence, expit(label * z * np.maximum(y, 0)), atol=1e-12, rtol=0)
    np.testing.assert_allclose(invariant(path.y, path.z, norm), invariant(y0, z0, norm), atol=1e-13)


def test_random_sampling_of_classes_follows_the_rescaled_time():
    rng, lr, share = np.random.default_rng(0), 1e-3, 0.3
    drawn = rng.random(20_000) < share
    y, z, trained = 0.3, 0.2, []
    for hit in drawn:
        if hit:
            f = lr * expit(-y * z)
            y, z = y + f * z, z + f * y
        trained.append(expit(y * z))
    theory = logistic_mode(lr * np.arange(1, 20_001), 0.3, 0.2, p=share).confidence
    assert np.abs(theory - np.array(trained)).mean() < 0.02


def test_start_exact_and_small_times_linear():
    path = logistic_mode([0.0, 1e-300, 1e-9], 0.3, 0.1, 2.0)
    assert path.y[0] == 0.3
    assert path.z[0] == 0.1
    assert path.y[1] == pytest.approx(0.3, rel=1e-15)
    slope = 4.0 * 0.1 * expit(-0.03)
    assert (path.y[2] - 0.3) / 1e-9 == pytest.approx(slope, rel=1e-6)


def test_times_up_to_1e300_and_beyond():
    t = np.array([1e3, 1e10, 1e100, 1e300, 1.7e308])
    path = logistic_mode(t, 0.5, -0.4, 0.7, p=1e-3)
    assert (np.diff(path.u) > 0).all()
    assert path.confidence[-1] == 1.0
    line = logistic_mode(t, 0.7, -1.0, 0.7)
    assert (line.y[1:] < 1e-100).all()
    assert (line.confidence >= 0.5 - 1e-15).all()


@given(weights, weights, norms, labels, st.floats(-3, 290))
@settings(max_examples=150, deadline=None)
def test_logit_and_time_are_inverse(y0, z0, norm, label, log_t):
    path = logistic_mode(10.0**log_t, y0, z0, norm, p=0.3, label=label)
    logit = float(label * path.y * path.z)
    rate = norm * 0.3 * expit(-logit) * float(path.y**2 + (norm * path.z) ** 2) / norm  # d logit / dt
    if outcome(y0, z0, norm, label=label) == Outcome.SOLVED and logit > label * y0 * z0:
        t = float(time_to_logit(logit, y0, z0, norm, p=0.3, label=label))
        # t is as precise as the logit is, to rounding
        assert t == pytest.approx(10.0**log_t, rel=1e-11, abs=4e-15 * max(1.0, abs(logit)) / rate)


@given(weights, weights, norms, labels, st.floats(0.01, 30), st.floats(0.01, 30))
@settings(max_examples=80, deadline=None)
def test_restart_in_the_middle(y0, z0, norm, label, first, second):
    middle = logistic_mode(first, y0, z0, norm, label=label)
    resumed = logistic_mode(second, middle.y, middle.z, norm, label=label)
    through = logistic_mode(first + second, y0, z0, norm, label=label)
    if outcome(y0, z0, norm, label=label) != Outcome.VANISHES:  # unstable: rounding decides
        np.testing.assert_allclose([resumed.y, resumed.z], [through.y, through.z], rtol=1e-7, atol=1e-9)


@given(norms, st.floats(0.05, 1.0), st.floats(0.01, 1.5))
@settings(deadline=None)
def test_balanced_modes_depend_on_norm_and_share_through_time_only(norm, p, u0):
    """Eq. 3: P = sigmoid(u(||x|| p t)) with one function u."""
    t = np.linspace(0, 50, 11)
    np.testing.assert_allclose(balanced_logit(t, u0, norm, p=p), balanced_logit(norm * p * t, u0), rtol=1e-12)
    y0 = np.sqrt(u0 * norm)
    np.testing.assert_allclose(
        logistic_mode(t, y0, y0 / norm, norm, p=p).u, balanced_logit(t, u0, norm, p=p), rtol=1e-11
    )


def test_the_two_classes_mirror_each_other():
    t = np.linspace(0, 30, 7)
    first, second = logistic_mode(t, 0.3, 0.2, 1.4), logistic_mode(t, 0.3, -0.2, 1.4, label=-1)
    np.testing.assert_array_equal(first.u, -second.u)
    np.testing.assert_array_equal(first.confidence, second.confidence)


def test_death_time_is_where_the_ode_crosses_zero():
    t = death_time(0.2, -0.6, 0.7)
    assert t == pytest.approx(2.8816535585569 / 2, rel=1e-11)  # the crossing for p = 1/2, by DOP853 at 1e-13
    after = logistic_mode([t * (1 - 1e-9), t, 10 * t, 1e300], 0.2, -0.6, 0.7)
    assert after.y[0] > 0
    assert (after.y[1:] == 0).all()
    np.testing.assert_allclose(after.z[1:], -np.sqrt(0.36 - 0.04 / 0.49), rtol=1e-14)
    assert (after.confidence[1:] == 0.5).all()
    assert np.isinf(death_time([0.5, 0.7, -1.0], [-0.3, -1.0, -1.0], 0.7)).all()


def test_equation_22_without_the_division():
    """(y z)' = y' z + y z'; as printed it is divided by 1 + exp(y z) once too often."""
    t, step = 2.0, 1e-4
    path = logistic_mode([t - step, t, t + step], 0.5, 0.3, 0.7)
    y, z = path.y[1], path.z[1]
    product = (0.49 * z * z + y * y) * expit(-y * z)  # y' z + y z'
    slope = (path.u[2] - path.u[0]) / (2 * step)
    assert slope == pytest.approx(product, rel=1e-7)
    assert slope != pytest.approx(product * expit(-y * z), rel=0.3)


def test_equation_19_bounds_balanced_modes_only():
    t = np.concatenate([[0.0], np.geomspace(1e-3, 1e12, 60)])
    for u0 in (1e-3, 0.3, 4.0):
        assert (balanced_logit(t, u0, 1.3) <= logit_bound(t, u0, 1.3) + 1e-12).all()
    excess = logistic_mode(t, 3.0, 0.1, 1.0).u - logit_bound(t, 0.3, 1.0)
    fine = np.linspace(0, 5, 2001)
    assert max(excess.max(), (logistic_mode(fine, 3.0, 0.1).u - logit_bound(fine, 0.3)).max()) == pytest.approx(
        0.66, abs=5e-3
    )


def test_equation_23_needs_its_factor():
    u0, u, norm = -0.4, -0.05, 2.0
    y0 = np.sqrt(-u0 * norm)
    t = float(time_to_logit(u, y0, -y0 / norm, norm))
    expected = quad(lambda v: (1 + np.exp(-v)) / v, 0.05, 0.4, epsabs=1e-14)[0] / (2 * norm)
    assert t == pytest.approx(expected, rel=1e-12)
    assert np.log(u0 / u) / (2 * norm) <= t
    assert np.log(u0 / u) > t  # as printed, without 1 / (2 ||x||), it is no lower bound
    assert balanced_logit(t, u0, norm) == pytest.approx(u, rel=1e-12)


def test_time_to_logit_at_the_ends():
    assert time_to_logit(0.01, 0.3, 0.1) == 0.0
    assert np.isinf(time_to_logit([1.0, 1.0, 1.0], [0.2, 0.7, -0.1], [-0.6, -1.0, 1.0], 0.7)).all()
    assert np.isinf(time_to_logit(5000.0, 0.3, 0.1))
    assert time_to_logit(np.zeros((2, 1)) + 3.0, 0.3, np.array([0.1, 0.2, 0.3])).shape == (2, 3)


def test_phase_diagram_agrees_with_trained_networks():
    """A 60 x 60 grid of [-1, 1]^2 at ||x|| = 0.7: 1485 solved, 315 die, 1800 frozen (notes)."""
    axis = np.linspace(-1, 1, 60)
    z0, y0 = np.meshgrid(axis, axis)
    ends = outcome(y0, z0, 0.7)
    assert np.bincount(ends.ravel(), minlength=4).tolist() == [1800, 1485, 0, 315]
    x = 0.7 * np.array([0.6, 0.8])
    w, z, lr = (y0 / 0.49)[..., None] * x, z0.copy(), 0.05
    for _ in range(4000):
        y = w @ x
        f = lr * expit(-z * y) * (y > 0)
        w, z = w + (f * z)[..., None] * x, z + f * y
    trained = np.select([w @ x <= 0, expit(z * (w @ x)) > 0.9], [np.where(y0 <= 0, 0, 3), 1], -1)
    np.testing.assert_array_equal(trained, ends)


def test_outcomes_on_the_lines_and_of_the_other_class():
    assert outcome(0.7, -1.0, 0.7) == Outcome.VANISHES
    assert outcome(0.7, 1.0, 0.7) == Outcome.SOLVED
    assert outcome(0.0, 1.0, 0.7) == Outcome.FROZEN
    assert outcome([0.1, 0.1], [-1.0, 1.0], 0.7).tolist() == [Outcome.DIES, Outcome.SOLVED]
    assert outcome([0.1, 0.1], [-1.0, 1.0], 0.7, label=-1).tolist() == [Outcome.SOLVED, Outcome.DIES]


@given(weights, weights, norms, labels)
def test_theta_gives_back_the_start_in_the_papers_coordinates(y0, z0, norm, label):
    c = float(invariant(y0, z0, norm))
    if abs(c) < 1e-6 or y0 <= 0:
        return
    angle = theta(y0, z0, norm, label=label)
    assert np.sign(angle) == np.sign(label * z0)  # the paper's arccosh is |theta|
    np.testing.assert_allclose(np.cosh(angle), (y0**2 + norm**2 * z0**2) / abs(c), rtol=1e-7)
    root, half = np.sqrt(abs(c)), angle / 2
    if c > 0:
        np.testing.assert_allclose(
            [root * np.cosh(half), root * np.sinh(half) / norm], [y0, label * z0], rtol=1e-6, atol=1e-9
        )
    else:
        sign = np.sign(label * z0)
        y, z = sign * root * np.sinh(half), sign * root * np.cosh(half) / norm
        np.testing.assert_allclose([y, z], [y0, label * z0], rtol=1e-6, atol=1e-9)


def test_theta_follows_the_differential_equation_of_a3():
    t, step = 3.0, 1e-4
    path = logistic_mode([t - step, t, t + step], 0.5, -0.3, 0.7)
    angle = theta(path.y, path.z, 0.7)
    c = float(invariant(0.5, -0.3, 0.7))
    expected = 2 * 0.7 / (1 + np.exp(c * np.sinh(angle[1]) / (2 * 0.7)))
    assert (angle[2] - angle[0]) / (2 * step) == pytest.approx(expected, rel=1e-7)
