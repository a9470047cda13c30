from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from dynamics_cli.plotting.panels import inputs
from dynamics_cli.plotting.scene import tint
from dynamics_cli.plotting.style import PALETTE, new_figure

HALVES = [np.array([[-1, -1], [0, -1], [0, 1], [-1, 1]]), np.array([[0, -1], [1, -1], [1, 1], [0, 1]])]
LINE = np.array([[0.0, -1.0], [0.0, 1.0]])
WINDOW = (-1.0, 1.0, -1.0, 1.0)


VALUES = st.lists(st.floats(-1e8, 1e8).filter(lambda v: v == 0 or abs(v) > 1e-9) | st.just(float("nan")), max_size=5)


@given(left=VALUES, right=VALUES)
def test_common_zero_contains_all_values_and_levels_the_zeros(left, right):
    limits = inputs.common_zero(left, right)
    shares = [-low / (high - low) for low, high in limits]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    for values, (low, high) in zip((left, right), limits, strict=True):
        assert low < 0 < high
        assert all(low < v < high for v in values if np.isfinite(v))


def test_regions_have_the_colours_of_their_signs():
    figure, (axes,) = new_figure()
    x, y = np.array([[0.5, 0.0], [-0.5, 0.0], [-0.6, 0.1]]), np.array([1, -1, -1])
    panel = inputs.draw_regions(axes, HALVES, [0, 1], [LINE], WINDOW, x=x, y=y)
    figure.draw_without_rendering()
    fills = panel.regions.get_facecolors()[:, :3]
    np.testing.assert_allclose(fills, [tint(PALETTE.negative), tint(PALETTE.positive)])
    np.testing.assert_array_equal(panel.lines.get_segments()[0], LINE)
    np.testing.assert_array_equal(panel.data[1].get_xydata(), x[:1])
    np.testing.assert_array_equal(panel.data[-1].get_xydata(), x[1:])
    assert axes.get_xlim() == (-1.0, 1.0)
    assert [h.get_label() for h in panel.handles][2] == "decision boundary"
    with pytest.raises(ValueError, match=r"data \(n, 2\)"):
        inputs.draw_regions(axes, HALVES, [0, 1], [LINE], WINDOW, x=np.ones((2, 3)), y=y)


def test_the_legend_of_regions_has_what_is_drawn():
    _, (axes,) = new_figure(1, 1)
    held = {"x_test": [[0.5, 0.0]], "y_test": [-1]}
    panel = inputs.draw_regions(axes, HALVES[:1], [1], [], WINDOW, x=[[1.0, 1.0]], y=[1], **held)
    labels = [handle.get_label() for handle in panel.handles]
    assert labels == ["$N(x)>0$", "$y=+1$", "$y=-1$, held out"]
    assert panel.handles[-1].get_markerfacecolor() == "white"


def test_the_zero_level_is_thick():
    figure, (axes,) = new_figure()
    panel = inputs.draw_levels(axes, HALVES, [1, 2], [[LINE - 0.5], [LINE], [LINE + 0.5]], [-1.0, 0.0, 1.0], WINDOW)
    figure.draw_without_rendering()
    widths = panel.lines.get_linewidth()
    assert widths[1] > widths[0] == widths[2]
    below, above = panel.regions.get_facecolors()[:, :3]
    assert below[0] > below[2]  # orange where the output is negative, as in decision regions
    assert above[2] > above[0]  # purple where it is positive


def test_tint_and_window():
    assert tint("#000000", 1.0) == (0, 0, 0)
    assert tint(PALETTE.positive, 0.0) == to_rgb("white")
    x0, x1, y0, y1 = inputs.data_window([[1.0, 0.0], [3.0, 1.0]])
    assert x1 - x0 == pytest.approx(y1 - y0)
    assert x0 < 0
    assert x1 > 3
