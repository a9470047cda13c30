import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.theory.shared_neuron import (
    between,
    confidences,
    hyperboloid,
    separatrix,
    shared_neuron,
    stationary,
)
from numpy.testing import assert_allclose


def winner(start):
    """Return which class ends up as the only one that activates the neuron: 1, 2, or 0 for none."""
    ((alpha, beta, _),), _ = shared_neuron(np.array([300.0]), np.asarray(start))
    return int(alpha > 0 >= beta) + 2 * int(beta > 0 >= alpha)


def test_the_three_trajectories_of_figure_3():
    """Times, confidences and invariants as measured in the notes with independent code."""
    starts = [(0.1, 0.1, 0.1), (0.2, 0.9, 0.2), (1.0, 0.0, -1.1)]
    paths, zeros = zip(
        *(shared_neuron(np.linspace(0, 50, 501), np.array(start)) for start in starts), strict=True
    )
    assert_allclose(zeros, [[np.inf, 1.623], [2.247, np.inf], [2.662, 0]], atol=5e-4)
    assert confidences(paths[0])[0, -1] == pytest.approx(0.9976, abs=5e-5)
    assert confidences(paths[1])[1, -1] == pytest.approx(0.9978, abs=5e-5)
    assert confidences(paths[1])[0, -1] == confidences(paths[2])[0, -1] == 0.5
    assert (paths[2][:, 1] == 0).all()
    for path, c in zip(paths, (0.01, 0.81, -0.21), strict=True):
        assert_allclose(hyperboloid(*path.T), c, atol=1e-12)
    assert [winner(start) for start in starts] == [1, 2, 0]


def test_the_separatrix_separates_and_leads_to_the_saddle():
    curve = separatrix(0.8, points=40)
    for point in curve[[3, 15, 30, 50, 65, 77]]:
        path, _ = shared_neuron(np.linspace(0, 25, 251), point)
        assert np.linalg.norm(path - curve[40], axis=1).min() < 1e-4
        z_up = np.array([0.0, 0.0, 1e-4])
        assert winner(point + z_up) == 1
        assert winner(point - z_up) == 2


def test_other_norms_and_the_cone_are_as_theorem_3_4_says():
    norms = (1.0, 2.0)
    start = between(0.3, 0.4, norms, 100.0)
    path, _ = shared_neuron(np.linspace(0, 40, 801), start, norms)
    c = hyperboloid(*path.T, norms)
    assert_allclose(c, c[0], atol=1e-11)
    nearest = np.linalg.norm(path - stationary(float(c[0]), norms), axis=1).min()
    assert nearest < 1e-5
    assert stationary(1.25, norms)[0] == pytest.approx(1.0)  # (1 + 1/4)^(-1/2) sqrt(c)
    cone = np.array([0.1, 0.1, 0.1 * np.sqrt(2)])
    assert shared_neuron(np.array([5.0]), cone)[1][1] == pytest.approx(1.246, abs=5e-4)
