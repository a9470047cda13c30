"""Pictures of a sweep: which there are, and that they show its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure

from dynamics_cli.errors import UsageError
from dynamics_cli.plotting.panels.many_runs import draw_phase_diagram
from dynamics_cli.sweeps.directory import Sweep
from dynamics_cli.sweeps.pictures import SweepTable, draw_columns, draw_sweep, pictures_of
from tests.sweeps.test_grid import BASE
from tests.sweeps.test_sweep import sweep_of


def table_of(directory, *grid, changes=(), **options):
    return SweepTable(sweep_of(directory, ["optimizer.iterations=20", *changes], grid, here=True, **options)[1])


def test_two_settings_are_a_heat_map_of_means(tmp_path):
    table = table_of(tmp_path, "architecture.width=4,8", "optimizer.lr=0.01,0.02,0.03", seeds=2)
    assert list(pictures_of(table)) == ["phase", "curve", "losses", "spread"]
    mesh = draw_sweep(table, "phase").axes[0].collections[0]
    means = table.column("final_loss").reshape(2, 3, 2).mean(axis=2)
    assert np.asarray(mesh.get_array()) == pytest.approx(means.T)
    (axes,) = draw_sweep(table, "curve").axes
    medians = [line.get_ydata() for line in axes.lines]
    assert np.array(medians) == pytest.approx(means.T)  # the median of two jobs is their mean
    assert axes.get_xlabel() == "architecture.width"
    assert axes.get_title(loc="left") == "median and points over 2 seeds"


@pytest.mark.parametrize("grid", [("architecture.width=4", "optimizer.lr=0.01,0.02"),
                                  ("optimizer.lr=0.01,0.02", "architecture.width=4")])  # fmt: skip
def test_a_grid_of_one_value_by_several_is_a_line(tmp_path, grid):
    table = table_of(tmp_path, *grid)
    assert list(pictures_of(table)) == ["curve", "losses", "spread"]
    (axes,) = draw_sweep(table, "curve").axes
    assert axes.get_xlabel() == "optimizer.lr"
    assert axes.lines[0].get_xdata().tolist() == [0.01, 0.02]
    assert axes.lines[0].get_ydata() == pytest.approx(table.column("final_loss"))
    with pytest.raises(UsageError, match="no panel 'phase' here; this sweep has curve, losses, spread"):
        draw_sweep(table, "phase")


def test_one_job_alone(tmp_path):
    table = table_of(tmp_path, "architecture.width=4")
    for name in pictures_of(table):
        draw_sweep(table, name).draw_without_rendering()


def test_many_long_settings_leave_room_for_the_picture(tmp_path):
    long = ("initialization.scale=0.1,0.2,0.3", "architecture.output_scale=1.5,2.5", "optimizer.lr=0.01,0.02",
            "loss.reduction=mean,sum", "optimizer.weight_decay=0,0.01", "optimizer.momentum=0,0.5")  # fmt: skip
    table = table_of(tmp_path, *long, record="light")
    for name in ("spread", "curve"):
        figure = draw_sweep(table, name)
        figure.draw_without_rendering()
        titles = [one for axes in figure.axes for one in (axes.title, axes._left_title) if one.get_text()]
        boxes = [one.get_window_extent() for one in [*titles, *([figure._suptitle] if figure._suptitle else [])]]
        assert max(one.get_text().count("\n") for one in titles) > 0
        assert sum(a.overlaps(b) for a in boxes for b in boxes) == len(boxes)  # each with itself alone
        assert min(axes.get_window_extent().height / figure.dpi for axes in figure.axes) > 1.2


def test_losses_are_those_of_the_jobs(tmp_path):
    table = table_of(tmp_path, "loss.reduction=mean,sum")
    (axes,) = draw_sweep(table, "losses").axes
    assert [line.get_label() for line in axes.lines] == ["reduction mean", "reduction sum"]
    for k, line in enumerate(axes.lines):
        assert line.get_xdata() == pytest.approx(table.curve(k, "final_loss")[0])
        assert line.get_ydata() == pytest.approx(table.curve(k, "final_loss")[1])
    with pytest.raises(UsageError, match=r"no measure 'final_los' here; .*did you mean 'final_loss'"):
        draw_sweep(table, "spread", "final_los")


@pytest.mark.parametrize(("record", "states"), [("config", 21), ("light", 2)])
def test_two_states_are_two_points(tmp_path, record, states):
    table = table_of(tmp_path, "optimizer.lr=0.01,0.02", base={**BASE, "record": {"measures": ["weight_norm"]}},
                     seeds=3, record=record)  # fmt: skip
    (axes,) = draw_sweep(table, "losses", "weight_norm").axes
    assert {len(line.get_xdata()) for line in axes.lines} == {states}
    assert {line.get_linestyle() for line in axes.lines} == {"None" if states == 2 else "-"}


TEST = "dataset={kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], x_test: [[1.0]], y_test: [1.0], append_bias: true}"


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three settings and two seeds, a measure on held-out samples."""
    grid = ["initialization.scale=0.1,0.3,1.0", "architecture.width=4,8,16", "loss.kind=mse,half_mse"]
    return table_of(tmp_path_factory.mktemp("three") / "s", *grid, changes=[TEST], seeds=2, record="light")


