"""Phase diagrams: the scale of colours, and values that it cannot show."""

import numpy as np
import pytest

from dynamics_cli.plotting.panels.phase import Phase, draw_phase
from dynamics_cli.plotting.style import new_figure


@pytest.mark.parametrize(
    ("values", "log", "norm", "told"),
    [
        ([1e-3, 0.1, 0.5, 1.0], None, "LogNorm", []),
        ([2e-3, 0.1, 0.5, 1.0], None, "Normalize", []),
        ([2e-3, 0.1, 0.5, 1.0], "c", "LogNorm", []),
        ([1e-3, 0.1, 0.5, 1.0], "none", "Normalize", []),
        ([0.0, 1e-3, 0.5, 1.0], None, "LogNorm", ["darkest: 0"]),
        ([-1.0, 1e-3, 0.5, 1.0], None, "Normalize", []),
        ([-1.0, 1e-3, 0.5, 1.0], "c", "LogNorm", ["darkest: 0 or less"]),
        ([0.0, 0.0, 0.0, 0.0], "c", "Normalize", []),
        ([np.nan] * 4, None, "Normalize", []),
    ],
)
def test_colours_are_logarithmic_over_three_decades(values, log, norm, told):
    figure, (axes,) = new_figure()
    cells = np.reshape(values, (2, 2))
    words = {"xlabel": "x", "ylabel": "y", "label": "z"}
    said = draw_phase(axes, Phase(x=[1, 2], y=[1, 2], values=cells, log=log, **words))
    figure.draw_without_rendering()
    assert (type(axes.collections[0].norm).__name__, said) == (norm, told)
