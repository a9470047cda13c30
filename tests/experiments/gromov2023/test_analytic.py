"""The analytic weights, and the Fourier measures of weights."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.gromov2023.theory.analytic import (
    analytic_weights,
    participation,
    phase_sums,
    strongest,
)
from dynamics_cli._bundled.experiments.gromov2023.theory.analytic import outputs as sums
from numpy.testing import assert_allclose, assert_array_equal


def test_analytic_weights_add():
    U, V, W = analytic_weights(11, 400, np.random.default_rng(0))
    # a sum over neurons, written out for one pair and one output
    n = 3
    m = 9
    q = 4
    expected = sum(W[q, k] * (U[k, n] + V[k, m]) ** 2 for k in range(400))
    f = sums(U, V, W)
    assert f[n, m, q] == pytest.approx(expected)
    assert_array_equal(f.argmax(-1), np.add.outer(np.arange(11), np.arange(11)) % 11)
    same, total = phase_sums(U, V, W)
    assert same.all()
    assert_allclose(total, 0, atol=1e-12)
    assert_allclose(participation(U), 1)
    with pytest.raises(ValueError, match="odd"):
        analytic_weights(10, 4, np.random.default_rng(0))


def test_fourier_measures_of_waves_and_noise():
    t = 2 * np.pi * np.arange(31) / 31
    rows = np.stack([np.cos(3 * t + 0.7), np.cos(5 * t - 1.0) + np.cos(2 * t)])
    assert_allclose(participation(rows), [1, 0.5])
    s, phase = strongest(rows[:1] + 9.0)
    assert (s[0], phase[0]) == (3, pytest.approx(0.7))
    noise = np.random.default_rng(0).standard_normal((4000, 31))
    assert participation(noise).mean() == pytest.approx(2 / 16, rel=0.1)
