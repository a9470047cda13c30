from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from dynamics_cli.theory.hyperbola import Outcome, invariant, outcome, theta
from dynamics_cli.theory.logistic_mode import logistic_mode

weights = st.floats(-2, 2).map(lambda v: round(v, 6))
norms = st.floats(0.2, 4)
labels = st.sampled_from([1, -1])


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
