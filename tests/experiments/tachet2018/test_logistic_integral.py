from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.logistic_integral import scaled_ei, scaled_rise
from scipy.integrate import quad
from scipy.special import expi


@pytest.mark.parametrize("k", [0.0, 1e-9, 1e-3, 0.7, 30.0])
@pytest.mark.parametrize("u", [-300.0, -2.0, -1e-3, 1e-3, 0.6, 7.0, 60.0, 600.0])
def test_the_integral_against_adaptive_quadrature(u, k):
    scale = max(k, 1e-12)

    def integrand(s):  # in the variable s = asinh(v / scale)
        v = np.sign(u) * scale * np.sinh(s)
        jacobian = scale * np.cosh(s) / (2 * np.hypot(v, k)) if k else np.cosh(s) / (2 * np.sinh(s))
        return np.sign(u) * np.exp(-max(u, 0) + max(v, 0)) * (-np.expm1(-abs(v))) * np.sign(u) * jacobian

    top = np.arcsinh(abs(u) / scale)
    cuts = np.unique(np.clip([0.0, top - 15, top - 5, top - 2, top - 0.5, top - 0.1, top - 0.02, top], 1e-14, None))
    expected = sum(quad(integrand, *pair, epsabs=0, epsrel=1e-13, limit=200)[0] for pair in pairwise(cuts))
    assert scaled_rise(np.array([u]), np.array([k]))[0] == pytest.approx(expected, rel=1e-11)


def test_scaled_ei_is_continuous_and_does_not_overflow():
    u = np.array([1e-3, 1.0, 49.999999, 50.000001, 300.0])
    np.testing.assert_allclose(scaled_ei(u), expi(u) * np.exp(-u), rtol=2e-15)
    assert scaled_ei(np.array([1e5]))[0] == pytest.approx(1.0 / (1e5 - 1.0), rel=1e-9)
