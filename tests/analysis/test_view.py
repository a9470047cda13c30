from __future__ import annotations

import numpy as np

from dynamics_cli.analysis.view import View
from dynamics_cli.runs import Run

from .conftest import Write


def test_states_end_before_the_first_that_is_not_finite(write: Write, layer: dict[str, object]) -> None:
    broken = {**layer, "output_weight": [np.nan, 1.0]}
    assert View(write([1.0] * 4, {0: layer, 1: layer, 2: broken, 3: broken})).states == 2


def test_costly_curves_go_through_fewer_states(orthogonal: Run) -> None:
    view = View(orthogonal)
    assert len(view.curve_states(1)) == view.states
    few = view.curve_states(10**9)
    assert few[0] == 0
    assert few[-1] == view.states - 1
    assert 6 <= len(few) <= 12
    assert (np.diff(few) > 0).all()


def test_data_that_do_not_fit_the_weights_are_not_drawn(write: Write, layer: dict[str, object]) -> None:
    """As after copying the weights of another run."""
    wide = {**layer, "hidden_weight": [[1.0, 1.0, 1.0], [-3.0, 6.0, 0.0]]}
    view = View(write([1.0], {0: wide}))
    assert view.no_dataset == "its data cannot be read (inputs have 2 columns, the recorded weights 3)"
