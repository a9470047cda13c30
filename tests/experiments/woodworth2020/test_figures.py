"""Woodworth et al. 2020: the convex program against independent solvers, and the figures on
trained networks.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.woodworth2020.regression import draw_samples, errors
from dynamics_cli._bundled.experiments.woodworth2020.theory.minimum_q import (
    minimum_l1,
    minimum_l2,
    minimum_q,
    q,
)
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq, minimize


def small_problem():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4, 9))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(
        4
    )  # as many entries as samples in the L1 limit


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_minimiser_interpolates_and_no_other_interpolator_has_less(depth):
    X, y = small_problem()
    beta = minimum_q(X, y, [0.05], depth)[0]
    assert_allclose(X @ beta, y, atol=1e-8)
    null = np.linalg.svd(X)[2][4:]

    def value(t):
        return float(0.05 * q((minimum_l2(X, y) + t @ null) / 0.05, depth).sum())

    other = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    assert_allclose(minimum_l2(X, y) + other.x @ null, beta, atol=1e-4)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_q_is_the_integral_of_the_inverse_of_h(depth):
    def slope(z):
        if depth == 2:
            return float(np.arcsinh(z / 2))
        p = depth / (depth - 2)
        return brentq(lambda s: (1 - s) ** -p - (1 + s) ** -p - z, 0.0, 1 - 1e-12)

    for z in (0.1, 1.0, 20.0):
        assert q(z, depth) == pytest.approx(quad(slope, 0.0, z)[0], rel=1e-6)
    assert q(-3.0, depth) == pytest.approx(q(3.0, depth))


def test_the_limits_are_the_norms():
    X, y = small_problem()
    assert_allclose(minimum_q(X, y, 1e4)[0], minimum_l2(X, y), rtol=1e-6)
    tiny = minimum_q(X, y, 1e-300)[0]
    assert_allclose(tiny, minimum_l1(X, y), atol=1e-5)
    with pytest.raises(ValueError, match="some predictor interpolates"):
        minimum_q(X[:, :3], y, 1.0)


def test_errors_at_the_papers_size_are_those_of_an_independent_prototype():
    X, y = draw_samples(100, 0)
    found = errors(minimum_q(X, y, [1.0, 1e-2, 1e-4]))
    assert_allclose(found, [0.904, 0.808, 0.039], atol=6e-4)
    assert errors(minimum_l1(X, y)) == pytest.approx(0.0081, abs=1e-4)
    first = errors(minimum_q(X, y, [1e-4, 1e-2, 1.0], last=lambda beta: bool(errors(beta) < 0.85)))
    assert_allclose(first, [np.nan, 0.808, 0.904], atol=6e-4)
