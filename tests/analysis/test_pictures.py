"""Pictures: what a description makes of runs and sweeps, and what it refuses."""

import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose, assert_array_equal

import dynamics_cli as dyn
from dynamics_cli.analysis.networks import Networks, sources_of
from dynamics_cli.analysis.picture import Picture, defaults_of, options_of
from dynamics_cli.config import ConfigError
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.pages.document import Page
from dynamics_cli.pages.drawn import add_chart
from dynamics_cli.pages.run import add_run
from dynamics_cli.plotting.chart import draw_chart, draw_charts
from dynamics_cli.plotting.style import PALETTE, new_figure
from tests.cases import TWO_POINTS
from tests.sweeps.test_grid import BASE
from tests.sweeps.test_sweep import sweep_of

from .conftest import ORTHOGONAL


def trained(directory, *grid, changes=(), **options):
    return sweep_of(directory, ["optimizer.iterations=20", *changes], grid, **options)[1]


def named(sweep, name, **words):
    """Return a picture that a sweep offers."""
    described = defaults_of(sweep)[name].model_dump(exclude_defaults=True)
    return dyn.picture(sweep, **{**described, **words})


def column(sweep, name):
    return np.array([np.nan if row[name] is None else row[name] for row in sweep.rows], float)


def said(picture):
    return picture.figure.get_suptitle().replace("\n", " ")


def heat(picture):
    """Return the cells of a phase diagram as they are drawn (y, x)."""
    mesh = picture.figure.axes[0].collections[0]
    return np.ma.filled(mesh.get_array(), np.nan)


def test_two_settings_are_a_heat_map_of_medians(tmp_path):
    sweep = trained(tmp_path, "architecture.width=4,8", "optimizer.lr=0.01,0.02,0.03", seeds=3)
    assert list(defaults_of(sweep)) == ["phase", "curve", "losses"]
    picture = named(sweep, "phase")
    medians = np.median(column(sweep, "final_loss").reshape(2, 3, 3), axis=2)
    assert heat(picture) == pytest.approx(medians.T)
    assert said(picture) == "median over 3 seeds"
    curve = named(sweep, "curve")
    (chart,) = curve.charts
    assert np.array([np.median(line.columns, axis=1) for line in chart.lines]) == pytest.approx(
        medians.T
    )
    assert [line.name for line in chart.lines] == [f"step size η = 0.0{k}" for k in (1, 2, 3)]
    assert curve.figure.axes[0].get_xlabel() == "width m"


@pytest.mark.parametrize(
    "grid",
    [
        ("architecture.width=4", "optimizer.lr=0.01,0.02"),
        ("optimizer.lr=0.01,0.02", "architecture.width=4"),
        ("architecture.width=4",),
    ],
)
def test_a_grid_of_one_value_is_no_heat_map(tmp_path, grid):
    sweep = trained(tmp_path, *grid)
    assert list(defaults_of(sweep)) == ["curve", "losses"]
    main = "step size η" if len(grid) > 1 else "width m"
    for name in defaults_of(sweep):
        picture = named(sweep, name)
        picture.figure.draw_without_rendering()
        assert picture.charts[0].xlabel == ("iteration" if name == "losses" else main)
    with pytest.raises(UsageError, match="no picture 'phase' of these.*; there are curve, losses"):
        dyn.plot(sweep, "phase")


@pytest.mark.parametrize(("record", "states"), [("config", 21), ("light", 2)])
def test_two_states_are_two_points(tmp_path, record, states):
    sweep = trained(
        tmp_path,
        "optimizer.lr=0.01,0.02",
        base={**BASE, "record": {"measures": ["weight_norm"]}},
        seeds=3,
        record=record,
    )
    (chart,) = dyn.picture(sweep, y="weight_norm").charts
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
    return trained(
        tmp_path_factory.mktemp("three") / "s", *grid, changes=[TEST], seeds=2, record="light"
    )


def test_curves_are_those_of_the_jobs(three):
    charts = dyn.picture(three, y="test_loss").charts
    assert [chart.title for chart in charts][:2] == [
        "width m = 4, loss mse",
        "width m = 4, loss half_mse",
    ]
    assert [line.name for line in charts[0].lines] == [
        f"scale λ = {scale}" for scale in ("0.1", "0.3", "1")
    ]
    for job in (0, 1):  # two seeds of the first setting
        run = three.run(job)
        assert (charts[0].lines[0].x == run.snapshot_iterations).all()
        assert charts[0].lines[0].columns[:, job] == pytest.approx(run.measures["test_loss"])
    assert {chart.ylabel for chart in charts} == {"test loss"}
    free = [axis.key for axis in three.described.axes]
    (losses,) = dyn.picture(
        three, y="loss", color="none", facet="none", over=[*free, "seed"]
    ).charts
    assert losses.lines[0].columns[:, 5] == pytest.approx(three.run(5).losses)


