from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.two_layer import (
    activate,
    activation_derivative,
    activation_patterns,
    changed_patterns,
    outputs,
)

X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
W = np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 0.0], [-1.0, -2.0]])


def test_patterns_with_the_derivative_at_zero_off():
    patterns = activation_patterns(X, W)
    assert patterns.shape == (3, 4)
    assert patterns.T.tolist() == [[True, True, False], [True, True, False], [True, False, False], [False, False, True]]


def test_patterns_of_snapshots_and_their_changes():
    snapshots = np.stack([W, 1e-20 * W, -W])
    assert activation_patterns(X, snapshots).shape == (3, 3, 4)
    changed = changed_patterns(X, snapshots, W)
    assert changed[:2].tolist() == [0.0, 0.0]
    assert changed[2] == pytest.approx(11 / 12)  # all but the pair whose preactivation is 0


def test_activations_and_derivatives():
    z = np.array([-2.0, 0.0, 3.0])
    assert activate(z).tolist() == [0.0, 0.0, 3.0]
    assert activate(z, 0.1).tolist() == [-0.2, 0.0, 3.0]
    assert activate(z, 1.0).tolist() == z.tolist()
    assert activation_derivative(z).tolist() == [0.0, 0.0, 1.0]
    assert activation_derivative(z, 0.1).tolist() == [0.1, 0.1, 1.0]


def test_outputs_by_hand_and_in_batches():
    a = np.array([1.0, -1.0, 0.5, 2.0])
    expected = [1 - 2 + 0.5, 1 - 1, 2 * 3.0]
    assert outputs(X, W, a).tolist() == expected
    batch = outputs(X, np.stack([W, 2 * W]), np.stack([a, 3 * a]))
    np.testing.assert_allclose(batch, [expected, 6 * np.array(expected)])
