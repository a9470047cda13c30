"""Pictures of a sweep: which there are, and that they show its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.pages.document import Page
from dynamics_cli.pages.drawn import add_chart
from dynamics_cli.plotting.chart import draw_charts
from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.sweeps.pictures import (
    SweepTable,
    draw_named,
    draw_sweep,
    pictures_of,
    sweep_charts,
)
from tests.sweeps.test_grid import BASE
from tests.sweeps.test_sweep import sweep_of


def table_of(directory, *grid, changes=(), **options):
    return SweepTable(
        sweep_of(directory, ["optimizer.iterations=20", *changes], grid, here=True, **options)[1]
    )


def said(figure):
    return figure.get_suptitle().replace("\n", " ")


def test_two_settings_are_a_heat_map_of_medians(tmp_path):
    table = table_of(tmp_path, "architecture.width=4,8", "optimizer.lr=0.01,0.02,0.03", seeds=3)
    assert list(pictures_of(table)) == ["phase", "curve", "losses"]
    figure = draw_sweep(table, "phase")
    medians = np.median(table.column("final_loss").reshape(2, 3, 3), axis=2)
    assert np.asarray(figure.axes[0].collections[0].get_array()) == pytest.approx(medians.T)
    assert said(figure) == "median over 3 seeds"
    (chart,) = sweep_charts(table, "architecture.width", "final_loss", ["optimizer.lr"])
    assert np.array([np.median(line.columns, axis=1) for line in chart.lines]) == pytest.approx(
        medians.T
    )
    assert [line.name for line in chart.lines] == [f"step size η = 0.0{k}" for k in (1, 2, 3)]
    assert draw_sweep(table, "curve").axes[0].get_xlabel() == "width m"


@pytest.mark.parametrize(
    "grid",
    [
        ("architecture.width=4", "optimizer.lr=0.01,0.02"),
        ("optimizer.lr=0.01,0.02", "architecture.width=4"),
        ("architecture.width=4",),
    ],
)
def test_a_grid_of_one_value_is_no_heat_map(tmp_path, grid):
    table = table_of(tmp_path, *grid)
    assert list(pictures_of(table)) == ["curve", "losses"]
    assert table.main == ("optimizer.lr" if len(grid) > 1 else "architecture.width")
    for name in pictures_of(table):
        draw_sweep(table, name).draw_without_rendering()
    with pytest.raises(UsageError, match="no panel 'phase' here; there are curve, losses"):
        draw_sweep(table, "phase")


@pytest.mark.parametrize(("record", "states"), [("config", 21), ("light", 2)])
def test_two_states_are_two_points(tmp_path, record, states):
    table = table_of(
        tmp_path,
        "optimizer.lr=0.01,0.02",
        base={**BASE, "record": {"measures": ["weight_norm"]}},
        seeds=3,
        record=record,
    )
    (chart,) = sweep_charts(table, "", "weight_norm", table.free)
    assert [line.columns.shape for line in chart.lines] == [(states, 3)] * 2
    assert {line.points for line in chart.lines} == {states == 2}


TEST = (
    "dataset={kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], x_test: [[1.0]], y_test: [1.0],"
    " append_bias: true}"
)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three settings and two seeds, a measure on held-out samples."""
    grid = [
        "initialization.scale=0.1,0.3,1.0",
        "architecture.width=4,8,16",
        "loss.kind=mse,half_mse",
    ]
    return table_of(
        tmp_path_factory.mktemp("three") / "s", *grid, changes=[TEST], seeds=2, record="light"
    )


def test_curves_are_those_of_the_jobs(three):
    charts = sweep_charts(three, "", "test_loss", three.free)
    assert [chart.title for chart in charts][:2] == [
        "width m = 4, loss mse",
        "width m = 4, loss half_mse",
    ]
    assert [line.name for line in charts[0].lines] == [
        f"scale λ = {scale}" for scale in ("0.1", "0.3", "1")
    ]
    for column, job in enumerate((0, 1)):  # two seeds of the first setting
        xs, values = three.curve(job, "test_loss")
        assert (charts[0].lines[0].x == xs).all()
        assert charts[0].lines[0].columns[:, column] == pytest.approx(values)
        assert values[-1] == three.column("test_loss")[job]
    assert charts[0].ylabel == "test loss"
    losses = sweep_charts(three, "", "final_loss", [])[0].lines[0]
    assert losses.columns[:, 5] == pytest.approx(three.curve(5, "final_loss")[1])


