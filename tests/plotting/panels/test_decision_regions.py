from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dynamics_cli.plotting.panels.decision_regions import data_window, draw_levels, draw_regions, tint
from dynamics_cli.plotting.style import PALETTE, new_figure

HALVES = [np.array([[-1, -1], [0, -1], [0, 1], [-1, 1]]), np.array([[0, -1], [1, -1], [1, 1], [0, 1]])]
LINE = np.array([[0.0, -1.0], [0.0, 1.0]])
WINDOW = (-1.0, 1.0, -1.0, 1.0)


def test_regions_have_the_colours_of_their_signs():
    figure, (axes,) = new_figure()
    x, y = np.array([[0.5, 0.0], [-0.5, 0.0], [-0.6, 0.1]]), np.array([1, -1, -1])
    panel = draw_regions(axes, HALVES, [0, 1], [LINE], WINDOW, x=x, y=y)
    figure.draw_without_rendering()
    fills = panel.regions.get_facecolors()[:, :3]
    np.testing.assert_allclose(fills, [tint(PALETTE.negative), tint(PALETTE.positive)])
    np.testing.assert_array_equal(panel.lines.get_segments()[0], LINE)
    np.testing.assert_array_equal(panel.data[1].get_xydata(), x[:1])
    np.testing.assert_array_equal(panel.data[-1].get_xydata(), x[1:])
    assert axes.get_xlim() == (-1.0, 1.0)
    assert [h.get_label() for h in panel.handles][2] == "decision boundary"
    with pytest.raises(ValueError, match=r"data \(n, 2\)"):
        draw_regions(axes, HALVES, [0, 1], [LINE], WINDOW, x=np.ones((2, 3)), y=y)


def test_the_zero_level_is_thick():
    figure, (axes,) = new_figure()
    panel = draw_levels(axes, HALVES, [1, 2], [[LINE - 0.5], [LINE], [LINE + 0.5]], [-1.0, 0.0, 1.0], WINDOW)
    figure.draw_without_rendering()
    widths = panel.lines.get_linewidth()
    assert widths[1] > widths[0] == widths[2]
    below, above = panel.regions.get_facecolors()[:, :3]
    assert below[0] > below[2]  # orange where the output is negative, as in decision regions
    assert above[2] > above[0]  # purple where it is positive


def test_tint_and_window():
    assert tint("#000000", 1.0) == (0, 0, 0)
    assert tint(PALETTE.positive, 0.0) == to_rgb("white")
    x0, x1, y0, y1 = data_window([[1.0, 0.0], [3.0, 1.0]])
    assert x1 - x0 == pytest.approx(y1 - y0)
    assert x0 < 0
    assert x1 > 3
