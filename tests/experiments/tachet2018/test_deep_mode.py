import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.confidence_times import (
    cross_entropy_time,
)
from dynamics_cli._bundled.experiments.tachet2018.theory.deep_mode import (
    deep_logit,
    deep_time,
    even_start,
)
from numpy.testing import assert_allclose
from scipy.special import expi, expit, hyp1f1


@pytest.mark.parametrize("depth", [3, 4, 8, 20])
def test_equation_5_in_its_closed_form(depth):
    """p N ||x||^(2/N) t = J(u) - J(u_0), J(u) = -u^(-s) (1 + 1F1(-s; 1 - s; u)) / s, s = 1 -
    2/N.
    """
    t = np.linspace(0, 60, 61)
    u0 = 0.05
    norm = 2.0
    s = 1 - 2 / depth
    u = deep_logit(t, u0, depth, norm, p=0.5)
    J = [-(v**-s) * (1 + hyp1f1(-s, 1 - s, v)) / s for v in (u, u0)]
    assert_allclose(J[0] - J[1], 0.5 * depth * norm ** (2 / depth) * t, rtol=1e-9, atol=1e-9)
    assert u[0] == pytest.approx(u0)


def test_two_layers_are_equation_2_as_printed():
    t = np.linspace(0, 200, 41)
    u0 = 0.05
    norm = 1.3
    u = deep_logit(t, u0, 2, norm)
    assert_allclose(
        np.log(u) + expi(u), 2 * norm * t + np.log(u0) + expi(u0), rtol=1e-10, atol=1e-9
    )


@pytest.mark.parametrize(
    ("delta", "u0", "norm", "p"),
    [(0.3, 0.2, 1.0, 1.0), (1e-2, 0.05, 2.0, 0.3), (1e-6, 0.4, 0.5, 0.9)],
)
def test_at_the_time_of_a5_the_confidence_is_reached(delta, u0, norm, p):
    t = cross_entropy_time(delta, u0, norm, p=p)
    assert expit(-deep_logit(np.array([t]), u0, 2, norm, p=p)) == pytest.approx(delta, rel=1e-8)


def test_below_a_small_initial_logit_the_deeper_network_is_the_slower_one():
    """Times and initial logits as an independent program gives them."""
    times = [deep_time(0.01, 0.001, depth) for depth in (2, 4, 8)]
    assert_allclose(times, [22.3, 35.4, 61.0], atol=0.05)
    even = [even_start(0.01, (2, 4)), even_start(0.01, (2, 8)), even_start(0.01, (2, 4), 2.0)]
    assert_allclose(even, [0.0033, 0.0045, 0.0091], atol=5e-5)
    assert deep_time(0.01, 0.05, 2, 2.0) == pytest.approx(
        float(cross_entropy_time(0.01, 0.05, 2.0))
    )
