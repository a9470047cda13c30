import numpy as np

from dynamics_cli.analysis.view import View


def test_states_end_before_the_first_that_is_not_finite(write, layer):
    broken = {**layer, "output_weight": [np.nan, 1.0]}
    assert View(write([1.0] * 4, {0: layer, 1: layer, 2: broken, 3: broken})).states == 2


def test_data_that_do_not_fit_the_weights_are_not_drawn(write, layer):
    """As after copying the weights of another run."""
    wide = {**layer, "hidden_weight": [[1.0, 1.0, 1.0], [-3.0, 6.0, 0.0]]}
    view = View(write([1.0], {0: wide}))
    assert (
        view.no_dataset == "its data cannot be read (inputs have 2 columns, the recorded weights 3)"
    )
