"""The figures of Sarussi et al. 2021 on runs that are really trained."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.sarussi2021.fig4 import largest_fall

from dynamics_cli.errors import InputError
from tests.experiments.helpers import evidence_of


def test_margins_are_ordered_and_a_fall_is_seen() -> None:
    evidence = evidence_of("sarussi2021-fig4")
    one = evidence.limit_margins
    assert one.late.any()
    assert not one.late[0]
    assert (one.smoothed[one.late] <= one.normalised[one.late]).all()  # Lyu and Li (2020), Lemma A.5
    assert one.normalised[-1] < one.largest
    assert largest_fall(np.array([1.0, 4.0, 2.0, 1.9])) == 0.5


def test_a_trained_second_layer_is_refused() -> None:
    with pytest.raises(InputError, match="train_output: false"):
        evidence_of("sarussi2021-fig1", ("architecture.train_output=true", "optimizer.epochs=1"))
