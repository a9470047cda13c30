import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.growth import (
    interpolating_neuron,
    minimum_norm_value,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from dynamics_cli.measures.neurons import norms
from dynamics_cli.measures.two_layer import outputs

seeds = st.integers(0, 2**32 - 1)


def orthogonal_data(seed, n=4, d=5, spread=1.0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0][:n]
    y = rng.uniform(0.2, 2.0, n) * np.where(np.arange(n) % 2, -1, 1)
    return Q * np.exp(spread * rng.normal(size=(n, 1))), y


@given(seeds)
def test_interpolator_fits_is_balanced_and_has_the_value(seed):
    x, y = orthogonal_data(seed)
    W, a = (
        np.array(parts)
        for parts in zip(*(interpolating_neuron(x, y, sign) for sign in (1, -1)), strict=True)
    )
    assert_allclose(outputs(x, W, a), y, atol=1e-9)
    assert_allclose(a**2 - norms(W) ** 2, 0.0, atol=1e-9 * np.max(a**2))
    assert np.sum(W**2) + np.sum(a**2) == pytest.approx(minimum_norm_value(x, y), rel=1e-12)
    assert 2 * np.sum(np.abs(a) * norms(W)) == pytest.approx(
        minimum_norm_value(x, y), rel=1e-9
    )  # Eq. 8


def test_no_interpolator_found_by_a_solver_is_shorter():
    """An independent slow solution: SLSQP on four free neurons from random starts, inputs of
    unequal norms.
    """
    x = np.diag([1.0, 0.5, 2.0])
    y = np.array([1.0, 0.7, -1.5])
    m = 4
    d = 3
    best = np.inf
    for seed in range(8):
        start = np.random.default_rng(seed).normal(size=m * (d + 1))
        found = minimize(
            lambda t: t @ t,
            start,
            jac=lambda t: 2 * t,
            method="SLSQP",
            constraints={
                "type": "eq",
                "fun": lambda t: outputs(x, t[: m * d].reshape(m, d), t[m * d :]) - y,
            },
            options={"maxiter": 500, "ftol": 1e-12},
        )
        fits = np.abs(outputs(x, found.x[: m * d].reshape(m, d), found.x[m * d :]) - y).max() < 1e-6
        if fits:
            best = min(best, found.fun)
            assert found.fun >= minimum_norm_value(x, y) - 1e-5
    assert best == pytest.approx(minimum_norm_value(x, y), rel=1e-4)
