"""Measures of small networks and curves that are computed by hand."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.states import distinct_kinks
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.measures.clusters import cluster_directions, significant
from dynamics_cli.measures.curves import Plateau, find_plateaus, first_at, first_below
from dynamics_cli.measures.least_distance import least_distance
from dynamics_cli.measures.neurons import angle_of, cosines, directions, kinks, norms, signs
from dynamics_cli.measures.spectra import project, singular_values, stable_rank
from dynamics_cli.measures.two_layer import (
    activate,
    activation_derivative,
    activation_patterns,
    outputs,
)

NAN = np.nan
NONE = []
W = np.array([[3.0, 4.0], [0.0, 0.0], [-5.0, 12.0]])
PAIR = np.array([[3.0, 4.0], [0.0, 1.0]])
OUT = np.array([-5.0, 2.0])
DIAGONAL = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
PARALLEL = np.outer(
    [1.0, 2.0, 3.0], [1.0, 1.0]
)  # after centring there would be variance around the mean only
X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
FOUR = np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 0.0], [-1.0, -2.0]])
LAST = np.array([1.0, -1.0, 0.5, 2.0])
ACTIVE = [[True, True, False], [True, True, False], [True, False, False], [False, False, True]]
Z = np.array([-2.0, 0.0, 3.0])
LINES = np.array([[1.0, 0.5], [2.0, 1.0], [1.0, -2.0], [1.0, -2.004], [1e-5, 5e-5], [0.0, 1.0]])
SNAPSHOTS = np.array([[[1.0, 0.0], [0.5, 0.0]], [[1e-20, 0.0], [1e-24, 0.0]]])
STEPS = [0, 10, 20, 30]
FALL = [4.0, 1.0, 3.0, 0.5]
DIVERGED = [1.0, 0.1, np.inf, 0.001]
TURNED = 30 * np.pi / 180 + np.array([0.0, 0.0, np.pi])
OPPOSITE = np.stack([np.cos(TURNED), np.sin(TURNED)], 1)
TINY = np.outer([1.0, 1e-3, 7.0], [0.3, -0.7, 0.1]) * 1e-20

EXACT = [
    (lambda: norms(W), [5.0, 0.0, 13.0]),
    (lambda: norms(np.stack([W, 2 * W])), [[5.0, 0.0, 13.0], [10.0, 0.0, 26.0]]),
    (lambda: directions(PAIR * [[0], [2]]), [[NAN, NAN], [0.0, 1.0]]),
    (lambda: cosines([[0.0, 0.0], [0.0, 2.0]], [1.0, 0.0]), [NAN, 0.0]),
    (lambda: cosines([[0.0, 0.0], [0.0, 2.0]], [0.0, 0.0]), [NAN, NAN]),
    (lambda: cosines(np.eye(2), [[2.0, 0.0], [0.0, -3.0]]), [1.0, -1.0]),
    (lambda: kinks([[2.0, 1.0], [-1.0, 3.0], [0.0, 1.0]]), [-0.5, 3.0, NAN]),
    (lambda: signs(OUT), [-1.0, 1.0]),
    (
        lambda: project([[[0.0, 2.0, 5.0]], [[-1.0, 0.0, 5.0]]], np.eye(2, 3)),
        [[[0.0, 2.0]], [[-1.0, 0.0]]],
    ),
    (lambda: activation_patterns(X, FOUR).T, ACTIVE),  # the derivative at 0 is off
    (lambda: activation_patterns(X, np.stack([FOUR, 1e-20 * FOUR, -FOUR])).shape, (3, 3, 4)),
    (lambda: activate(Z), [0.0, 0.0, 3.0]),
    (lambda: activate(Z, 0.1), [-0.2, 0.0, 3.0]),
    (lambda: activate(Z, 1.0), Z),
    (lambda: activation_derivative(Z), [0.0, 0.0, 1.0]),
    (lambda: activation_derivative(Z, 0.1), [0.1, 0.1, 1.0]),
    (lambda: outputs(X, FOUR, LAST), [1 - 2 + 0.5, 1 - 1, 2 * 3.0]),
    (lambda: significant(SNAPSHOTS, 0.1), [[True, True], [True, False]]),
    (lambda: distinct_kinks(np.array([[0.0, 1.0]])), NONE),
    (lambda: distinct_kinks(np.zeros((2, 2))), NONE),
    (lambda: cluster_directions(OPPOSITE).sizes, [2, 1]),
    (lambda: cluster_directions(OPPOSITE, signs=[0.7, -0.2, 0.9]).count, 3),
    (lambda: cluster_directions(OPPOSITE, signs=[0.7, 0.2, 0.9]).count, 2),
    (lambda: cluster_directions(TINY, angle_tolerance=0.0, relative_norm=0.0).count, 1),
    (lambda: cluster_directions(np.zeros((3, 2))).count, 0),
    (lambda: cluster_directions(np.zeros((3, 2))).labels, [-1, -1, -1]),
    (lambda: cluster_directions(np.zeros((3, 2))).directions.shape, (0, 2)),
    (lambda: first_at(np.array([0, 5, 9]), np.array([False, True, True])), 5.0),
    (lambda: first_at(np.arange(3), np.zeros(3, bool)), NAN),
    (lambda: first_below(STEPS, FALL, 2.0), 10),
    (lambda: first_below([0, 10], [4.0, 1.0], 0.5), None),
    (
        lambda: first_below(range(4), DIVERGED, 0.01),
        None,
    ),  # read up to its first loss that is not finite
    (lambda: find_plateaus([0, 1, 2, 3], [1.0, 1.0, 1.0, NAN]) == [Plateau(1.0, 0, 2)], True),
]
NEAR = [  # with the largest absolute error
    (
        lambda: angle_of([[2.0, 1.0], [-0.5, 1.0], [-1.0, -0.0], [0.0, -1.0], [0.0, 0.0]]),
        [np.degrees(np.arctan(0.5)), 90 + np.degrees(np.arctan(0.5)), 180.0, -90.0, NAN],
        0,
    ),
    (lambda: singular_values(DIAGONAL), [4.0, 3.0], 0),
    (lambda: singular_values(np.stack([DIAGONAL, 0 * DIAGONAL])), [[4.0, 3.0], [0.0, 0.0]], 0),
    (lambda: stable_rank(np.stack([DIAGONAL, 0 * DIAGONAL])), [25 / 16, NAN], 0),
    (lambda: stable_rank(PARALLEL), 1.0, 0),
    (
        lambda: outputs(X, np.stack([FOUR, 2 * FOUR]), np.stack([LAST, 3 * LAST])),
        [[-0.5, 0, 6.0], [-3.0, 0, 36.0]],
        0,
    ),
    (lambda: distinct_kinks(LINES), [-0.5, 2.002], 0),
    (lambda: distinct_kinks(LINES, within=(0.0, 3.0)), [2.002], 0),
    (lambda: least_distance([[2.0, 0.0], [0.0, 1.0]]).w, [0.5, 1.0], 0),
    (lambda: least_distance([[2.0, 0.0], [0.0, 1.0]]).multipliers, [0.25, 1.0], 0),
    (
        lambda: least_distance([[1.0, 0.0], [5.0, 0.1]]).multipliers[1:],
        [0.0],
        0,
    ),  # a slack inequality has none
    (lambda: least_distance([[1.0, 0.0], [5.0, 0.1]]).w, [1.0, 0.0], 1e-14),
    (
        lambda: least_distance([[1.0, 0.0], [0.0, 1.0]], [2.0, -3.0]).w,
        [2.0, 0.0],
        1e-14,
    ),  # bounds of both signs
    (lambda: least_distance([[1.0, 2.0]], -1.0).w, [0.0, 0.0], 1e-14),
]


@pytest.mark.parametrize(("call", "expected"), EXACT)
def test_numbers_that_are_exact(call, expected):
    assert_array_equal(call(), expected)


@pytest.mark.parametrize(("call", "expected", "error"), NEAR)
def test_numbers_that_are_rounded(call, expected, error):
    assert_allclose(call(), expected, rtol=1e-14 if error == 0 else 1e-12, atol=error)
