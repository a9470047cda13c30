import itertools

import numpy as np
import pytest

from dynamics_cli.plotting.style import new_figure
from dynamics_cli.plotting.time_axis import (
    draw_curve,
    scale_of,
    set_time_axis,
    set_value_axis,
)


@pytest.mark.parametrize("end", [7, 150, 20_000, 94_000, 300_000, 12_345_678])
def test_time_ticks_are_round_and_their_labels_do_not_touch(end):
    figure, axes = new_figure(2)
    draw_curve(axes[0], [0, end], [0, 1])
    set_time_axis(axes[0], [0, end])
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    low, high = axes[0].get_xlim()
    shown = [label for label in axes[0].get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in shown]
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
    assert axes[0].get_xlabel() == "iteration"


def test_log_time_shows_iteration_zero():
    figure, axes = new_figure(2)
    draw_curve(axes[0], [0, 1, 10, 1000], np.ones(4))
    set_time_axis(axes[0], [0, 1, 10, 1000], "log")
    set_time_axis(axes[1], [1, 10, 1000], "log")
    with pytest.raises(ValueError, match="linear or log, not 'symlog'"):
        set_time_axis(axes[1], [1, 10], "symlog")
    figure.draw_without_rendering()
    assert axes[0].get_xscale() == "symlog"
    assert -1 < axes[0].get_xlim()[0] < 0
    assert list(axes[0].get_xticks()) == [0, 10, 100, 1000]  # 1 would stand beside 0
    assert axes[1].get_xscale() == "log"


@pytest.mark.parametrize(
    "values", [[], [np.nan], [0.0, 0.0], [3.0], [1e-300, 1e300], [-2.0, -1.0], [5e-324]]
)
@pytest.mark.parametrize("log", [True, False])
def test_any_values_give_proper_limits(values, log):
    figure, axes = new_figure()
    is_log = set_value_axis(axes[0], values, "y", log=log)
    low, high = axes[0].get_ylim()
    assert np.isfinite([low, high]).all()
    assert low < high
    assert is_log == (log and any(v > 0 for v in values))
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("asked", "logarithmic"),
    [(None, "yc"), ("x", "xc"), ("xy", "xyc"), ("c", "yc"), ("xc", "xc"), ("none", "")],
)
def test_colours_are_asked_for_apart_from_axes(asked, logarithmic):
    """By default y and colours suit a logarithmic scale here, x does not."""
    scales = {axis: scale_of(axis, asked, axis != "x") for axis in "xyc"}
    assert "".join(axis for axis in "xyc" if scales[axis] == "log") == logarithmic


@pytest.mark.parametrize("ends", [(0.08, 0.7), (4e-6, 3e-5), (0.3, 0.69)])
def test_a_log_axis_with_one_power_of_ten_labels_other_values_too(ends):
    figure, (axes,) = new_figure()
    draw_curve(axes, [0, 1], ends)
    set_value_axis(axes, ends, "loss", log=True)
    figure.draw_without_rendering()
    low, high = axes.get_ylim()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    said = [tick for tick in ticks if low < tick.get_loc() < high and tick.label1.get_text()]
    assert len(said) >= 2
