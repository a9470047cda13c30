import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import (
    invariant,
    logistic_mode,
    outcome,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit

# (y0, z0, ||x||, label): three hyperbolas, both signs of theta, both lines, death, frozen; both
# classes
STARTS = [
    (0.3, 0.1, 1.0, 1),
    (0.1, 0.3, 0.7, 1),
    (0.5, -0.3, 0.7, 1),
    (0.2, -0.6, 0.7, 1),
    (0.7, 1.0, 0.7, 1),
    (0.7, -1.0, 0.7, 1),
    (-0.3, 0.2, 1.0, 1),
    (1e-3, 1e-5, 3.0, 1),
    (0.3, -0.1, 2.0, -1),
    (0.1, -0.4, 0.5, -1),
    (0.2, 0.6, 0.7, -1),
    (0.5, -0.5, 1.0, -1),
]


def test_phase_diagram_agrees_with_trained_networks():
    """A 60 x 60 grid of [-1, 1]^2 at ||x|| = 0.7: 1485 solved, 315 die, 1800 frozen (notes)."""
    axis = np.linspace(-1, 1, 60)
    z0, y0 = np.meshgrid(axis, axis)
    ends = outcome(y0, z0, 0.7)
    assert np.bincount(ends.ravel(), minlength=4).tolist() == [1800, 1485, 0, 315]
    x = 0.7 * np.array([0.6, 0.8])
    w = (y0 / 0.49)[..., None] * x
    z = z0.copy()
    lr = 0.05
    for _ in range(4000):
        y = w @ x
        f = lr * expit(-z * y) * (y > 0)
        w = w + (f * z)[..., None] * x
        z = z + f * y
    trained = np.select([w @ x <= 0, expit(z * (w @ x)) > 0.9], [np.where(y0 <= 0, 0, 3), 1], -1)
    assert_array_equal(trained, ends)


def elapsed(y, z, y0, z0, norm, label):
    """Return `int_0^tau (1 + exp(s u)) dtau` up to the state (y, z)."""
    A = y0 + label * norm * z0
    B = y0 - label * norm * z0
    tau = np.log((y + label * norm * z) / A) if A else -np.log((y - label * norm * z) / B)
    a = A**2 / (4 * norm)
    b = B**2 / (4 * norm)
    return quad(lambda x: 1 + np.exp(a * np.exp(2 * x) - b * np.exp(-2 * x)), 0, tau, epsrel=1e-12)[
        0
    ]


@pytest.mark.parametrize(("y0", "z0", "norm", "label"), STARTS)
def test_modes_are_the_closed_form_of_a3(y0, z0, norm, label):
    """tau' = p ||x|| / (1 + exp(s u)), integrated by quadrature; the invariant and the ReLU."""
    t = np.linspace(0, 40, 9)
    path = logistic_mode(t, y0, z0, norm, p=0.5, label=label)
    assert_allclose(invariant(path.y, path.z, norm), invariant(y0, z0, norm), atol=1e-11)
    assert_allclose(path.confidence, expit(label * path.u))
    for k in np.flatnonzero((path.y > 0) & (t > 0)) if y0 > 0 else ():
        assert elapsed(path.y[k], path.z[k], y0, z0, norm, label) == pytest.approx(
            0.5 * norm * t[k], rel=1e-8
        )
    if y0 <= 0:
        assert (path.y == y0).all()
