"""Critical sharpness against losses by automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dynamics_cli.kinds import State
from dynamics_cli.recording.derivatives import derivatives_of
from tests.kinds import cases
from tests.recording.test_instruments import CASES, Reference, instrument, moved, problem_of


@pytest.mark.parametrize("case", CASES)
def test_the_critical_step_is_where_the_loss_is_back(case: str) -> None:
    state = moved(problem_of(case))
    measure = instrument("critical_sharpness", tolerance=1e-6)
    found = measure.measure(state)
    derivatives = derivatives_of(state)
    reference, g = Reference(state, derivatives.names), torch.from_numpy(derivatives.gradient().copy())

    def loss(step: float) -> float:
        return float(reference.loss(reference.theta - step * g))

    if case == "residual":  # along the gradient its neurons die, and the loss stays
        assert found == 0
        assert all(loss(step) < loss(0) for step in np.geomspace(1e-3, 1e3, 60))
        return
    losses = [loss(2 / found * share) for share in (0.0, 0.999, 1.001)]
    assert losses[1] < losses[0] < losses[2]
    assert measure.measure(state) == pytest.approx(found, rel=3e-6)  # from the step that is remembered
    coarse = instrument("critical_sharpness").measure(moved(problem_of(case)))
    assert coarse == pytest.approx(found, rel=1e-3) or case == "deep ReLU"


def test_where_no_step_raises_the_loss_it_is_0_and_without_a_gradient_nothing() -> None:
    linear = {"architecture": {"kind": "fully_connected", "widths": [], "bias": False},
              "initialization": {"kind": "default_scaled"}}  # fmt: skip
    problem = cases.problem_of(
        dataset={"kind": "points", "x": [[1.0]], "y": [1.0]}, loss={"kind": "logistic"}, **linear
    )
    assert instrument("critical_sharpness").measure(moved(problem)) == 0
    still = State(problem_of("diagonal"), {"u": np.zeros(3), "v": np.zeros(3)}, dict, 0)
    assert np.isnan(instrument("critical_sharpness").measure(still))
