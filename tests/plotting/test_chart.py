"""Charts: scales that suit curves, and the artists that Matplotlib makes of them."""

import numpy as np
import pytest
from matplotlib.text import Text

from dynamics_cli.plotting.chart import (
    Chart,
    Level,
    Line,
    Reference,
    aligned,
    draw_chart,
    draw_charts,
    look,
    remarks,
    statistics,
)
from dynamics_cli.plotting.style import PALETTE, new_figure

T = np.arange(1000)
LOSSES = np.where(np.arange(0, 20_001, 50) < 9000, 0.5, 0.1)


def drawn(*lines, **chart):
    """Return axes with the handles of a chart, laid out."""
    figure, (axes,) = new_figure()
    handles = draw_chart(axes, Chart(lines=lines, ylabel="y", **chart))
    figure.draw_without_rendering()
    return axes, handles


def words(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1.0, 0.5, 0.06], "linear"),
        ([1.0, 0.5, 0.04], "log"),
        ([1.0, 1e-9, 0.0], "log"),
        ([1.0, 0.9, 0.0], "linear"),
        ([1.0, np.nan, 1e-4, np.inf], "log"),
        ([1.0, -1e-3], "linear"),
        ([0.0, 0.0], "linear"),
        ([np.nan], "linear"),
        ([], "linear"),
    ],
)
def test_a_log_axis_needs_positive_values_over_a_factor_of_twenty(values, scale):
    line = Line(x=np.arange(len(values)), y=values)
    assert Chart(lines=[line], ylabel="y").log_y == (scale == "log")


def test_what_is_over_at_once_is_drawn_over_log_time():
    early = 1 + np.exp(-T / 5)
    late = 10 + 0.05 * T / 1000

    def scale(*curves, x=T):
        return (
            "log" if Chart(lines=[Line(x=x, y=y) for y in curves], ylabel="y").log_x else "linear"
        )

    assert scale(early) == "log"
    assert (
        scale(np.exp(-T / 300)) == scale(np.exp(-T / 5)) == "linear"
    )  # its logarithm falls at a steady pace
    assert scale(np.ones(1000)) == "linear"
    assert scale(np.stack([early, late], axis=1)) == "log"  # columns count by their variation
    assert scale(early, late, late) == "linear"  # curves count alike
    assert scale(early[:100], x=T[:100]) == "linear"  # short
    early[[500, 700]] = np.nan, np.inf
    assert scale(early) == "log"


def test_curve_plateaus_and_labels():
    x = np.arange(0, 20_001, 50)
    plateaus = [Level(0.5, 0, 9000), Level(0.1, 9000, 20_000)]
    axes, _ = drawn(Line(x=x, y=LOSSES, color="measured"), plateaus=plateaus)
    curve, *lines = axes.lines
    assert np.array_equal(curve.get_xydata(), np.column_stack([x, LOSSES]))
    assert curve.get_color() == PALETTE.measured
    assert [list(line.get_xdata()) for line in lines] == [[0, 9000], [9000, 20_000]]
    assert [list(line.get_ydata()) for line in lines] == [[0.5, 0.5], [0.1, 0.1]]
    assert words(axes) == ["0.5", "0.1"]


@pytest.mark.parametrize(
    ("plateaus", "log", "scale"),
    [
        ([(1.0, 0, 300)], None, "log"),
        ([(1.0, 0, 300), (0.5, 400, 700)], None, "linear"),
        ([(1.0, 0, 300), (0.5, 400, 700)], "y", "log"),
        ([(1.0, 0, 300), (1e-3, 400, 700)], None, "log"),
    ],
)
def test_a_log_axis_does_not_hide_plateaus(plateaus, log, scale):
    line = Line(x=T, y=np.exp(-T / 50.0))
    axes, _ = drawn(line, plateaus=[Level(*one) for one in plateaus], log=log)
    assert axes.get_yscale() == scale


