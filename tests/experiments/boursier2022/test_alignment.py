import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.alignment import D_minus, D_plus
from numpy.testing import assert_allclose


def test_D_of_the_two_orthogonal_points(two_points):
    x, y = two_points
    assert_allclose(D_plus(x, y), [1.0, 0.5])
    assert_allclose(D_minus(x, y), [0.25, -0.5])
    # the angles of Figure 2's final neurons
    assert np.degrees(np.arctan2(*D_plus(x, y)[::-1])) == pytest.approx(26.565, abs=1e-3)
    assert np.degrees(np.arctan2(*-D_minus(x, y)[::-1])) == pytest.approx(116.565, abs=1e-3)