def test_a_final_number_over_a_setting_for_each_value_of_another(three):
    (chart,) = sweep_charts(three, "architecture.width", "test_loss", ["loss.kind"])
    assert [line.name for line in chart.lines] == ["loss mse", "loss half_mse"]
    tests = three.column("test_loss").reshape(3, 3, 2, 2)
    assert np.median(chart.lines[1].columns, axis=1) == pytest.approx(
        np.median(tests[:, :, 1], axis=(0, 2))
    )
    bands = "bands: middle 50% and 90%"
    assert said(draw_sweep(three, "curve", "test_loss")) == f"median over 2 seeds; {bands}"
    (words,) = sweep_charts(three, "loss.kind", "test_loss", [])
    assert (words.ticks, words.lines[0].points) == ({0.0: "mse", 1.0: "half_mse"}, True)
    with pytest.raises(UsageError, match=r"no measure 'test_los' here; .*did you mean 'test_loss'"):
        draw_sweep(three, "curve", "test_los")


def test_no_family_is_left_out_and_where_chooses_some(tmp_path):
    grid = ("optimizer.lr=0.001:0.1:log:9", "architecture.width=4,8")
    table = table_of(tmp_path, *grid, "initialization.scale=0.1,0.2")
    assert [len(chart.lines) for chart in sweep_charts(table, "", "final_loss", table.free)] == [
        9
    ] * 4
    some = SweepTable(table.sweep, where={"optimizer.lr": "0.01", "architecture.width": 8})
    assert (
        said(draw_sweep(some, "curve"))
        == "where step size η = 0.01; where width m = 8; 2 of 36 jobs"
    )
    assert [float(row["optimizer.lr"]) for row in some.rows] == pytest.approx([0.01, 0.01])
    with pytest.raises(UsageError, match="no job has optimizer.lr 7; there are 0.001, "):
        SweepTable(table.sweep, where={"optimizer.lr": 7})
    with pytest.raises(
        UsageError, match="no column 'optimizer.r' here; .*did you mean 'optimizer.lr'"
    ):
        SweepTable(table.sweep, where={"optimizer.r": 7})


def test_settings_are_told_apart_by_their_values(tmp_path):
    """Two leaky ReLUs, whose names are cut alike, are two lines."""
    kinds = [f"{{kind: leaky_relu, slope: {slope}}}" for slope in (0.1, 0.5)]
    measure = {"kind": "alignment", "directions": [[-0.5, 1.0], [2.0, 1.0]]}
    base = {**BASE, "record": {"measures": [measure]}}
    table = table_of(
        tmp_path, f"architecture.activation=relu,{','.join(kinds)}", base=base, seeds=3
    )
    names = ["relu", "leaky_relu, slope 0.1", "leaky_relu, slope 0.5"]
    (chart,) = sweep_charts(table, "", "alignment", table.free)
    assert [line.name for line in chart.lines] == [f"activation {name}" for name in names]
    ends = [line.statistics.median[-1] for line in chart.lines]
    assert ends == np.median(table.column("alignment").reshape(3, 3), axis=1).tolist()
    (over,) = sweep_charts(table, "architecture.activation", "alignment", [])
    assert [*over.ticks.values()] == names
    assert over.lines[0].statistics.median.tolist() == ends
    some = SweepTable(table.sweep, where={"architecture.activation": kinds[1]})
    assert [row["job"] for row in some.rows] == [6, 7, 8]
    stems = {name for name, _ in draw_named(some, ["curve"], "alignment")}
    assert stems == {"curve-alignment-architecture.activation=_kind_leaky_relu_slope_0.5_"}