@pytest.mark.parametrize("y", [[0.0, 0.0], [np.nan, np.nan], [1.0, 1.0], [0.3, 1e-30]])
@pytest.mark.parametrize("log", ["x", "y", "xy", "none", None])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_degenerate_curves_are_drawn(y, log, m):
    axes, _ = drawn(
        Line(x=[0, 1], y=np.repeat(np.array(y)[:, None], m, axis=1)), Line(x=[], y=[]), log=log
    )
    assert axes.get_xlim()[0] < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < axes.get_ylim()[1]


def test_several_charts_have_letters_and_one_legend_where_they_have_the_same_lines():
    chart = Chart(
        lines=[Line(x=[0, 5], y=[1.0, 2.0], name="a"), Line(x=[0, 5], y=[1, 2], **look(9))],
        ylabel="y",
    )
    figure = draw_charts([chart] * 4, 3)
    assert [axes.get_title(loc="left")[:3] for axes in figure.axes] == ["(a)", "(b)", "(c)", "(d)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]
    assert all(words(axes) == ["3"] for axes in figure.axes)
    assert not any(axes.get_legend() for axes in figure.axes)
    assert draw_charts([chart]).axes[0].get_legend() is not None


def test_a_bound_far_from_the_curves_is_named_above():
    bounds = [Reference("b", 5.9), Reference("c", 6.1), Reference("d", 0.3)]
    chart = Chart(lines=[Line(x=[0, 1], y=[1.0, 2.0])], ylabel="y", levels=bounds)
    assert ([level.name for level in chart.near], chart.values.max()) == (["b"], 5.9)
    assert sorted(remarks([chart])) == ["beyond the axis: c = 6.1", "beyond the axis: d = 0.3"]


def test_panels_of_one_picture_have_common_axes():
    small, large, lost = (
        Chart(lines=[Line(x=[0, end], y=[1.0, top])], ylabel="y")
        for end, top in ((10, 2.0), (20, 50.0), (5, 1e40))
    )
    first, second = aligned([small, large])
    assert (first.log_y, second.log_y, first.reach_x) == (True, True, (0, 20))
    assert first.reach == second.reach == (1, 50)
    assert [chart.reach for chart in aligned([small, large], "x")] == [(), ()]
    assert aligned([small, large, lost])[0].reach == ()  # one that diverges squashes no other


def test_the_band_of_few_jobs_goes_from_the_least_to_the_largest():
    values = np.arange(9.0)[None]
    few = statistics(values)
    assert (few.bands.ravel().tolist(), few.named) == ([0, 8], "least to largest")
    many = statistics(np.arange(11.0)[None])
    assert many.bands.ravel() == pytest.approx([0.5, 9.5, 2.5, 7.5])
    mean = statistics(values, stat="mean", band="se")
    error = np.arange(9.0).std(ddof=1) / 3
    assert mean.bands.ravel() == pytest.approx([4 - error, 4 + error])
    assert statistics(values, band="none").bands.size == 0


def test_marks_are_numbered_and_listed_once():
    marks = [(1.0, "lr 0.04"), (1.1, "costs $5 and $6"), (9.0, "lr 0.04")]
    charts = [Chart(lines=[Line(x=[0, 9], y=[1, 2])], ylabel=name, marks=marks) for name in "ab"]
    figure = draw_charts(charts)
    figure.draw_without_rendering()
    (first, _) = figure.axes
    texts = [text.get_text() for text in first.texts]
    assert [text for text in texts if text.isdigit()] == ["1", "2", "1"]
    said = " ".join(text.get_text() for text in figure.findobj(Text))
    assert said.count("1: lr 0.04") == 1


def test_markers_are_thinned_along_a_line_and_never_where_they_stand_alone():
    x = np.linspace(0, 1, 200)
    along = Line(x=x, y=x, marker="o", name="along")
    alone = Line(x=x, y=1 - x, marker="x", points=True, name="alone")
    _, (first, second) = drawn(along, alone)
    assert 2 < len(first.get_markevery()) < 20
    assert second.get_markevery() is None
