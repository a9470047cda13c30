from __future__ import annotations

import numpy as np
import pytest

from experiments.boursier2022.theory.alignment import D_minus, D_plus, S_minus_1, S_plus_1


def test_D_of_the_two_orthogonal_points(two_points):
    x, y = two_points
    np.testing.assert_allclose(D_plus(x, y), [1.0, 0.5])
    np.testing.assert_allclose(D_minus(x, y), [0.25, -0.5])
    # the angles of Figure 2's final neurons
    assert np.degrees(np.arctan2(*D_plus(x, y)[::-1])) == pytest.approx(26.565, abs=1e-3)
    assert np.degrees(np.arctan2(*-D_minus(x, y)[::-1])) == pytest.approx(116.565, abs=1e-3)


def test_sets_of_neurons_by_hand():
    x, y = np.eye(3), np.array([1.0, 2.0, -1.0])
    W = np.array([[1, 1, -9], [1, -1, 1], [0, 0, 1], [1, 1, 0], [-1, -1, 1], [-1, -1, -1]], dtype=float)
    a = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    assert S_plus_1(x, y, W, a).tolist() == [True, False, True, False, False, False]  # <w, x> = 0 belongs (Eq. 5)
    assert S_minus_1(x, y, W, a).tolist() == [False, False, False, True, True, False]
    assert S_plus_1(x, y, 1e-20 * W, 1e-20 * a).tolist() == S_plus_1(x, y, W, a).tolist()
    assert S_minus_1(x, -y, W, -a).tolist() == S_plus_1(x, y, W, a).tolist()