def test_a_third_setting_is_drawn_beside_and_the_rest_is_said(three):
    figure = draw_sweep(three, "phase", "test_loss")
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == ["loss mse", "loss half_mse"]
    means = three.column("test_loss").reshape(3, 3, 2, 2).mean(axis=3)
    for k, axes in enumerate(shown):
        assert np.asarray(axes.collections[0].get_array()) == pytest.approx(means[:, :, k].T)
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")  # as the grid is spaced
        assert [axes.yaxis.get_major_formatter()(v) for v in axes.yaxis.get_majorticklocs()] == ["4", "8", "16"]
    assert len({axes.collections[0].get_clim() for axes in shown}) == 1  # one scale of colours
    assert figure.get_suptitle() == "mean over 2 seeds"


def test_measures_are_drawn_under_their_own_name(three):
    figure = draw_sweep(three, "losses", "test_loss")
    assert sum(len(axes.lines) for axes in figure.axes) == 18  # no family is left out
    axes = figure.axes[0]
    assert (axes.get_title(), axes.get_ylabel()) == ("width 4, loss mse", "test loss")
    xs, values = three.curve(0, "test_loss")
    both = np.array([values, three.curve(1, "test_loss")[1]])
    assert axes.lines[0].get_xdata() == pytest.approx(xs)
    assert axes.lines[0].get_ydata() == pytest.approx(np.median(both, axis=0))
    assert values[-1] == three.column("test_loss")[0]
    assert "first and last state only" in figure.get_suptitle().replace("\n", " ")


def test_a_final_number_over_a_setting_for_each_value_of_another(three):
    (axes,) = draw_columns(three, "architecture.width", "test_loss", "loss.kind").axes
    assert [line.get_label() for line in axes.lines] == ["loss mse", "loss half_mse"]
    tests = three.column("test_loss").reshape(3, 3, 2, 2)
    assert axes.lines[1].get_ydata() == pytest.approx(np.median(tests[:, :, 1], axis=(0, 2)))
    assert "over initialization.scale (3), 2 seeds" in axes.get_title(loc="left").replace("\n", " ")
    words = draw_columns(three, "loss.kind").axes[0]
    assert [words.xaxis.get_major_formatter()(k) for k in (0, 1)] == ["mse", "half_mse"]
    with pytest.raises(UsageError, match=r"no setting 'loss.knd' here; .*did you mean 'loss.kind'"):
        draw_columns(three, "loss.knd")
    with pytest.raises(UsageError, match=r"no measure 'test_los' here; .*did you mean 'test_loss'"):
        draw_columns(three, "seed", "test_los")


def test_what_runs_along_is_said(tmp_path):
    from dynamics_cli import api

    api.sweep(BASE, {"initialization.scale": [0.1, 0.2]}, together={"architecture.width": [4, 8], "seed": [1, 1]},
              let={"optimizer.lr": "0.1 * initialization.scale"}, overrides={"optimizer.iterations": 20},
              out=tmp_path / "s")  # fmt: skip
    (axes, *_) = draw_sweep(SweepTable(Sweep(tmp_path / "s")), "phase").axes
    said = axes.get_title(loc="left").replace("\n", " ")
    assert said == "seed with architecture.width; optimizer.lr = 0.1 * initialization.scale"


def test_axes_are_logarithmic_on_request(three):
    asked = {log: SweepTable(three.sweep, log) for log in ("x", "y", "none")}
    scales = {
        log: [(axes.get_xscale(), axes.get_yscale()) for axes in (
            draw_sweep(table, "curve").axes[0], draw_sweep(table, "losses").axes[0],
            draw_columns(table, "architecture.width", "test_loss").axes[0])]
        for log, table in asked.items()
    }  # fmt: skip
    assert scales["x"] == [("log", "linear"), ("symlog", "linear"), ("log", "linear")]
    assert scales["y"] == [("linear", "log")] * 3
    assert scales["none"] == [("linear", "linear")] * 3
    with pytest.raises(UsageError, match="seed has the value 0, which a logarithmic axis cannot show"):
        draw_columns(asked["x"], "seed", "test_loss")