def test_a_final_number_over_a_setting_for_each_value_of_another(three):
    words = {"x": "architecture.width", "y": "test_loss", "color": "loss.kind"}
    picture = dyn.picture(three, **words, over=["seed", "initialization.scale"])
    (chart,) = picture.charts
    assert [line.name for line in chart.lines] == ["loss mse", "loss half_mse"]
    tests = column(three, "test_loss").reshape(3, 3, 2, 2)
    assert np.median(chart.lines[1].columns, axis=1) == pytest.approx(
        np.median(tests[:, :, 1], axis=(0, 2))
    )
    assert said(picture) == "median over scale λ (3), 2 seeds; bands: least to largest"
    (means,) = dyn.picture(
        three, **words, over=["seed", "initialization.scale"], stat="mean"
    ).charts
    assert means.lines[1].statistics.middle == pytest.approx(tests[:, :, 1].mean((0, 2)))
    by_words = {**words, "x": "loss.kind", "color": "architecture.width"}
    (chart,) = dyn.picture(three, **by_words, over=["seed", "initialization.scale"]).charts
    assert (chart.ticks, chart.lines[0].points) == ({0.0: "mse", 1.0: "half_mse"}, True)
    with pytest.raises(UsageError, match=r"no quantity 'test_los' here .did you mean 'test_loss'"):
        dyn.picture(three, y="test_los")


