"""The figures of Sarussi et al. 2021 on runs that are really trained."""

import numpy as np
import pytest

from dynamics_cli.errors import InputError
from experiments.sarussi2021 import digits
from experiments.sarussi2021.groups import Clustering, least_squares_accuracy
from tests.experiments.helpers import evidence_of, verdicts


def test_a_trained_second_layer_is_refused():
    with pytest.raises(InputError, match="train_output: false"):
        evidence_of("sarussi2021-fig1", ("architecture.train_output=true", "optimizer.epochs=1"))


def test_linear_least_squares_may_get_a_point_wrong():
    x = np.array([[1.0, 0.0], [10.0, 0.0], [0.0, 1.0]])
    y = np.array([1.0, -1.0, 1.0])  # the normal is (-9/101, 1)
    assert least_squares_accuracy(x, y) == pytest.approx(2 / 3)


@pytest.mark.parametrize("learnt", [True, False])
def test_neurons_that_cluster_count_once_the_digits_are_learnt(learnt):
    states = np.arange(4.0)
    run = Clustering(
        epochs=states,
        ratio=0 * states,
        angle=0 * states,
        outside={"training": 0 * states, "held-out": 0 * states},
        differ=0,
        sizes={"training": 20, "held-out": 10},
        surely_outside=0.0,
        accuracy=np.where((states >= 2) & learnt, 1.0, 0.0),
        linear_accuracy=0.5,
    )
    runs = dict.fromkeys([*digits.PAIRS, *digits.MORE_PAIRS], run)
    claims = [*digits.claims_fig6(runs), *digits.claims_fig7(runs)]
    expected = "reproduced" if learnt else "not reproduced"
    assert set(verdicts(claims).values()) == {expected}
