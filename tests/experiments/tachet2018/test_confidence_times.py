from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.confidence_times import (
    cross_entropy_time,
    hinge_time,
    required_logit,
)
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import balanced_logit
from dynamics_cli._bundled.experiments.tachet2018.theory.modes import hinge_mode
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expi, expit


def bar_time(u_f, u0):
    """Return the time of A.5 for ||x|| = p = 1 as printed."""
    return 0.5 * (np.log(u_f / u0) + expi(u_f) - expi(u0))


def test_the_time_of_a5_as_printed():
    delta = np.array([0.3, 0.1, 1e-2, 1e-6])
    u_f = np.log(1 / delta - 1)
    np.testing.assert_allclose(cross_entropy_time(delta, 0.2), bar_time(u_f, 0.2), rtol=1e-12)
    np.testing.assert_allclose(cross_entropy_time(delta, 0.2, 2.0, p=0.3), bar_time(u_f, 0.2) / 0.6, rtol=1e-12)


@given(st.floats(-12, -0.5), st.floats(0.01, 0.5), st.floats(0.3, 3), st.floats(0.1, 0.9))
def test_at_that_time_the_confidence_is_reached(log_delta, u0, norm, p):
    delta = 10.0**log_delta
    if required_logit(delta) <= u0:
        return
    t = cross_entropy_time(delta, u0, norm, p=p)
    assert expit(-balanced_logit(t, u0, norm, p=p)) == pytest.approx(delta, rel=1e-10)
    t = hinge_time(1 - delta, u0, norm, p=p)
    z0 = np.sqrt(u0 / norm)
    assert hinge_mode(t, norm * z0, z0, norm, p=p).u == pytest.approx(max(1 - delta, u0), rel=1e-12)


def test_cross_entropy_diverges_and_hinge_does_not():
    delta = np.array([1e-2, 1e-4, 1e-8, 1e-16, 1e-100, 1e-300])
    slow, fast = cross_entropy_time(delta, 0.1), hinge_time(1 - delta, 0.1)
    assert (np.diff(slow) > 0).all()
    assert slow[-1] == pytest.approx(1e300 / (2 * np.log(1e300)), rel=0.01)  # Ei(u) ~ exp(u) / u
    assert (fast <= -np.log(0.1) / 2).all()
    assert hinge_time(1.0, 0.1) == pytest.approx(-np.log(0.1) / 2)
    assert (fast < slow).all()


def test_reached_already():
    assert cross_entropy_time(0.4, 3.0) == 0.0
    assert hinge_time(0.5, 0.8) == 0.0
    assert required_logit(1e-300) == pytest.approx(300 * np.log(10))