def test_nothing_is_summed_up_in_silence(three):
    """What no channel tells apart is refused, and the message says what to write."""
    with pytest.raises(UsageError, match=r"initialization.scale differs among .*facet init.*over"):
        dyn.picture(three, y="loss", color="loss.kind", facet="architecture.width")
    where = {"initialization.scale": 0.3}
    picture = dyn.picture(
        three, y="loss", color="loss.kind", facet="architecture.width", where=where
    )
    assert (len(picture.charts), "where scale λ = 0.3" in said(picture)) == (3, True)
    (rule,) = {chart.ylabel for chart in picture.charts}
    axes = picture.figure.axes
    assert (rule, {a.get_ylim() for a in axes} == {axes[0].get_ylim()}) == ("loss", True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"y": "sharpnes"}, "no quantity 'sharpnes' here"),
        ({"y": "loss", "color": "optimizer.l"}, "color: no setting 'optimizer.l' here"),
        ({"y": "loss", "rows": "optimizer.l"}, "rows: no setting 'optimizer.l' here"),
        ({"y": "loss", "rows": "seed", "facet": "loss.kind"}, "facet breaks its panels into rows"),
        ({"y": "architecture.width", "marker": "seed"}, "a phase diagram has none: take facet"),
        ({"y": "loss", "x": "iteratio"}, "no quantity 'iteratio' here"),
        ({"y": "test_loss * wieght"}, "no quantity 'wieght' here"),
        ({"y": "loss", "where": {"loss.kin": "mse"}}, "no setting 'loss.kin' here.*'loss.kind'"),
        ({"y": "loss", "labels": {"los": "error"}}, "no 'los' to label .did you mean 'loss'"),
        ({"y": "architecture.width", "x": "loss.kind"}, "settings with several numbers on x and y"),
        ({"y": "final_loss", "x": "iteration"}, "final_loss is one number of each run"),
        ({"y": "loss", "colour": "run"}, "colour: a picture has no such word .*'color'"),
        ({"y": "loss", "stat": "middle"}, "stat: .*'median'"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest_word(three, words, told):
    with pytest.raises((UsageError, ConfigError), match=told):
        dyn.picture(three, **words)


def test_no_family_is_left_out_and_where_chooses_some(tmp_path):
    grid = ("optimizer.lr=0.001:0.1:log:9", "architecture.width=4,8")
    sweep = trained(tmp_path, *grid, "initialization.scale=0.1,0.2")
    assert [len(chart.lines) for chart in dyn.picture(sweep, y="loss").charts] == [9] * 4
    where = {"optimizer.lr": "0.01", "architecture.width": 8}
    some = named(sweep, "curve", where=where)
    assert said(some) == "where step size η = 0.01; where width m = 8; 2 of 36 jobs"
    assert [row.setting("optimizer.lr") for row in some.parts[0].networks.rows] == pytest.approx(
        [0.01, 0.01]
    )
    with pytest.raises(UsageError, match="no run has optimizer.lr 7; there are 0.001, "):
        named(sweep, "curve", where={"optimizer.lr": 7})
    stems = dyn.plot(sweep, where={"optimizer.lr": "0.01"})
    assert list(stems) == [f"{name}-optimizer.lr=0.01" for name in ("phase", "curve", "losses")]


def test_settings_are_told_apart_by_their_values(tmp_path):
    """Two leaky ReLUs, whose names are cut alike, are two lines."""
    kinds = [f"{{kind: leaky_relu, slope: {slope}}}" for slope in (0.1, 0.5)]
    measure = {"kind": "alignment", "directions": [[-0.5, 1.0], [2.0, 1.0]]}
    base = {**BASE, "record": {"measures": [measure]}}
    sweep = trained(tmp_path, f"architecture.activation=relu,{','.join(kinds)}", base=base, seeds=3)
    names = ["relu", "leaky_relu, slope 0.1", "leaky_relu, slope 0.5"]
    (chart,) = dyn.picture(sweep, y="alignment").charts
    assert [line.name for line in chart.lines] == [f"activation {name}" for name in names]
    ends = [line.statistics.middle[-1] for line in chart.lines]
    assert ends == np.median(column(sweep, "alignment").reshape(3, 3), axis=1).tolist()
    (over,) = dyn.picture(sweep, y="alignment", x="architecture.activation").charts
    assert [*over.ticks.values()] == names
    assert over.lines[0].statistics.middle.tolist() == ends
    where = {"architecture.activation": kinds[1]}
    some = dyn.picture(sweep, y="alignment", where=where)
    assert [row.row["job"] for row in some.parts[0].networks.rows] == [6, 7, 8]
    (stem,) = dyn.plot(sweep, ["curve"], where=where)
    assert stem == "curve-architecture.activation=_kind_leaky_relu_slope_0.5_"


def test_a_setting_without_a_value_has_a_place(tmp_path):
    sweep = trained(tmp_path, "optimizer.weight_decay=null,0.1,0.2")
    (chart,) = dyn.picture(sweep, y="final_loss", x="optimizer.weight_decay").charts
    assert [*chart.ticks.values()] == ["none", "0.1", "0.2"]
    assert chart.lines[0].statistics.middle.tolist() == column(sweep, "final_loss").tolist()


@pytest.fixture
def nine(tmp_path):
    """Two scales, two widths and nine seeds, with a final loss for each network that a test
    gives.
    """
    sweep = trained(
        tmp_path, "initialization.scale=0.1,0.2", "architecture.width=2,4", seeds=9, record="ends"
    )

    def of(*losses):
        for row, loss in zip(sweep.rows, np.ravel(losses), strict=True):
            row["final_loss"] = loss
            row["status"] = "diverged" if loss is None else "complete"
        return sweep

    return of


def drawn_everywhere(sweep):
    """Return the medians (width, scale) as the curve, the phase diagram and the page draw them."""
    (chart,) = named(sweep, "curve").charts
    page = Page("s", "s")
    add_chart(page, chart)
    on_page = [line["y"] for line in page.panels[0]["lines"] if not line.get("partial")]
    assert len(on_page) == 2
    curve = np.array([line.statistics.middle for line in chart.lines])
    return chart, curve, heat(named(sweep, "phase"))


def test_medians_are_taken_before_axes_and_zeros_are_drawn_at_the_edge(nine):
    """Zeros count: the median of five zeros and four numbers is 0, wherever it is drawn."""
    mostly = [0.0] * 5 + [1e-14, 1e-9, 1e-3, 1.0]
    rarely = [0.0] * 3 + [1e-14, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]
    sweep = nine(mostly, rarely, rarely, [0.5] * 9)
    chart, curve, phase = drawn_everywhere(sweep)
    assert_array_equal(curve, [[0, 1e-12], [1e-12, 0.5]])
    assert_array_equal(phase, curve)
    mesh = named(sweep, "phase").figure.axes[0].collections[0]
    assert mesh.norm(0.0) == mesh.norm(1e-12) == 0  # 0 has the last colour
    assert "darkest: 0" in said(named(sweep, "phase"))
    figure = draw_charts([chart])
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    floor = axes.get_ylim()[0]
    assert axes.lines[0].get_ydata().tolist() == [floor]  # the marker below the curve
    assert axes.lines[1].get_ydata().tolist() == [floor, 1e-12]
    assert figure.get_suptitle().endswith("at the lower edge: 0")


def test_a_median_says_of_how_many_jobs_it_is(nine):
    few = [None] * 8 + [1e-12]
    most = [None] * 3 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    sweep = nine(few, most, [1.0] * 9, [2.0] * 9)
    chart, curve, phase = drawn_everywhere(sweep)
    assert_array_equal(curve, [[np.nan, 1.0], [3.5, 2.0]])
    assert_array_equal(phase, [[np.nan, 1.0], [3.5, 2.0]])
    figure = named(sweep, "phase").figure
    assert [text.get_text() for text in figure.axes[0].texts] == ["1/9", "6/9"]
    told = said(named(sweep, "curve"))
    assert "11 jobs diverged or failed" in told
    assert "hollow: 6 of 9 jobs have a number; gap: 1 of 9 jobs have a number" in told
    hollow = draw_charts([chart]).axes[0].lines[-1]
    assert (hollow.get_markerfacecolor(), np.nanmax(hollow.get_ydata())) == (PALETTE.ground, 3.5)


def test_diverged_and_failed_jobs_count_in_curves(tmp_path):
    sweep = trained(tmp_path, "architecture.width=4", seeds=3)
    picture = dyn.picture(sweep, y="loss")
    (part,) = picture.parts
    first, second, third = part.records
    for record, count in ((first, 5), (second, 5), (third, 0)):  # broken off, broken off, failed
        object.__setattr__(record, "x", record.x[:count])
        object.__setattr__(record, "y", record.y[:count])
    (line,) = part._charts()[0].lines
    assert (line.statistics.counts.tolist(), line.statistics.of.tolist()) == ([2] * 5, [3] * 5)
    object.__setattr__(second, "x", second.x[:0])
    object.__setattr__(second, "y", second.y[:0])
    (line,) = part._charts()[0].lines
    assert np.isnan(line.statistics.middle).all()


def test_no_job_with_a_number_is_one_line(nine):
    sweep = nine([None] * 36)
    for panels in (None, ["phase"], ["curve"]):
        with pytest.raises(RunError, match=r"no run has a number final_loss \(36 diverged\)"):
            dyn.plot(sweep, panels)
    assert list(dyn.plot(sweep, ["losses"])) == ["losses"]


def test_each_family_has_its_own_bound(tmp_path):
    base = {**BASE, "record": {"measures": ["sharpness"]}}
    grid = ("optimizer.lr=0.01,0.02", "optimizer.momentum=null,0.5")
    sweep = trained(tmp_path, *grid, base=base, record="ends")
    without, momentum = dyn.picture(sweep, y="sharpness").charts
    bounds = [("2 / η", 200.0), ("2 / η", 100.0)]
    assert [(name, value) for name, value, _ in without.levels] == bounds
    assert [level.color for level in without.levels] == ["series-0", "series-1"]
    assert [level.value for level in momentum.levels] == pytest.approx([300, 150])
    words = {"y": "sharpness", "x": "optimizer.lr"}
    (chart,) = dyn.picture(sweep, **words, color="optimizer.momentum").charts
    beside = [line for line in chart.lines if line.dash]
    assert [line.color for line in beside] == ["series-0", "series-1"]
    assert_allclose([line.columns[:, 0] for line in beside], [[200, 100], [300, 150]])
    assert not chart.levels
    assert not dyn.picture(sweep, y="sharpness", bounds="none").charts[0].levels
    changed = {**base, "changes": [{"at": 1, "optimizer.lr": 0.04}]}
    grid = ("initialization.scale=0.5,1.0",)
    later = trained(tmp_path / "changed", *grid, base=changed, record="ends")
    (chart,) = dyn.picture(later, y="sharpness").charts
    assert [level.value for level in chart.levels] == [50]
    assert chart.marks == [(1, "lr 0.04")]


def test_axes_have_titles_and_labels_replace_them(tmp_path):
    grid = ("initialization.scale=0.1,0.2", "loss.kind=mse,half_mse")
    sweep = trained(tmp_path, *grid)
    labels = {"initialization.scale": "size s", "final_loss": "error", "mse": "squares"}
    (chart,), (other,) = (named(sweep, "curve", labels=words).charts for words in ({}, labels))
    assert (chart.xlabel, chart.ylabel) == ("scale λ", "final loss")
    assert [line.name for line in chart.lines] == ["loss mse", "loss half_mse"]
    assert (other.xlabel, other.ylabel) == ("size s", "error")
    assert [line.name for line in other.lines] == ["squares", "loss half_mse"]


def test_accuracies_are_never_logarithmic(tmp_path):
    base = {**BASE, "record": {"measures": ["train_accuracy"]}, "loss": {"kind": "logistic"}}
    columns = {"best": "largest(train_accuracy)", "when": "first(train_accuracy > 0.9)"}
    section = {"grid": {"optimizer.lr": [0.01, 0.02], "architecture.width": [2, 4]}}
    sweep = dyn.sweep(
        {**base, "sweep": {**section, "columns": columns}},
        overrides={"optimizer.iterations": 20},
        record="config",
        out=tmp_path,
    )
    for row, accuracy in zip(sweep.rows, (1e-4, 0.01, 0.5, 1.0), strict=True):
        row["train_accuracy"] = accuracy
    networks = Networks(sources_of([sweep]))
    assert not networks.logarithmic("train_accuracy")
    assert (networks.linear("best"), networks.linear("when")) == (True, False)
    words = {"y": "train_accuracy", "x": "optimizer.lr", "log": "xyc"}
    (chart,) = dyn.picture(sweep, **words).charts
    assert not chart.log_y
    phase = dyn.picture(sweep, **{**words, "y": "architecture.width", "color": "train_accuracy"})
    assert type(phase.figure.axes[0].collections[0].norm).__name__ == "Normalize"


# -- several runs


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """Runs of three step sizes with their sharpness."""
    folder = tmp_path_factory.mktemp("steps")
    changes = {"optimizer.iterations": 12, "record.measures": ["sharpness", "weight_norm"]}
    changes["record.snapshots"] = {"kind": "every", "interval": 3}
    return [
        dyn.train(ORTHOGONAL, {**changes, "optimizer.lr": lr}, out=folder / f"lr{lr}")
        for lr in (0.05, 0.07, 0.1)
    ]


def test_runs_are_called_by_settings_that_differ(tmp_path):
    changes = {"optimizer.iterations": 20}
    runs = [
        dyn.train(ORTHOGONAL, {**changes, "initialization.scale": s}, out=tmp_path / str(k))
        for k, s in enumerate((0.5, 0.8, 0.8))
    ]
    (chart,) = dyn.picture(runs, y="loss", labels={"0": "small"}).charts
    assert_array_equal(chart.lines[1].columns[:, 0], runs[1].losses)
    assert [line.name for line in chart.lines] == ["small", "2: scale λ = 0.8", "3: scale λ = 0.8"]


def test_each_run_has_its_own_bound_in_its_colour(steps):
    (chart,) = dyn.picture(steps, y="sharpness", labels={"sharpness": "top eigenvalue"}).charts
    assert [level.value for level in chart.levels] == pytest.approx([40, 2 / 0.07, 20])
    assert [level.color for level in chart.levels] == [line.color for line in chart.lines]
    assert chart.ylabel == "top eigenvalue"
    (same,) = dyn.picture([steps[0], steps[0]], y="sharpness").charts
    assert [tuple(level) for level in same.levels] == [("2 / η", 40.0, "theory")]


def test_quantities_of_different_units_have_panels_and_expressions_curves(steps):
    picture = dyn.picture(steps, y=["sharpness", "loss"], size=[5, 2.5])
    assert [chart.title for chart in picture.charts] == ["sharpness", "loss"]
    assert picture.figure.get_size_inches()[0] == 5
    (chart,) = dyn.picture(steps, y="sharpness * optimizer.lr / 2").charts
    for line, run in zip(chart.lines, steps, strict=True):
        lr = run.config.optimizer.lr
        assert line.columns[:, 0] == pytest.approx(run.measures["sharpness"][:] * lr / 2)
    (ratio,) = dyn.picture(steps, y="sqrt(loss) / weight_norm").charts
    run = steps[0]
    losses = np.sqrt(run.losses[run.snapshot_iterations])
    assert ratio.lines[0].columns[:, 0] == pytest.approx(losses / run.measures["weight_norm"])
    (final,) = dyn.picture(steps, y="largest(sharpness)", x="optimizer.lr").charts
    largest = [run.measures["sharpness"].max() for run in steps]
    assert final.lines[0].statistics.middle.tolist() == largest


def test_panels_lie_in_rows_and_columns_and_markers_tell_apart(three, steps):
    scale = "initialization.scale"
    words = {"marker": scale, "rows": "loss.kind", "columns": "architecture.width"}
    picture = dyn.picture(three, y="loss", **words, color=scale)
    assert [chart.title for chart in picture.charts][2:4] == [
        "loss mse, width m = 16",
        "loss half_mse, width m = 4",
    ]
    lines = picture.charts[0].lines
    assert [line.marker for line in lines] == ["o", "s", "^"]
    assert len({line.color for line in lines}) == 3
    shown = [handle.get_marker() for handle in picture.figure.axes[5].lines]
    assert shown == ["o", "s", "^"]
    assert picture.figure.axes[4].get_subplotspec().rowspan.start == 1
    words |= {"rows": "seed", "dash": "loss.kind"}
    assert dyn.picture(three, y="loss", **words).notes == []
    # quantities of other units stand in the direction that is left, and not all have runs
    picture = dyn.picture(steps, y=["loss", "sharpness"], rows="run")
    assert [chart.ylabel for chart in picture.charts] == ["loss", "sharpness"] * 3
    picture = dyn.picture(steps, y="loss", rows="optimizer.lr", columns="run")
    assert [len(chart.lines) for chart in picture.charts] == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    picture.figure.draw_without_rendering()
    panels = [{"y": "loss", "columns": "run"}, {"y": "loss"}]
    with pytest.raises(UsageError, match="panels lie in rows of 0 and 3: give all of them"):
        dyn.picture({"runs": [str(run.path) for run in steps], "panels": panels})


def test_each_curve_has_its_name_and_print_a_legend_by_channel(three):
    words = {"color": "initialization.scale", "dash": "loss.kind", "facet": "architecture.width"}
    (chart, *_) = dyn.picture(three, y="loss", **words).charts
    assert [line.name for line in chart.lines][:2] == [
        "scale λ = 0.1, loss mse",
        "scale λ = 0.1, loss half_mse",
    ]
    scales = [f"scale λ = {scale}" for scale in ("0.1", "0.3", "1")]
    assert [line.name for line in chart.legend] == [*scales, "loss mse", "loss half_mse"]
    handles = draw_chart(new_figure()[1][0], chart)
    assert [handle.get_label() for handle in handles] == [line.name for line in chart.legend]


def test_time_and_epochs_are_what_the_config_says(steps, tmp_path):
    (chart,) = dyn.picture(steps[:2], y="loss", x="time").charts
    assert_allclose(chart.lines[1].x, 0.07 * np.arange(13))
    (chart,) = dyn.picture(steps[0], y="loss", x="epoch").charts
    assert_array_equal(chart.lines[0].x, np.arange(13))  # an update is of all samples
    config = {**TWO_POINTS, "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4}}
    changes = [{"at": 2, "optimizer.lr": 0.02}]
    changed = dyn.train({**config, "changes": changes}, out=tmp_path / "changed")
    (chart,) = dyn.picture(changed, y="loss", x="time").charts
    assert_allclose(chart.lines[0].x, [0, 0.01, 0.02, 0.04, 0.06])
    with pytest.raises(UsageError, match="changed keeps no epoch: take x iteration"):
        dyn.picture(changed, y="loss", x="epoch")


def test_a_quantity_over_another_is_a_path(steps):
    picture = dyn.picture(steps, x="loss", y="sharpness")
    (chart,) = picture.charts
    run = steps[1]
    assert chart.lines[1].path
    assert_array_equal(chart.lines[1].x, run.losses[run.snapshot_iterations])
    assert_array_equal(chart.lines[1].columns[:, 0], run.measures["sharpness"])
    markers = [line.get_marker() for line in picture.figure.axes[0].lines]
    assert markers.count("o") == 2 * len(steps)
    (at_one,) = dyn.picture(steps, x="loss", y="sharpness", at=6).charts
    assert at_one.lines[0].points


def test_all_curves_of_a_sweep_are_one_long_table(three, tmp_path):
    pandas = pytest.importorskip("pandas")
    sweep = dyn.load_sweep(three.path)
    table = pandas.read_csv(dyn.export(sweep, tmp_path / "curves.csv", curves=True))
    assert list(table)[:4] == ["run", *(axis.key for axis in three.described.axes)]
    last = table[(table["run"] == f"{three.path.name}:7") & (table["quantity"] == "loss")]
    assert_array_equal(last["value"], three.run(7).losses)
    assert set(table["quantity"]) == {"loss", *three.run(0).measures}
    with pytest.raises(RunError, match="there is no sweep nothing"):
        dyn.load_sweep("nothing")
    beside = dyn.compare(three.run(0), three.run(7))
    assert "architecture.width" in beside._repr_html_()


def test_runs_trained_together_are_drawn_as_several(three):
    folder = three.path / three.rows[0]["path"]
    drawn = dyn.plot(folder)
    assert [name.partition("-")[0] for name in drawn][-1] == "losses"
    (chart,) = dyn.picture(folder, y="loss", stat="all", facet="none").charts
    together = [row for row in three.rows if row["path"] == three.rows[0]["path"]]
    assert sum(line.columns.shape[1] for line in chart.lines) == len(together) > 1


def test_the_table_of_a_picture_makes_it_again(steps, tmp_path):
    pandas = pytest.importorskip("pandas")
    picture = dyn.picture(steps, y=["sharpness", "loss"], color="optimizer.lr")
    table = picture.table()
    assert list(table) == ["run", "optimizer.lr", "seed", "quantity", "iteration", "value"]
    mine = table[(table["run"] == steps[2].path.name) & (table["quantity"] == "sharpness")]
    assert_array_equal(mine["value"], steps[2].measures["sharpness"])
    assert isinstance(table, pandas.DataFrame)
    array = picture.to_xarray()
    assert array["optimizer.lr"].to_numpy() == pytest.approx([0.05, 0.07, 0.1])
    assert_array_equal(
        array["sharpness"].sel(run=steps[0].path.name).dropna("iteration"),
        steps[0].measures["sharpness"],
    )
    file = tmp_path / "picture.yaml"
    file.write_text(picture.spec)
    again = dyn.picture(file)
    assert (again.spec, again.table().equals(table)) == (picture.spec, True)
    assert picture.save(tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_panels_of_a_file_have_their_own_runs_and_common_colours(steps, tmp_path):
    file = tmp_path / "picture.yaml"
    small, large = steps[0].path, steps[2].path
    text = f"""
size: page
color: optimizer.lr
labels: {{sharpness: top eigenvalue}}  # which the first panel does not have
panels:
- {{runs: ["{large}"], y: loss}}
- {{runs: ["{small}", "{large}"], y: sharpness, title: Both}}
"""
    file.write_text(text)
    picture = dyn.picture(file)
    first, second = picture.charts
    assert [chart.title for chart in picture.charts] == ["", "Both"]
    assert (second.ylabel, [line.color for line in second.lines]) == (
        "top eigenvalue",
        ["series-1", "series-0"],
    )
    assert first.lines[0].color == "series-0"
    file.write_text(text.replace("y: loss", "yy: loss"))
    with pytest.raises(ConfigError, match=r"picture.yaml:6: panels\[0\].yy: .*did you mean 'y'"):
        dyn.picture(file)


def test_a_page_shows_a_described_picture(steps, three, tmp_path):
    runs = [str(step.path) for step in steps]
    panels = [
        {"y": "loss"},
        {"y": "sharpness", "x": "loss"},
        {"runs": str(three.path), "x": "initialization.scale", "y": "architecture.width"},
    ]
    file = tmp_path / "picture.yaml"
    file.write_text(yaml.safe_dump({"runs": runs, "over": ["seed", "loss.kind"], "panels": panels}))
    page = dyn.page(file)
    assert [panel["title"] for panel in page.panels] == ["loss"]
    assert page.html().count('src="data:image/png') == 2  # a path, and a phase diagram


def test_axes_end_where_limits_say(steps):
    (chart,) = dyn.picture(steps, y="loss", limits={"y": [None, 0.4], "x": [2, 8]}).charts
    (axes,) = draw_charts([chart]).axes
    assert (axes.get_xlim(), axes.get_ylim()[1]) == ((2, 8), 0.4)
    with pytest.raises(ConfigError, match="limits: "):
        dyn.picture(steps, y="loss", limits={"z": [0, 1]})


def test_branches_are_called_by_what_they_change(tmp_path):
    config = {**TWO_POINTS, "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4}}
    whole = {"kind": "gd", "lr": 0.005, "iterations": 4}
    halved = {"at": 2, "optimizer": {"lr": 0.005}}
    runs = [
        dyn.train(config, out=tmp_path / "parent"),
        dyn.train({**config, "changes": [{"at": 2, "optimizer": whole}]}, out=tmp_path / "branch"),
        dyn.train({**config, "changes": [halved], "seed": 3}, out=tmp_path / "other"),
    ]
    (chart,) = dyn.picture(runs[:2], y="loss").charts
    assert [line.name for line in chart.lines] == ["no change", "lr 0.005 from 2"]
    assert chart.marks == [(2, "")]  # which the legend names
    assert [line.x[0] for line in chart.lines] == [0, 2]  # what they share is the parent's
    (chart,) = dyn.picture(runs, y="loss").charts
    names = ["seed = 0, no change", "seed = 0, lr 0.005 from 2", "seed = 3, lr 0.005 from 2"]
    assert [sorted(line.name.split(", ")) for line in chart.lines] == [
        sorted(name.split(", ")) for name in names
    ]
    labels = {"lr 0.005 from 2": "halved", "no change": "kept"}
    (chart,) = dyn.picture(runs[:2], y="loss", color="branch", labels=labels).charts
    assert [line.name for line in chart.lines] == ["kept", "halved"]


def test_the_average_is_beside_the_weights(tmp_path):
    config = {
        **TWO_POINTS,
        "optimizer": {
            "kind": "gd",
            "lr": 0.01,
            "iterations": 4,
            "average": {"kind": "ema", "decay": 0.5},
        },
        "record": {
            "measures": ["weight_norm", "train_loss", {"kind": "train_loss", "average": True}]
        },
    }
    run = dyn.train(config, out=tmp_path / "run")
    (chart,) = dyn.picture(run, y="train_loss", dash="average").charts
    assert [(line.name, line.dash) for line in chart.lines] == [
        ("last weights", ""),
        ("average", "dashed"),
    ]
    assert_array_equal(chart.lines[1].columns[:, 0], run.measures["train_loss_of_average"])


def test_what_is_offered_is_listed_as_options(three, steps):
    assert options_of(defaults_of(steps)["sharpness"]) == "--y sharpness --color run"
    assert dyn.list_panels(three)[1]["written"] == "--y final_loss --x initialization.scale"
    assert isinstance(dyn.picture(steps, y="loss"), Picture)


def test_a_theory_is_a_curve_beside_what_it_predicts(tmp_path):
    config = {
        "name": "modes",
        "dataset": {"kind": "linear_map", "inputs": 6, "outputs": 4, "singular_values": [3.0, 2.0]},
        "architecture": {"kind": "two_layer", "width": 6, "outputs": 4, "activation": "linear"},
        "initialization": {"kind": "decoupled", "scale": 0.01},
        "loss": {"kind": "half_mse"},
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 300},
    }
    run = dyn.train(config, out=tmp_path / "run")
    more = dyn.train(ORTHOGONAL, {"optimizer.momentum": 0.5}, out=tmp_path / "more")
    (prediction,) = dyn.predictions(run)
    loss = prediction.curves["loss"]
    words = {
        "y": ["loss", "theory.deep_modes.loss"],
        "labels": {"theory.deep_modes.loss": "Eq. 15"},
    }
    (chart,) = dyn.picture(run, **words).charts
    assert [line.name for line in chart.lines] == ["loss", "Eq. 15"]
    assert_array_equal(np.ravel(chart.lines[1].y), loss.predicted)
    (chart,) = dyn.picture(run, y="loss - theory.deep_modes.loss").charts
    assert_allclose(np.ravel(chart.lines[0].y), loss.measured - loss.predicted)
    (chart,) = dyn.picture(run, y="theory.deep_modes.modes").charts
    assert len(chart.lines) == 2
    with pytest.raises(UsageError, match="did you mean 'theory.deep_modes.loss'"):
        dyn.picture(run, y="theory.deep_modes.los")
    with pytest.raises(UsageError, match="orthogonal_saddles does not predict more: "):
        dyn.picture(more, y="theory.orthogonal_saddles.loss")


def test_a_config_describes_pictures_of_its_runs(tmp_path):
    written = {
        "norm": {"x": "loss", "y": ["weight_norm"], "log": "x"},
        "both": {"panels": [{"y": ["loss"]}, {"y": ["weight_norm"], "title": "Norm"}]},
    }
    changes = {"optimizer.iterations": 12, "record.measures": ["weight_norm"]}
    plain = dyn.train(ORTHOGONAL, changes, out=tmp_path / "plain")
    run = dyn.train(ORTHOGONAL, {**changes, "pictures": written}, out=tmp_path / "run")
    assert run.info["hash"] == plain.info["hash"]  # they compute nothing
    assert yaml.safe_load((run.path / "config.yaml").read_text())["pictures"] == written
    assert dyn.list_panels(run)[-2]["written"] == "--y weight_norm --x loss --log x"
    drawn = dyn.plot(run)
    assert [*drawn][-2:] == [*written]
    same = dyn.picture(run, **written["norm"]).figure.axes[0].lines[0]
    assert_array_equal(drawn["norm"].axes[0].lines[0].get_xydata(), same.get_xydata())
    assert dyn.plot(run, "both", size=3.0).get_figwidth() == 3
    page = Page("run", "run")
    add_run(page, run)
    titles = [panel["title"] for panel in page.panels]
    assert (titles.count("Norm"), titles.count("norm of all weights")) == (1, 1)
    assert page.html().count('src="data:image/png') == 1  # the path

    wrong = {"pictures": {"both": {"panels": [{"yy": "loss"}]}}}
    with pytest.raises(ConfigError, match=r"pictures.both.panels\[0\].yy: .*did you mean 'y'"):
        dyn.load_config(ORTHOGONAL, wrong)

    config = {**changes, "pictures": written}
    sweep = dyn.sweep(
        ORTHOGONAL, {"optimizer.lr": [0.05, 0.1]}, overrides=config, out=tmp_path / "s"
    )
    assert [*dyn.plot(sweep, ["norm", "losses"])] == ["norm", "losses"]