def test_a_setting_without_a_value_has_a_place(tmp_path):
    table = table_of(tmp_path, "optimizer.weight_decay=null,0.1,0.2")
    (chart,) = sweep_charts(table, "optimizer.weight_decay", "final_loss", [])
    assert [*chart.ticks.values()] == ["none", "0.1", "0.2"]
    assert chart.lines[0].statistics.median.tolist() == table.column("final_loss").tolist()


@pytest.fixture
def nine(tmp_path):
    """Two scales, two widths and nine seeds, with a final loss for each network that a test
    gives.
    """
    table = table_of(
        tmp_path, "initialization.scale=0.1,0.2", "architecture.width=2,4", seeds=9, record="ends"
    )

    def of(*losses):
        for row, loss in zip(table.rows, np.ravel(losses), strict=True):
            row["final_loss"] = loss
            row["status"] = "diverged" if loss is None else "complete"
        return table

    return of


def drawn_everywhere(table):
    """Return the medians (width, scale) as the curve, the phase diagram and the page draw them."""
    (chart,) = sweep_charts(table, "initialization.scale", "final_loss", ["architecture.width"])
    page = Page("s", "s")
    add_chart(page, chart)
    on_page = [line["y"] for line in page.panels[0]["lines"] if not line.get("partial")]
    assert len(on_page) == 2
    phase = np.ma.filled(draw_sweep(table, "phase").axes[0].collections[0].get_array(), np.nan)
    curve = np.array([line.statistics.median for line in chart.lines])
    return chart, curve, phase


def test_medians_are_taken_before_axes_and_zeros_are_drawn_at_the_edge(nine):
    """Zeros count: the median of five zeros and four numbers is 0, wherever it is drawn."""
    mostly = [0.0] * 5 + [1e-14, 1e-9, 1e-3, 1.0]
    rarely = [0.0] * 3 + [1e-14, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]
    table = nine(mostly, rarely, rarely, [0.5] * 9)
    chart, curve, phase = drawn_everywhere(table)
    assert_array_equal(curve, [[0, 1e-12], [1e-12, 0.5]])
    assert_array_equal(phase, [[1e-12, 1e-12], [1e-12, 0.5]])  # 0 has the last colour
    assert "darkest: 0" in said(draw_sweep(table, "phase"))
    figure = draw_charts([chart])
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    floor = axes.get_ylim()[0]
    assert axes.lines[0].get_ydata().tolist() == [floor]  # the marker below the curve
    assert axes.lines[1].get_ydata().tolist() == [floor, 1e-12]
    assert said(figure).endswith("at the lower edge: 0")


def test_a_median_says_of_how_many_jobs_it_is(nine):
    few = [None] * 8 + [1e-12]
    most = [None] * 3 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    table = nine(few, most, [1.0] * 9, [2.0] * 9)
    chart, curve, phase = drawn_everywhere(table)
    assert_array_equal(curve, [[np.nan, 1.0], [3.5, 2.0]])
    assert_array_equal(phase, [[np.nan, 1.0], [3.5, 2.0]])
    figure = draw_sweep(table, "phase")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1/9", "6/9"]
    told = said(draw_sweep(table, "curve"))
    assert "11 jobs diverged or failed" in told
    assert "hollow: 6 of 9 jobs have a number; gap: 1 of 9 jobs have a number" in told
    hollow = draw_charts([chart]).axes[0].lines[-1]
    assert (hollow.get_markerfacecolor(), np.nanmax(hollow.get_ydata())) == (PALETTE.ground, 3.5)


def test_diverged_and_failed_jobs_count_in_curves(tmp_path):
    table = table_of(tmp_path, "architecture.width=4", seeds=3)
    curves = [table.curve(k, "final_loss") for k in range(3)]
    ends = [(steps[:5], values[:5]) for steps, values in curves[:2]]
    of_job = [*ends, (np.zeros(0), np.zeros(0))]  # two broke off after state 4, the third failed
    table.curve = lambda k, measure: of_job[k]
    (line,) = sweep_charts(table, "", "final_loss", [])[0].lines
    assert (line.statistics.counts.tolist(), line.statistics.of.tolist()) == ([2] * 5, [3] * 5)
    of_job[1] = of_job[2]
    (line,) = sweep_charts(table, "", "final_loss", [])[0].lines
    assert np.isnan(line.statistics.median).all()


