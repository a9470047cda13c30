from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.analysis.view import View, spread
from dynamics_cli.runs import Run

from .conftest import Write


def test_states_end_before_the_first_that_is_not_finite(write: Write, layer: dict[str, object]) -> None:
    broken = {**layer, "output_weight": [np.nan, 1.0]}
    assert View(write([1.0] * 4, {0: layer, 1: layer, 2: broken, 3: broken})).states == 2


def test_the_function_of_a_line_appends_the_bias(write: Write, layer: dict[str, object]) -> None:
    view = View(write([1.0], {0: layer}))
    t = np.array([-2.0, 0.0, 3.0])
    expected = 2 * np.maximum(t + 1, 0) - 0.5 * np.maximum(3 * t - 6, 0)
    assert view.line_function(0)(t) == pytest.approx(expected)


def test_signs_are_unknown_without_output_weights(write: Write, layer: dict[str, object]) -> None:
    assert View(write([1.0], {0: layer})).signs(0).tolist() == [1.0, -1.0]


def test_layers_of_a_deep_network(deep: Run, orthogonal: Run) -> None:
    assert View(deep).layers == ["weight_1", "weight_2", "weight_3"]
    assert View(deep).outputs == 2
    assert View(orthogonal).layers == ["hidden_weight"]
    assert View(deep).weights(0, "weight_2").shape == (5, 6)


def test_spread_keeps_the_ends() -> None:
    assert spread(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert spread(100, 4).tolist() == [0, 33, 66, 99]
    assert len(spread(0, 4)) == 0


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
