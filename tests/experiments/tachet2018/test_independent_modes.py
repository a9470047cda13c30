"""Independent modes: H1 to H3 hold at the start, Lemma 3.1 during training."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_cli.training.backends import build_stepper, choose
from tests.cases import problem_of
from tests.kinds.test_refused import MODES


def problem(**changes):
    return problem_of(**{**MODES, **changes})


def test_two_classes_start_as_asked():
    weights = problem().initial_parameters()
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert_allclose(
        weights["hidden_weight"] @ x.T, [[0.2, 0], [0.3, 0], [0, 0.4]], atol=1e-15
    )  # H2
    assert weights["output_weight"].tolist() == [0.2, 0.1, -0.5]  # H3


def test_deep_networks_have_positive_diagonals_for_both_classes():
    weights = problem(
        architecture={"kind": "fully_connected", "widths": [2, 2, 2], "bias": False},
        initialization={"kind": "independent_modes", "y": [[0.2], [0.6]], "z": [[0.2], [0.3]]},
    ).initial_parameters()
    assert weights["weight_2"].tolist() == weights["weight_3"].tolist() == [[0.2, 0.0], [0.0, 0.3]]
    assert weights["weight_4"].tolist() == [[0.2, -0.3]]


@pytest.mark.parametrize(
    "optimizer", [{"kind": "gd"}, {"kind": "sgd", "batch_size": 1, "replacement": True}]
)
def test_lemma_3_1_activity_and_signs_never_change(optimizer):
    x = [[1.0, 0.4], [0.5, 1.0], [1.2, 1.1], [-1.0, -0.2], [-0.4, -0.4]]
    one = problem(
        dataset={"kind": "points", "x": x, "y": [1, 1, 1, -1, -1]},
        optimizer={**optimizer, "lr": 0.05, "iterations": 2000},
    )
    stepper = build_stepper([one], choose([one]))
    before = one.initial_parameters()
    active = np.array(x) @ before["hidden_weight"].T > 0
    assert active.tolist() == [[True, True, False]] * 3 + [[False, False, True]] * 2
    for _ in range(20):
        stepper.advance(100)
        now = stepper.parameters()
        assert (np.array(x) @ now["hidden_weight"].T > 0).tolist() == active.tolist()
        assert np.sign(now["output_weight"]).tolist() == [1, 1, -1]
    assert stepper.loss() < 0.2
