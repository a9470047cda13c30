import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.hinge_class import hinge_class
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import hinge_mode, invariant
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose


def theta(y, z, norm):
    """Return the angle of Eqs. 20 and 21 with the sign of `y z`."""
    return np.log(np.abs((y + norm * z) / (y - norm * z)))


@given(st.floats(0.01, 0.9), st.floats(0.2, 3.0), st.floats(0.1, 1.0))
def test_equation_6_for_balanced_modes(u0, norm, p):
    t = np.linspace(0, 20, 41)
    expected = np.minimum(1.0, u0 * np.exp(2 * p * norm * t))
    root = np.sqrt(u0 * norm)
    assert_allclose(hinge_mode(t, root, root / norm, norm, p=p).u, expected, rtol=1e-11)


POINTS = np.array([[1.0, 0.5, 0.0], [0.3, 1.0, 0.2], [0.5, 0.5, 2.0]])
W0 = np.array([0.1, 0.05, 0.02])


def test_a_class_of_many_points_against_training():
    theory = hinge_class(np.array([0.0, 0.45, 0.7]), POINTS, W0, 0.2)
    errors = []
    for lr in (2e-4, 1e-4):
        w = W0.copy()
        z = 0.2
        outputs = []
        for _ in range(round(0.7 / lr)):
            total = POINTS[z * (POINTS @ w) < 1].sum(axis=0)
            w, z = w + lr * z * total, z + lr * (w @ total)
            outputs.append(z * (POINTS @ w))
        errors.append(np.abs(theory[1] - outputs[round(0.45 / lr) - 1]).max())
        # in the end each point is past its margin by at most a step of its own, and carries the
        # others with it
        assert np.abs(theory[2] - outputs[-1]).max() < 20 * lr
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.02)
    assert_allclose(theory[0], 0.2 * (POINTS @ W0), rtol=1e-14)
    assert (theory[2] >= 1 - 1e-9).all()


def test_appendix_c2_until_the_first_margin_and_not_after():
    t = np.linspace(0, 1, 201)
    theory = hinge_class(t, POINTS, W0, 0.2)
    total = POINTS.sum(axis=0)
    length = np.linalg.norm(total)
    c = -float(invariant(W0 @ total, 0.2, length))
    angle = float(theta(W0 @ total, 0.2, length))
    y = np.sqrt(c) * np.sinh(angle / 2 + length * t)
    z = np.sqrt(c) / length * np.cosh(angle / 2 + length * t)
    rest = W0 - (W0 @ total) * total / length**2
    printed = (z * y / length**2)[:, None] * (POINTS @ total) + z[:, None] * (POINTS @ rest)
    early = (theory < 1).all(axis=1)
    assert 50 < early.sum() < 190
    assert_allclose(theory[early], printed[early], rtol=1e-9)
    assert (np.abs(theory - printed)[~early] > 1e-4).all()
