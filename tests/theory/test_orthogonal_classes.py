from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dynamics_cli.theory.logistic_mode import balanced_logit, logistic_mode
from dynamics_cli.theory.orthogonal_classes import (
    orthogonal_flow,
    orthogonal_invariant,
    orthogonal_mode,
    orthogonal_rate,
)


def train(y0, z0, norms, *, lr, time, label=1):
    """Train w (m,) and z on orthogonal points with the summed loss; return confidences (steps, m)."""
    X = np.diag(norms)
    w, z, confidences = np.asarray(y0) / norms, z0, []
    for _ in range(round(time / lr)):
        y = X @ w
        f = lr * label * expit(-label * z * y) * (y > 0)
        w, z = w + z * f @ X, z + f @ y
        confidences.append(expit(label * z * np.maximum(X @ w, 0)))
    return np.array(confidences)


@pytest.mark.parametrize("label", [1, -1])
def test_trained_networks_converge_to_it_at_first_order(label):
    norms = np.full(5, 0.8)
    errors = []
    for lr in (4e-3, 2e-3):
        trained = train(np.full(5, 0.2), 0.1 * label, norms, lr=lr, time=10, label=label)
        t = lr * np.arange(1, len(trained) + 1)
        theory = orthogonal_mode(t, 0.2, 0.1 * label, 5, 0.8, label=label).confidence
        errors.append(np.abs(trained - theory[:, None]).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.05)


def test_unequal_points_against_training_and_invariant():
    norms, y0 = np.array([0.5, 1.0, 1.5]), np.array([0.1, 0.4, 0.2])
    errors = []
    for lr in (4e-3, 2e-3):
        trained = train(y0, 0.3, norms, lr=lr, time=8)
        path = orthogonal_flow(lr * np.arange(1, len(trained) + 1), y0, 0.3, norms)
        errors.append(np.abs(trained - path.confidence).max())
        drift = orthogonal_invariant(path.y, path.z, norms) - orthogonal_invariant(y0, 0.3, norms)
        assert np.abs(drift).max() < 1e-8
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.05)


def test_flow_and_closed_form_agree():
    t = np.linspace(0, 30, 16)
    for label in (1, -1):
        flow = orthogonal_flow(t, np.full(4, 0.1), 0.5 * label, np.full(4, 0.7), label=label)
        mode = orthogonal_mode(t, 0.1, 0.5 * label, 4, 0.7, label=label)
        np.testing.assert_allclose(flow.y, np.tile(mode.y[:, None], 4), rtol=1e-9)
        np.testing.assert_allclose(flow.z, mode.z, rtol=1e-9)
    np.testing.assert_allclose(4 * mode.y**2 - 0.49 * mode.z**2, 4 * 0.01 - 0.49 * 0.25, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 4, 8, 16])
def test_the_gain_is_the_root_of_m(m):
    """Measured in the notes: 1.4142, 2, 2.8284, 4 for m = 2, 4, 8, 16, from the slope of a small logit."""
    root = np.sqrt(m)
    y0 = 1e-4
    path = orthogonal_mode(np.array([0.0, 1e-4]), y0, root * y0, m)
    growth = np.diff(np.log(path.u))[0] / 1e-4
    assert growth == pytest.approx(root, rel=1e-4)  # 2 sqrt(m) ||x|| / (1 + exp(0))
    assert orthogonal_rate(m, 1.5) == pytest.approx(1.5 * root)
    t = np.linspace(0, 20, 5)
    np.testing.assert_allclose(
        orthogonal_mode(t, 0.2, root * 0.2, m).u, balanced_logit(root * t, root * 0.04), rtol=1e-12
    )


def test_one_point_is_a_mode_and_the_start_is_exact():
    t = np.array([0.0, 2.0, 1e300])
    np.testing.assert_array_equal(orthogonal_mode(t, 0.2, -0.1, 1, 0.9).y, logistic_mode(t, 0.2, -0.1, 0.9).y)
    flow = orthogonal_flow([0.0], [0.1, 0.2], 0.3, [1.0, 2.0])
    assert flow.y.tolist() == [[0.1, 0.2]]
    assert flow.z.tolist() == [0.3]


def test_bad_arguments():
    with pytest.raises(ValueError, match="m, the number"):
        orthogonal_mode(1.0, 0.1, 0.1, 0)
    with pytest.raises(ValueError, match="y0 must be positive"):
        orthogonal_flow([1.0], [0.1, -0.1], 0.1, [1.0, 1.0])
    with pytest.raises(ValueError, match="z0 of the sign"):
        orthogonal_flow([1.0], [0.1, 0.1], 0.1, [1.0, 1.0], label=-1)
    with pytest.raises(ValueError, match="ascend"):
        orthogonal_flow([1.0, 0.5], [0.1, 0.1], 0.1, [1.0, 1.0])
