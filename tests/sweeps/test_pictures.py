"""Pictures of a sweep: which there are, and that they show its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.pictures import SweepTable, draw_sweep, pictures_of, sweep_charts
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
    assert [line.name for line in chart.lines] == ["lr 0.01", "lr 0.02", "lr 0.03"]
    assert draw_sweep(table, "curve").axes[0].get_xlabel() == "architecture.width"


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


TEST = "dataset={kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], x_test: [[1.0]], y_test: [1.0], append_bias: true}"


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
    assert [chart.title for chart in charts][:2] == ["width 4, loss mse", "width 4, loss half_mse"]
    assert [line.name for line in charts[0].lines] == ["scale 0.1", "scale 0.3", "scale 1"]
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
    assert said(draw_sweep(three, "curve", "test_loss")) == "median over 2 seeds"
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
        == "where optimizer.lr = 0.01; where architecture.width = 8; 2 of 36 jobs"
    )
    assert [float(row["optimizer.lr"]) for row in some.rows] == pytest.approx([0.01, 0.01])
    with pytest.raises(UsageError, match="no job has optimizer.lr 7; there are 0.001, "):
        SweepTable(table.sweep, where={"optimizer.lr": 7})
    with pytest.raises(
        UsageError, match="no column 'optimizer.r' here; .*did you mean 'optimizer.lr'"
    ):
        SweepTable(table.sweep, where={"optimizer.r": 7})
