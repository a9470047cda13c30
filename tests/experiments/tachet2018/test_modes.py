from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import (
    Outcome,
    death_time,
    invariant,
    logistic_mode,
    logit_bound,
    outcome,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
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


def test_the_two_classes_mirror_each_other():
    t = np.linspace(0, 30, 7)
    first, second = logistic_mode(t, 0.3, 0.2, 1.4), logistic_mode(t, 0.3, -0.2, 1.4, label=-1)
    np.testing.assert_array_equal(first.u, -second.u)
    np.testing.assert_array_equal(first.confidence, second.confidence)


def test_equation_22_without_the_division():
    """(y z)' = y' z + y z'; as printed it is divided by 1 + exp(y z) once too often."""
    t, step = 2.0, 1e-4
    path = logistic_mode([t - step, t, t + step], 0.5, 0.3, 0.7)
    y, z = path.y[1], path.z[1]
    product = (0.49 * z * z + y * y) * expit(-y * z)  # y' z + y z'
    slope = (path.u[2] - path.u[0]) / (2 * step)
    assert slope == pytest.approx(product, rel=1e-7)
    assert slope != pytest.approx(product * expit(-y * z), rel=0.3)


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


def elapsed(y, z, y0, z0, norm, label):
    """Return `int_0^tau (1 + exp(s u)) dtau` up to the state (y, z)."""
    A, B = y0 + label * norm * z0, y0 - label * norm * z0
    tau = np.log((y + label * norm * z) / A) if A else -np.log((y - label * norm * z) / B)
    a, b = A**2 / (4 * norm), B**2 / (4 * norm)
    return quad(lambda x: 1 + np.exp(a * np.exp(2 * x) - b * np.exp(-2 * x)), 0, tau, epsrel=1e-12)[0]


@pytest.mark.parametrize(("y0", "z0", "norm", "label"), STARTS)
def test_modes_are_the_closed_form_of_a3(y0, z0, norm, label):
    """tau' = p ||x|| / (1 + exp(s u)), integrated by quadrature; the invariant and the ReLU."""
    t = np.linspace(0, 40, 9)
    path = logistic_mode(t, y0, z0, norm, p=0.5, label=label)
    np.testing.assert_allclose(invariant(path.y, path.z, norm), invariant(y0, z0, norm), atol=1e-11)
    np.testing.assert_allclose(path.confidence, expit(label * path.u))
    for k in np.flatnonzero((path.y > 0) & (t > 0)) if y0 > 0 else ():
        assert elapsed(path.y[k], path.z[k], y0, z0, norm, label) == pytest.approx(0.5 * norm * t[k], rel=1e-8)
    if y0 <= 0:
        assert (path.y == y0).all()


def test_death_time_is_where_the_ode_crosses_zero():
    t = death_time(0.2, -0.6, 0.7)
    assert t == pytest.approx(2.8816535585569 / 2, rel=1e-11)  # the crossing for p = 1/2, by DOP853 at 1e-13
    after = logistic_mode([t * (1 - 1e-6), t * (1 + 1e-6), 10 * t], 0.2, -0.6, 0.7)
    assert after.y[0] > 0
    assert (after.y[1:] == 0).all()
    np.testing.assert_allclose(after.z[1:], -np.sqrt(0.36 - 0.04 / 0.49), rtol=1e-12)
    assert np.isinf([death_time(y0, z0, 0.7) for y0, z0 in ((0.5, -0.3), (0.7, -1.0), (-1.0, -1.0))]).all()


def test_equation_19_bounds_balanced_modes_only():
    fine = np.linspace(0, 5, 2001)
    for u0 in (1e-3, 0.3, 4.0):
        z0 = np.sqrt(u0 / 1.3)
        assert (logistic_mode(fine, 1.3 * z0, z0, 1.3).u <= logit_bound(fine, u0, 1.3) + 1e-12).all()
    assert (logistic_mode(fine, 3.0, 0.1).u - logit_bound(fine, 0.3)).max() == pytest.approx(0.66, abs=5e-3)
