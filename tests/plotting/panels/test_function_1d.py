from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.plotting.panels.function_1d import common_zero, default_window, draw_function_1d, matched
from dynamics_cli.plotting.style import PALETTE, new_figure

X, Y = np.array([-0.5, 2.0]), np.array([-1.0, 1.0])


def relu(t):
    return np.maximum(t - 0.123456, 0)


def test_data_function_and_stars_are_where_they_belong():
    figure, (axes,) = new_figure()
    kinks, outputs = np.array([-0.5, 0.123456, 2.0, 9.0, np.inf, np.nan]), np.array([0.4, -0.3, 0.1, 1.0, 1.0, 0.0])
    panel = draw_function_1d(axes, relu, X, Y, kinks=kinks, outputs=outputs)
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
    assert panel.note.get_text().endswith("(3 \N{BLACK STAR} outside)")
    assert [t.get_text() for t in panel.legend.get_texts()] == ["data", r"estimated function $h_\theta$", "neurons"]
    grid, values = panel.function.get_xydata().T
    assert 0.123456 in grid  # the function is evaluated at its kinks
    assert np.array_equal(values, relu(grid))
    assert axes.get_xlim() == default_window(X) == (-1.125, 2.625)


def test_data_points_are_drawn_in_the_coordinates_of_the_function():
    figure, (axes,) = new_figure()
    panel = draw_function_1d(axes, relu, X, Y, kinks=[0.0], outputs=[1e-7])
    figure.draw_without_rendering()
    on_screen = panel.points.get_transform().transform(panel.points.get_xydata())
    assert on_screen == pytest.approx(axes.transData.transform(np.column_stack([X, Y])))


def test_zeros_of_both_axes_are_level_whatever_the_scale():
    figure, (axes,) = new_figure()
    panel = draw_function_1d(axes, relu, X, Y, kinks=[0.0, 1.0], outputs=[3e-5, -9e-5])
    figure.draw_without_rendering()
    height = [a.transData.transform((0, 0))[1] for a in (axes, panel.neuron_axes)]
    assert height[0] == pytest.approx(height[1])
    assert -1e-3 < panel.neuron_axes.get_ylim()[0] < -1e-4
    assert panel.neuron_axes.get_ylabel().endswith("[$10^{-4}$]")


def test_given_limits_are_kept():
    _, (axes,) = new_figure()
    panel = draw_function_1d(
        axes,
        relu,
        X,
        Y,
        kinks=[0.0],
        outputs=[0.5],
        window=(-1, 3),
        limits=(-2, 2),
        neuron_limits=(-1, 1),
        legend="none",
    )
    assert (axes.get_xlim(), axes.get_ylim(), panel.neuron_axes.get_ylim()) == ((-1, 3), (-2, 2), (-1, 1))
    assert panel.legend is None
    assert panel.note is None


VALUES = st.lists(st.floats(-1e8, 1e8).filter(lambda v: v == 0 or abs(v) > 1e-9) | st.just(float("nan")), max_size=5)


@given(left=VALUES, right=VALUES)
def test_common_zero_contains_all_values_and_levels_the_zeros(left, right):
    limits = common_zero(left, right)
    shares = [-low / (high - low) for low, high in limits]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    for values, (low, high) in zip((left, right), limits, strict=True):
        assert low < 0 < high
        assert all(low < v < high for v in values if np.isfinite(v))


def test_matched_limits():
    assert matched((-1, 3), [0.5, -0.1], margin=0) == pytest.approx((-1 / 6, 0.5))
    assert matched((1, 3), [0.5, -0.5], margin=0) == (-0.5, 0.5)


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
    draw_function_1d(axes, lambda t: np.full_like(t, np.nan), x, y, kinks=kinks, outputs=outputs)
    figure.draw_without_rendering()
    assert axes.get_ylim()[0] < axes.get_ylim()[1]


def test_lengths_are_checked():
    _, (axes,) = new_figure()
    with pytest.raises(ValueError, match="data: 2 positions for 1 values"):
        draw_function_1d(axes, relu, [0, 1], [0], kinks=[], outputs=[])
    with pytest.raises(ValueError, match="neurons: 1 positions for 2 values"):
        draw_function_1d(axes, relu, [0], [0], kinks=[0], outputs=[1, 2])
