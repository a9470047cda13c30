from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.shared_neuron import (
    hyperboloid,
    saddle,
    separatrix,
    shared_neuron,
)
from hypothesis import strategies as st

positive = st.floats(0.02, 1.5)


def winner(alpha0, beta0, z0):
    """Return which class ends up as the only one that activates the neuron: 1, 2, or 0 for none."""
    end = shared_neuron([300.0], alpha0, beta0, z0)
    return int(end.alpha[0] > 0 >= end.beta[0]) + 2 * int(end.beta[0] > 0 >= end.alpha[0])


def test_the_three_trajectories_of_figure_3():
    """Times, confidences and invariants as measured in the notes with independent code."""
    t = np.linspace(0, 50, 501)
    first = shared_neuron(t, 0.1, 0.1, 0.1)
    assert first.beta_zero == pytest.approx(1.623, abs=5e-4)
    assert np.isinf(first.alpha_zero)
    assert first.confidence_1[-1] == pytest.approx(0.9976, abs=5e-5)
    second = shared_neuron(t, 0.2, 0.9, 0.2)
    assert second.alpha_zero == pytest.approx(2.247, abs=5e-4)
    assert second.confidence_2[-1] == pytest.approx(0.9978, abs=5e-5)
    assert second.confidence_1[-1] == 0.5
    third = shared_neuron(t, 1.0, 0.0, -1.1)
    assert third.alpha_zero == pytest.approx(2.662, abs=5e-4)
    assert (third.beta == 0).all()
    assert third.confidence_1[-1] == 0.5
    for path, c in ((first, 0.01), (second, 0.81), (third, -0.21)):
        np.testing.assert_allclose(hyperboloid(path.alpha, path.beta, path.z), c, atol=1e-12)
    assert [winner(0.1, 0.1, 0.1), winner(0.2, 0.9, 0.2), winner(1.0, 0.0, -1.1)] == [1, 2, 0]


def test_the_separatrix_separates_and_leads_to_the_saddle():
    curve = separatrix(0.8, points=40)
    for point in curve[[3, 15, 30, 50, 65, 77]]:
        path = shared_neuron(np.linspace(0, 25, 251), *point)
        distance = np.linalg.norm(np.stack([path.alpha, path.beta, path.z], axis=1) - saddle(0.8), axis=1)
        assert distance.min() < 1e-4
        z_up = np.array([0.0, 0.0, 1e-4])
        assert winner(*(point + z_up)) == 1
        assert winner(*(point - z_up)) == 2
