import numpy as np
import pytest
from matplotlib.lines import Line2D

from dynamics_cli.plotting import labels
from dynamics_cli.plotting.shared import labelled
from dynamics_cli.plotting.style import new_figure, settle


def test_the_legend_below_touches_neither_axes_nor_figure_edge():
    figure, axes = new_figure()
    axes[0].set_xlabel("iteration")
    legend = labels.place_legend(axes[0], [Line2D([], [], label="a"), Line2D([], [], label="b")])
    settle(figure)
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert box.y1 <= axes[0].xaxis.label.get_window_extent().y0
    assert box.y0 >= 0
    assert labels.place_legend(axes[0], []) is None
    assert labels.place_legend(axes[0], [Line2D([], [], label="a")], "inside") is not None


def test_small_numbers_put_their_power_of_ten_into_the_label():
    figure, axes = new_figure()
    axes[0].set_ylim(-4e-7, 4e-7)
    labels.set_axis_label(axes[0].yaxis, "w", (-4e-7, 4e-7))
    figure.draw_without_rendering()
    assert axes[0].get_ylabel() == "w [$10^{-7}$]"
    texts = [label.get_text() for label in axes[0].get_yticklabels()]
    assert "2" in texts
    assert "\u22124" in texts
    labels.set_axis_label(axes[0].yaxis, "w", (-1.5, 1.5))
    assert axes[0].get_ylabel() == "w"


@pytest.mark.parametrize(
    ("values", "log", "names"),
    [
        ([1, 2, 4, 8, 16, 32, 64], True, "1 2 4 8 16 32 64"),
        ([20, 60], False, "20 60"),
        ([1, 2, 3, 100], False, ""),  # the first three would touch
        (np.geomspace(0.02, 0.5, 9), True, "0.02 0.0447 0.1 0.224 0.5"),
        ([5, 10, 20, 40, 50, 60, 70, 80, 100, 200, 600], True, "5 40 70 200"),
        (np.geomspace(1e-6, 10, 25), True, ""),  # powers of ten are better
        ([0, 1], True, "0 1"),
    ],
)
def test_ticks_at_values_do_not_touch(values, log, names):
    assert " ".join(labels.ticks_at(values, log=log).values()) == names


def test_labelled_gives_what_has_a_label_panel_by_panel():
    _, (left, right) = new_figure(2)
    right.plot([0, 1], [0, 1], label="first of the second")
    left.plot([0, 1], [0, 1])
    left.plot([0, 1], [1, 0], label="first")

    assert [handle.get_label() for handle in labelled(left, right)] == [
        "first",
        "first of the second",
    ]