def test_no_job_with_a_number_is_one_line(nine):
    table = nine([None] * 36)
    for panels in ([], ["phase"], ["curve"]):
        with pytest.raises(RunError, match=r"no job of .* has a number final_loss \(36 diverged\)"):
            next(draw_named(table, panels, "final_loss"))
    assert [name for name, _ in draw_named(table, ["losses"], None)] == ["losses"]


def test_each_family_has_its_own_bound(tmp_path):
    base = {**BASE, "record": {"measures": ["sharpness"]}}
    grid = ("optimizer.lr=0.01,0.02", "optimizer.momentum=null,0.5")
    table = table_of(tmp_path, *grid, base=base, record="ends")
    without, momentum = sweep_charts(table, "", "sharpness", table.free)
    bounds = [("2 / η", 200.0), ("2 / η", 100.0)]
    assert [(name, value) for name, value, _ in without.levels] == bounds
    assert [level.color for level in without.levels] == ["series-0", "series-1"]
    assert [level.value for level in momentum.levels] == pytest.approx([300, 150])
    (chart,) = sweep_charts(table, "optimizer.lr", "sharpness", ["optimizer.momentum"])
    beside = [line for line in chart.lines if line.dash]
    assert [line.color for line in beside] == ["series-0", "series-1"]
    assert_allclose([line.columns[:, 0] for line in beside], [[200, 100], [300, 150]])
    assert not chart.levels
    changed = {**base, "changes": [{"at": 1, "optimizer.lr": 0.04}]}
    grid = ("initialization.scale=0.5,1.0",)
    later = table_of(tmp_path / "changed", *grid, base=changed, record="ends")
    (chart,) = sweep_charts(later, "", "sharpness", later.free)
    assert [level.value for level in chart.levels] == [50]
    assert chart.marks == [(1, "lr 0.04")]


def test_axes_have_titles_and_labels_replace_them(tmp_path):
    grid = ("initialization.scale=0.1,0.2", "loss.kind=mse,half_mse")
    table = table_of(tmp_path, *grid)
    labels = {"initialization.scale": "size s", "final_loss": "error", "mse": "squares"}
    chart, named = (
        sweep_charts(shown, "initialization.scale", "final_loss", ["loss.kind"])[0]
        for shown in (table, SweepTable(table.sweep, labels=labels))
    )
    assert (chart.xlabel, chart.ylabel) == ("scale λ", "final loss")
    assert [line.name for line in chart.lines] == ["loss mse", "loss half_mse"]
    assert (named.xlabel, named.ylabel) == ("size s", "error")
    assert [line.name for line in named.lines] == ["squares", "loss half_mse"]
    with pytest.raises(UsageError, match="no 'final_los' to label .*did you mean 'final_loss'"):
        SweepTable(table.sweep, labels={"final_los": "error"})


def test_accuracies_are_never_logarithmic(tmp_path):
    base = {**BASE, "record": {"measures": ["train_accuracy"]}, "loss": {"kind": "logistic"}}
    table = table_of(tmp_path, "optimizer.lr=0.01,0.02", "architecture.width=2,4", base=base)
    table.log = "xyc"
    for row, accuracy in zip(table.rows, (1e-4, 0.01, 0.5, 1.0), strict=True):
        row["train_accuracy"] = accuracy
    assert not table.logarithmic("train_accuracy")
    table.derived = {
        "best": "largest(train_accuracy)",
        "when": "first(train_accuracy > 0.9)",
    }
    assert (table.linear("best"), table.linear("when")) == (True, False)
    (chart,) = sweep_charts(table, "optimizer.lr", "train_accuracy", ["architecture.width"])
    assert not chart.log_y
    mesh = draw_sweep(table, "phase", "train_accuracy").axes[0].collections[0]
    assert type(mesh.norm).__name__ == "Normalize"
