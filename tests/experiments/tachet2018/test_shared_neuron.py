from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.shared_neuron import (
    hyperboloid,
    saddle,
    saddle_eigenvalues,
    separatrix,
    shared_neuron,
)
from hypothesis import given, settings
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


@given(positive, positive, st.floats(-1.5, 1.5))
@settings(max_examples=40, deadline=None)
def test_invariant_and_freezing(alpha0, beta0, z0):
    t = np.linspace(0, 30, 61)
    path = shared_neuron(t, alpha0, beta0, z0)
    c = hyperboloid(alpha0, beta0, z0)
    np.testing.assert_allclose(hyperboloid(path.alpha, path.beta, path.z), c, atol=1e-8)
    assert (path.alpha[t >= path.alpha_zero] == 0).all()
    assert (path.beta[t >= path.beta_zero] == 0).all()
    assert (path.alpha[t < path.alpha_zero] > 0).all()
    assert (path.beta[t < path.beta_zero] > 0).all()
    assert (path.alpha[0], path.beta[0], path.z[0]) == (alpha0, beta0, z0)


def test_numbers_of_the_notes_for_c_equal_1():
    assert saddle_eigenvalues(1.0) == (pytest.approx(0.5931, abs=5e-5), pytest.approx(-0.8431, abs=5e-5))
    curve = separatrix(1.0)
    np.testing.assert_allclose(curve[0], [0.0, 1.781, 1.474], atol=5e-4)
    np.testing.assert_allclose(curve[200], [np.sqrt(0.5), np.sqrt(0.5), 0.0], rtol=1e-15)
    np.testing.assert_allclose(curve[::-1], curve[:, [1, 0, 2]] * [1, 1, -1], atol=1e-9)  # mirror images
    np.testing.assert_allclose(hyperboloid(*curve.T), 1.0, atol=1e-10)
    assert (curve[:, :2] >= 0).all()


def test_the_separatrix_separates_and_leads_to_the_saddle():
    curve = separatrix(0.8, points=40)
    for point in curve[[3, 15, 30, 50, 65, 77]]:
        path = shared_neuron(np.linspace(0, 25, 251), *point)
        distance = np.linalg.norm(np.stack([path.alpha, path.beta, path.z], axis=1) - saddle(0.8), axis=1)
        assert distance.min() < 1e-4
        z_up = np.array([0.0, 0.0, 1e-4])
        assert winner(*(point + z_up)) == 1
        assert winner(*(point - z_up)) == 2
