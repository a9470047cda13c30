from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from dynamics_cli.plotting.panels import inputs
from dynamics_cli.plotting.style import PALETTE, new_figure

X, Y = np.array([-0.5, 2.0]), np.array([-1.0, 1.0])
FRAME = {"window": inputs.default_window(X), "limits": (-2.0, 2.0), "neuron_limits": (-1.0, 1.0)}
HALVES = [np.array([[-1, -1], [0, -1], [0, 1], [-1, 1]]), np.array([[0, -1], [1, -1], [1, 1], [0, 1]])]
LINE = np.array([[0.0, -1.0], [0.0, 1.0]])
WINDOW = (-1.0, 1.0, -1.0, 1.0)


def relu(t):
    return np.maximum(t - 0.123456, 0)


def test_data_function_and_stars_are_where_they_belong():
    figure, (axes,) = new_figure()
    kinks, outputs = np.array([-0.5, 0.123456, 2.0, 9.0, np.inf, np.nan]), np.array([0.4, -0.3, 0.1, 1.0, 1.0, 0.0])
    panel = inputs.draw_function_1d(axes, relu, X, Y, kinks=kinks, outputs=outputs, **FRAME)
    figure.draw_without_rendering()
    assert np.array_equal(panel.points.get_xydata(), np.column_stack([X, Y]))
    assert panel.points.get_markerfacecolor() == PALETTE.data
    assert panel.function.get_color() == PALETTE.function
    assert np.array_equal(panel.stars.get_xydata(), np.column_stack([kinks[:3], outputs[:3]]))
    assert (panel.stars.get_marker(), panel.stars.get_markerfacecolor()) == ("*", PALETTE.neurons)
    assert panel.stars.axes is panel.neuron_axes
    assert panel.neuron_axes is not axes
    assert panel.neuron_axes.get_ylabel() == r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$"
    assert panel.outside == 3
    assert axes.get_xlabel() == "input $x$  (3 \N{BLACK STAR} outside)"
    grid, values = panel.function.get_xydata().T
    assert 0.123456 in grid  # the function is evaluated at its kinks
    assert np.array_equal(values, relu(grid))
    assert axes.get_xlim() == inputs.default_window(X) == (-1.125, 2.625)


def test_data_points_are_drawn_in_the_coordinates_of_the_function():
    figure, (axes,) = new_figure()
    panel = inputs.draw_function_1d(axes, relu, X, Y, kinks=[0.0], outputs=[1e-7], **FRAME)
    figure.draw_without_rendering()
    on_screen = panel.points.get_transform().transform(panel.points.get_xydata())
    assert on_screen == pytest.approx(axes.transData.transform(np.column_stack([X, Y])))


def test_zeros_of_both_axes_are_level_whatever_the_scale():
    figure, (axes,) = new_figure()
    outputs = [3e-5, -9e-5]
    limits, neuron_limits = inputs.common_zero(Y, outputs)
    frame = {"window": (-1, 3), "limits": limits, "neuron_limits": neuron_limits}
    panel = inputs.draw_function_1d(axes, relu, X, Y, kinks=[0.0, 1.0], outputs=outputs, **frame)
    figure.draw_without_rendering()
    height = [a.transData.transform((0, 0))[1] for a in (axes, panel.neuron_axes)]
    assert height[0] == pytest.approx(height[1])
    assert -1e-3 < panel.neuron_axes.get_ylim()[0] < -1e-4
    assert panel.neuron_axes.get_ylabel().endswith("[$10^{-4}$]")


