"""The population loss against many sequences, its saddles, and the scalar equation against
descent.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.zhang2025.separate import PRINTED
from dynamics_cli._bundled.experiments.zhang2025.theory.population import (
    descent,
    moments,
    rise,
    saddle_losses,
    strengths,
)
from numpy.testing import assert_allclose

from dynamics_cli.datasets.in_context import InContextRegression
from dynamics_cli.kinds import Streams
from dynamics_cli.measures.curves import crossing

LAMBDA = np.array([0.4, 0.3, 0.2, 0.1])
N = 31


def test_losses_are_those_of_many_sequences():
    data = InContextRegression(n=200_000, context=5, eigenvalues=[0.7, 0.3], features="cubic")
    samples = data.samples(Streams(1))
    covariance = data.covariance(Streams(1))
    rng = np.random.default_rng(2)
    start = {
        "weight_value": np.ones((1, 1)),
        "weight_key_query": 0.1 * rng.standard_normal((1, 2, 2)),
    }
    (loss,), _ = descent(start, covariance, 5, 0.1, np.array([0]))
    measured = np.mean((samples.x @ start["weight_key_query"].ravel() - samples.y) ** 2)
    assert loss == pytest.approx(measured, rel=0.02)  # the standard error is 0.5 %
    solution, *_ = np.linalg.lstsq(samples.x, samples.y, rcond=None)
    assert_allclose(strengths(solution.reshape(2, 2), covariance, 5), 1, atol=0.02)
    least = np.mean((samples.x @ solution - samples.y) ** 2)
    assert saddle_losses([0.3, 0.7], 5)[-1] == pytest.approx(least, rel=0.02)


def test_saddles_are_printed_and_stationary():
    assert_allclose(saddle_losses(LAMBDA[::-1], N), PRINTED, atol=1e-8)
    a, b = moments(LAMBDA, N)
    v = np.cbrt(a / b)
    for m in range(5):
        heads = np.diag(v)[:m, None, :]
        start = {"weight_value": v[:m, None], "weight_key": heads, "weight_query": heads}
        losses, M = descent(start, np.diag(LAMBDA), N, 0.02, np.array([0, 50]))
        assert_allclose(losses, PRINTED[m], atol=1e-8)
        assert_allclose(strengths(M[-1], np.diag(LAMBDA), N), np.arange(4) < m, atol=1e-9)


def test_a_head_along_an_eigenvector_follows_the_scalar_equation():
    a, b = moments(LAMBDA, N)
    v = float(np.cbrt(0.05 * a[1] / b[1]))
    head = v * np.eye(4)[None, None, 1]
    start = {"weight_value": np.full((1, 1), v), "weight_key": head, "weight_query": head}
    _, M = descent(start, np.diag(LAMBDA), N, 2e-4, np.arange(20000))
    s = strengths(M, np.diag(LAMBDA), N)[:, 1]
    found = crossing(np.arange(20000), s, 0.9) - crossing(np.arange(20000), s, 0.1)
    assert rise(a[1], b[1], 0.1, 0.9) == pytest.approx(2e-4 * found, rel=0.002)
