"""The figures of Sarussi et al. 2021 on runs that are really trained."""

from __future__ import annotations

import pytest

from dynamics_cli.errors import InputError
from tests.experiments.helpers import evidence_of


def test_a_trained_second_layer_is_refused():
    with pytest.raises(InputError, match="train_output: false"):
        evidence_of("sarussi2021-fig1", ("architecture.train_output=true", "optimizer.epochs=1"))