def kinds_of(axes):
    """Return the number of points, of thin lines and of bands beside medians."""
    of = {kind: [one for one in axes.collections if isinstance(one, kind)]
          for kind in (PathCollection, LineCollection, PolyCollection)}  # fmt: skip
    points = sum(len(one.get_offsets()) for one in of[PathCollection])
    return points, sum(len(one.get_segments()) for one in of[LineCollection]), len(of[PolyCollection])


@pytest.mark.parametrize(("seeds", "curve", "losses"), [(1, (0, 0, 0), (0, 0, 0)), (4, (8, 0, 0), (0, 8, 0)),
                                                        (5, (0, 0, 2), (0, 0, 4))])  # fmt: skip
def test_bands_need_five_seeds_and_numbers_between(tmp_path, seeds, curve, losses):
    table = table_of(tmp_path / "n", "architecture.width=4,8", seeds=seeds)
    assert (kinds_of(draw_sweep(table, "curve").axes[0]), kinds_of(draw_sweep(table, "losses").axes[0])) == (
        curve,
        losses,
    )
    words = draw_sweep(table_of(tmp_path / "w", "loss.kind=mse,half_mse", seeds=seeds), "curve").axes[0]
    assert kinds_of(words) == (2 * seeds * (seeds > 1), 0, 0)
    assert [line.get_linestyle() for line in words.lines] == ["None"]


def test_no_family_is_left_out_and_where_chooses_some(tmp_path):
    grid = ("optimizer.lr=0.001:0.1:log:9", "architecture.width=4,8")
    table = table_of(tmp_path, *grid, "initialization.scale=0.1,0.2")
    curve = draw_columns(table, "initialization.scale", color="optimizer.lr")
    assert [len(axes.lines) for axes in curve.axes] == [9, 0]  # and a colour bar
    assert (curve.axes[1].get_ylabel(), curve.axes[1].get_yscale()) == ("optimizer.lr", "log")
    losses = draw_sweep(table, "losses")
    assert [len(axes.lines) for axes in losses.axes] == [9] * 4 + [0]
    assert [axes.get_title() for axes in losses.axes[:2]] == ["width 4, scale 0.1", "width 4, scale 0.2"]
    some = SweepTable(table.sweep, where={"optimizer.lr": "0.01", "architecture.width": 8})
    (axes,) = draw_sweep(some, "curve").axes
    chosen = [row["job"] for row in table.rows if float(row["optimizer.lr"]) == pytest.approx(0.01)][2:]
    assert axes.lines[0].get_ydata() == pytest.approx(table.column("final_loss")[list(map(int, chosen))])
    said = axes.get_title(loc="left").replace("\n", " ")
    assert said == "where optimizer.lr = 0.01; where architecture.width = 8; 2 of 36 jobs"
    with pytest.raises(UsageError, match="no job has optimizer.lr 7; there are 0.001, "):
        SweepTable(table.sweep, where={"optimizer.lr": 7})
    with pytest.raises(UsageError, match="no column 'optimizer.r' here; .*did you mean 'optimizer.lr'"):
        SweepTable(table.sweep, where={"optimizer.r": 7})


def test_the_measure_that_the_config_asks_for_comes_first(tmp_path):
    for asked, first in (("[test_loss]", "test_loss"), ("null", "final_loss")):
        changes = [TEST, f"record.measures={asked}"]
        table = table_of(tmp_path / first, "architecture.width=4,8", changes=changes)
        assert draw_sweep(table, "curve").axes[0].get_ylabel() == first.replace("_", " ")
        assert draw_sweep(table, "losses").axes[0].get_ylabel() == "training loss"


@pytest.mark.parametrize(("value", "label"), [(1.0, "1"), (0.0, "0"), (-2.5, "-2.5")])
def test_equal_values_have_a_plain_colour_bar(value, label):
    axes = Figure().add_subplot()
    draw_phase_diagram(axes, [1, 2], [1, 2], np.full((2, 2), value), xlabel="", ylabel="", label="")
    axes.figure.draw_without_rendering()
    bar = axes.figure.axes[1].yaxis
    assert [tick.get_text() for tick in bar.get_ticklabels()] == [label]
    assert bar.get_offset_text().get_text() == ""