def test_another_state_moves_the_artists_and_nothing_else():
    figure, (axes,) = new_figure()
    panel = inputs.draw_function_1d(axes, relu, X, Y, kinks=[0.0, 9.0], outputs=[0.5, 0.5], **FRAME)
    panel.move(lambda t: t, [0.25], [-0.5])
    figure.draw_without_rendering()
    assert np.array_equal(panel.function.get_xdata(), panel.function.get_ydata())
    assert panel.stars.get_xydata().tolist() == [[0.25, -0.5]]
    assert (panel.outside, axes.get_xlabel()) == (0, "input $x$")
    assert (axes.get_xlim(), axes.get_ylim(), panel.neuron_axes.get_ylim()) == (FRAME["window"], (-2, 2), (-1, 1))


VALUES = st.lists(st.floats(-1e8, 1e8).filter(lambda v: v == 0 or abs(v) > 1e-9) | st.just(float("nan")), max_size=5)


@given(left=VALUES, right=VALUES)
def test_common_zero_contains_all_values_and_levels_the_zeros(left, right):
    limits = inputs.common_zero(left, right)
    shares = [-low / (high - low) for low, high in limits]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    for values, (low, high) in zip((left, right), limits, strict=True):
        assert low < 0 < high
        assert all(low < v < high for v in values if np.isfinite(v))


@pytest.mark.parametrize(
    ("x", "y", "kinks", "outputs"),
    [
        ([1.0], [2.0], [], []),
        ([], [], [np.nan], [0.0]),
        ([0.0, np.nan], [1.0, np.inf], [0.0, 0.0], [0.0, 0.0]),
        ([-1.0, 1.0], [0.0, 0.0], [0.0], [np.inf]),
    ],
)
def test_degenerate_input_is_drawn(x, y, kinks, outputs):
    figure, (axes,) = new_figure()
    inputs.draw_function_1d(axes, lambda t: np.full_like(t, np.nan), x, y, kinks=kinks, outputs=outputs, **FRAME)
    figure.draw_without_rendering()
    assert axes.get_ylim() == (-2, 2)


def test_lengths_are_checked():
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match="data: 2 positions for 1 values"):
        inputs.draw_function_1d(axes, relu, [0, 1], [0], kinks=[], outputs=[], **FRAME)
    with pytest.raises(ValueError, match="neurons: 1 positions for 2 values"):
        inputs.draw_function_1d(axes, relu, [0], [0], kinks=[0], outputs=[1, 2], **FRAME)


def test_regions_have_the_colours_of_their_signs():
    figure, (axes,) = new_figure()
    x, y = np.array([[0.5, 0.0], [-0.5, 0.0], [-0.6, 0.1]]), np.array([1, -1, -1])
    panel = inputs.draw_regions(axes, HALVES, [0, 1], [LINE], WINDOW, x=x, y=y)
    figure.draw_without_rendering()
    fills = panel.regions.get_facecolors()[:, :3]
    np.testing.assert_allclose(fills, [inputs.tint(PALETTE.negative), inputs.tint(PALETTE.positive)])
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
    assert inputs.tint("#000000", 1.0) == (0, 0, 0)
    assert inputs.tint(PALETTE.positive, 0.0) == to_rgb("white")
    x0, x1, y0, y1 = inputs.data_window([[1.0, 0.0], [3.0, 1.0]])
    assert x1 - x0 == pytest.approx(y1 - y0)
    assert x0 < 0
    assert x1 > 3


def test_samples_are_over_the_data():
    _, (axes,) = new_figure()
    panel = inputs.draw_samples(axes, [[0.0, 0.5]], [[0.5, 0.0], [0.1, 0.2]], WINDOW)
    assert panel.data.get_xydata().tolist() == [[0.0, 0.5]]
    assert panel.samples.get_xydata().tolist() == [[0.5, 0.0], [0.1, 0.2]]
    assert [handle.get_label() for handle in panel.handles] == ["data", "samples"]
    assert (*axes.get_xlim(), *axes.get_ylim()) == WINDOW
    with pytest.raises(ValueError, match=r"samples must have shape \(n, 2\), not \(1, 1\)"):
        inputs.draw_samples(axes, [[0.0, 0.5]], [[0.5]], WINDOW)
