"""Charts of papers in few words: looks, families, levels from end to end, limits and legends."""

import numpy as np

from dynamics_cli.plotting.shared import chart, charts, level, line, lines, stairs, upright
from dynamics_cli.plotting.style import PALETTE, SERIES


def curves(axes):
    return [one for one in axes.lines if len(one.get_xdata())]


def test_words_of_a_look_are_drawn_and_a_curve_without_colour_has_that_of_its_place():
    family = lines(0, np.ones((3, 2)), "$v_{}$", "dotted 0.5")
    points = line([3, 1, 2], [30, 10, 20], "measured", "hollow s")
    drawn = charts(chart("", "y", points, family, line([1, 3], [5, 5], look="theory joined")))
    (axes,) = drawn.axes
    measured, *two, joined = curves(axes)
    assert list(measured.get_xdata()) == [1, 2, 3]  # x in any order
    assert list(measured.get_ydata()) == [10, 20, 30]
    assert (measured.get_marker(), measured.get_linestyle()) == ("s", "None")
    assert (measured.get_color(), measured.get_markerfacecolor()) == (SERIES[0], PALETTE.ground)
    assert [one.get_color() for one in two] == [SERIES[0], SERIES[1]]
    assert [one.get_label() for one in two] == ["$v_0$", "$v_1$"]
    assert {one.get_linewidth() for one in two} == {0.5}
    assert (joined.get_marker(), joined.get_linestyle()) == ("o", "-")


def test_the_outline_of_a_histogram_has_both_ends_of_each_bin():
    outline = stairs([0, 1, 3], [5, 2], "counts", "C2")
    assert list(np.asarray(outline.x)) == [0, 0, 1, 1, 3, 3]
    assert list(np.asarray(outline.y)) == [0, 5, 5, 2, 2, 0]


def test_levels_reach_the_ends_and_limits_cut_what_is_beyond():
    curve = line([1, 2, 4], [1e-3, 500, 1])
    crossed = [curve, level(2.0, "high"), upright(3.0, "there", "C2")]
    drawn = charts(chart("A", "y", *crossed), chart("B", "y", *crossed, log="y"), limits=(None, 10))
    for axes, low in zip(drawn.axes, (1e-3, 1e-3), strict=True):
        assert axes.get_ylim()[1] == 10
        _, across, up = curves(axes)
        assert list(across.get_xdata()) == [1, 4]
        assert list(up.get_ydata()) == [low, 10]
        assert up.get_color() == SERIES[2]
    assert [axes.get_title("left") for axes in drawn.axes] == ["(a) A", "(b) B"]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["high", "there"]
