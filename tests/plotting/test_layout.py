from __future__ import annotations

import pytest
from matplotlib.lines import Line2D

from dynamics_cli.plotting import layout
from dynamics_cli.plotting.style import new_figure, settle


@pytest.mark.parametrize(
    ("value", "text"),
    [(300000, "300\u2009000"), (0.06361, "0.0636"), (-2, "\u22122"), (0.0, "0"), (1e-20, "1e\u221220"), (2.5, "2.5")],
)
def test_format_number(value, text):
    assert layout.format_number(value) == text


def test_panel_label_and_note():
    _, axes = new_figure(2)
    assert layout.panel_label(axes[0], 1, "Loss").get_text() == "(b) Loss"
    assert layout.panel_label(axes[1], "z").get_text() == "(z)"
    axes[0].set_xlabel("input")
    assert layout.note(axes[0], "3 outside").get_text() == "input  (3 outside)"
    assert layout.note(axes[1], "3 outside").get_text() == "3 outside"


def test_the_legend_below_touches_neither_axes_nor_figure_edge():
    figure, axes = new_figure()
    axes[0].set_xlabel("iteration")
    legend = layout.place_legend(axes[0], [Line2D([], [], label="a"), Line2D([], [], label="b")])
    settle(figure)
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert box.y1 <= axes[0].xaxis.label.get_window_extent().y0
    assert box.y0 >= 0
    assert layout.place_legend(axes[0], []) is None
    assert layout.place_legend(axes[0], [Line2D([], [], label="a")], "inside") is not None


def test_the_figure_legend_lists_every_label_once():
    figure, _ = new_figure(2)
    handles = [Line2D([], [], label=name) for name in ("a", "b", "a")]
    assert [text.get_text() for text in layout.figure_legend(figure, handles).get_texts()] == ["a", "b"]
    assert layout.figure_legend(figure, []) is None


def test_small_numbers_put_their_power_of_ten_into_the_label():
    figure, axes = new_figure()
    axes[0].set_ylim(-4e-7, 4e-7)
    layout.set_axis_label(axes[0].yaxis, "w", (-4e-7, 4e-7))
    figure.draw_without_rendering()
    assert axes[0].get_ylabel() == "w [$10^{-7}$]"
    texts = [label.get_text() for label in axes[0].get_yticklabels()]
    assert "2" in texts
    assert "\u22124" in texts
    layout.set_axis_label(axes[0].yaxis, "w", (-1.5, 1.5))
    assert axes[0].get_ylabel() == "w"


def test_text_size_grows_with_text():
    short, long = layout.text_size("ab", 8), layout.text_size("abab", 8)
    assert 1.7 < long[0] / short[0] < 2.3
    assert layout.text_size("a\nb", 8)[1] > 1.8 * layout.text_size("a", 8)[1]
    assert layout.text_size("ab", 16)[0] == pytest.approx(2 * short[0], rel=0.1)
