"""Arguments of pure functions and closed forms that make no sense are refused in a message that
names them.
"""

import numpy as np
import pytest

from dynamics_cli.measures.clusters import cluster_directions
from dynamics_cli.measures.curves import find_plateaus, first_below
from dynamics_cli.measures.least_distance import InfeasibleError, least_distance
from dynamics_cli.measures.neurons import angle_of, kinks
from dynamics_cli.measures.spectra import singular_values
from dynamics_cli.measures.two_layer import preactivations
from dynamics_cli.theory.ntk import ntk_interpolator
from dynamics_cli.theory.sphere_flow import sphere_flow

ONES = np.ones((3, 2))
X = np.eye(3)
Y = np.arange(3.0)
W = np.full((4, 3), 0.3)
A = np.ones(4)

CALLS = [
    (lambda: cluster_directions(ONES, signs=[1, 1]), ValueError, "2 signs for 3 neurons"),
    (lambda: first_below([0, 1, 2], [1.0, 2.0], 0.5), ValueError, "3 iterations but 2 losses"),
    (lambda: find_plateaus([0, 2, 1], [1.0, 1.0, 1.0]), ValueError, "ascending"),
    (lambda: least_distance([[1.0, 0.0], [-1.0, 0.0]]), InfeasibleError, "not separable"),
    (lambda: least_distance([[0.0, 0.0]]), InfeasibleError, "a row of A is 0"),
    (lambda: kinks(np.ones((3, 4))), ValueError, "1-D inputs"),
    (lambda: angle_of(np.ones((2, 3))), ValueError, "plane"),
    (lambda: singular_values([[np.nan, 1.0]]), ValueError, "finite"),
    (lambda: preactivations(ONES, np.ones((4, 3))), ValueError, "dimension 2 but the neurons 3"),
    (lambda: ntk_interpolator(X, Y, W, A)(np.ones((2, 4))), ValueError, "dimension"),
    (lambda: ntk_interpolator(X, Y[:2], W, A), ValueError, "labels"),
    (lambda: sphere_flow(X, Y, W, A, [1.0, 0.5]), ValueError, "ascend"),
    (lambda: sphere_flow(X, Y, W, A, [-1.0]), ValueError, "ascend"),
    (lambda: sphere_flow(X, Y, 0 * W, A, [1.0]), ValueError, "no direction"),
]


@pytest.mark.parametrize(("call", "error", "told"), CALLS, ids=[told for *_, told in CALLS])
def test_arguments_that_make_no_sense(call, error, told):
    with pytest.raises(error, match=told):
        call()
