from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.confidence_times import (
    cross_entropy_time,
    hinge_time,
    required_logit,
)
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import deep_logit
from scipy.special import expi, expit, hyp1f1


@pytest.mark.parametrize("depth", [3, 4, 8, 20])
def test_equation_5_in_its_closed_form(depth: int) -> None:
    """p N ||x||^(2/N) t = J(u) - J(u_0), J(u) = -u^(-s) (1 + 1F1(-s; 1 - s; u)) / s, s = 1 - 2/N."""
    t, u0, norm, s = np.linspace(0, 60, 61), 0.05, 2.0, 1 - 2 / depth
    u = deep_logit(t, u0, depth, norm, p=0.5)
    J = [-(v**-s) * (1 + hyp1f1(-s, 1 - s, v)) / s for v in (u, u0)]
    np.testing.assert_allclose(J[0] - J[1], 0.5 * depth * norm ** (2 / depth) * t, rtol=1e-9, atol=1e-9)
    assert u[0] == pytest.approx(u0)


def test_two_layers_are_equation_2_as_printed() -> None:
    t, u0, norm = np.linspace(0, 200, 41), 0.05, 1.3
    u = deep_logit(t, u0, 2, norm)
    np.testing.assert_allclose(np.log(u) + expi(u), 2 * norm * t + np.log(u0) + expi(u0), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    ("delta", "u0", "norm", "p"), [(0.3, 0.2, 1.0, 1.0), (1e-2, 0.05, 2.0, 0.3), (1e-6, 0.4, 0.5, 0.9)]
)
def test_at_the_time_of_a5_the_confidence_is_reached(delta: float, u0: float, norm: float, p: float) -> None:
    t = cross_entropy_time(delta, u0, norm, p=p)
    assert expit(-deep_logit(np.array([t]), u0, 2, norm, p=p)) == pytest.approx(delta, rel=1e-8)


def test_cross_entropy_diverges_and_hinge_does_not() -> None:
    delta = np.array([1e-2, 1e-4, 1e-8, 1e-16, 1e-100])
    slow, fast = cross_entropy_time(delta, 0.1), hinge_time(1 - delta, 0.1)
    assert slow[-1] == pytest.approx(1e100 / (2 * np.log(1e100)), rel=0.01)  # Ei(u) ~ exp(u) / u
    assert hinge_time(1.0, 0.1) == pytest.approx(-np.log(0.1) / 2)
    assert (fast < slow).all()
    assert (cross_entropy_time(0.4, 3.0), hinge_time(0.5, 0.8)) == (0.0, 0.0)  # reached already
    assert required_logit(1e-300) == pytest.approx(300 * np.log(10))
