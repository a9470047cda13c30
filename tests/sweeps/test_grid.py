"""Axes of a sweep: forms, ranges, mistakes; jobs and their configs."""

import tracemalloc
from contextlib import nullcontext

import pytest
import yaml

from dynamics_cli import api
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.config.reader import override_texts
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.grid import parse_axis, zipped
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.training.many.replicas import dealt, divide
from dynamics_cli.training.problem import build_problem
from tests.cases import TWO_POINTS, read

BASE = read("optimizer: {kind: gd, lr: 0.01, iterations: 300}", TWO_POINTS)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("optimizer.lr=0.1,0.2", (0.1, 0.2)),
        ("architecture.width=1:5:5", (1, 2, 3, 4, 5)),
        ("optimizer.lr=0:1:3", (0.0, 0.5, 1.0)),
        ("loss.kind=mse,half_mse", ("mse", "half_mse")),
        ("dataset.y=[1, 2],[3, 4]", ([1, 2], [3, 4])),
        ("architecture.widths=[[32], [32, 32]]", ([32], [32, 32])),
        ("architecture.widths=[32, 32]", ([32, 32],)),
        ("optimizer.lr=1e-3", (1e-3,)),
        ("architecture.width=8:512:logint:7", (8, 16, 32, 64, 128, 256, 512)),
        (
            "architecture.width=1:10:logint:12",
            (1, 2, 3, 4, 5, 7, 8, 10),
        ),  # round(10**(k/11)), each once
    ],
)
def test_values(text, values):
    assert parse_axis(text).values == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "must have the form key=v1,v2"),
        ("lr=", "must have the form"),
        ("a..b=1,2", "must have the form"),
        ("lr=1:2:exp:3", r"must have the form .* \(or logint\)$"),
        ("width=0:8:logint:3", "a log range needs positive ends"),
        ("lr=1:2:1", "count an integer from 2 to 1000000"),
        ("lr=1:apple:3", "first and last must be numbers"),
        ("lr=0:1:log:3", "a log range needs positive ends"),
        ("lr=1,,2", "not valid YAML"),
        ("lr=1,1", "names a value twice"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(UsageError, match=message):
        parse_axis(text)


def test_jobs_are_counted_through_with_the_last_axis_fastest():
    lr = parse_axis("optimizer.lr=0.1,0.2")
    jobs = PlannedSweep(BASE, [], [lr, parse_axis("loss.kind=mse,half_mse")], seeds=2)
    assert (len(jobs), [(*job.settings.values(), job.config.seed) for job in jobs]) == (
        8,
        [
            (0.1, "mse", 0),
            (0.1, "mse", 1),
            (0.1, "half_mse", 0),
            (0.1, "half_mse", 1),
            (0.2, "mse", 0),
            (0.2, "mse", 1),
            (0.2, "half_mse", 0),
            (0.2, "half_mse", 1),
        ],
    )
    assert jobs.described().points == [[*job.settings.values()] for job in jobs[::2]]
    with pytest.raises(UsageError, match="optimizer.lr gets its values twice"):
        PlannedSweep(BASE, [], [lr, lr])
    with pytest.raises(UsageError, match="4000000 networks are asked for"):
        PlannedSweep(BASE, [], [parse_axis("a=1:2:2000"), parse_axis("b=1:2:2000")])


def test_the_config_of_a_point_is_that_of_its_settings_alone():
    """Also where all of its sections come from points before."""
    grid = {
        "loss.kind": ["mse", "half_mse"],
        "optimizer.lr": [0.1, 0.2],
        "architecture": [{"kind": "two_layer", "width": 2}, {"kind": "two_layer", "width": 3}],
        "dtype": ["float32", "float64"],
    }
    for job in api.plan_sweep(BASE, grid, record="config"):
        assert job.config == load_config(BASE, override_texts(job.settings))
    together = {
        "initialization": [{"kind": "default_scaled"}, {"kind": "balanced", "scale": 0.1}],
        "architecture": [grid["architecture"][0], {"kind": "fully_connected", "widths": [3]}],
    }
    with pytest.raises(ConfigError, match=r"initialization\.kind: .*two"):
        api.plan_sweep(BASE, together)


@pytest.mark.parametrize(
    ("axis", "seeds", "message"),
    [
        ("seed=0,1", 2, "trains seed=1 twice; values of seed must lie 2 apart"),
        ("seed=0,2", 2, None),
        ("optimizer.lr=1,1.0", 1, "trains optimizer.lr=1.0, seed=0 twice"),
    ],
)
def test_no_network_is_trained_twice(axis, seeds, message):
    refused = pytest.raises(UsageError, match=message) if message else nullcontext()
    with refused:
        PlannedSweep(BASE, [], [parse_axis(axis)], seeds=seeds)


@pytest.mark.parametrize(
    ("section", "limit", "options", "record"),
    [
        ({}, 4.0, {}, "config"),
        ({}, 1e-6, {}, "light"),
        ({}, 1e-6, {"record": "config"}, "config"),
        ({"record": "light"}, 4.0, {}, "light"),
        ({"record": "ends"}, 4.0, {"record": "light"}, "light"),
    ],
)
def test_a_sweep_keeps_what_its_config_asks_for_below_a_limit(section, limit, options, record):
    base = {**BASE, "record": {"limit_gib": limit}, "sweep": section}
    told = []
    planned = api.plan_sweep(base, {"optimizer.lr": [0.1, 0.2]}, messages=told.append, **options)
    assert planned.record == record
    assert ["--record light" in text for text in told] == [True] * (limit < 1 and not options)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("initialization.scal=1,2", r"unknown key .*did you mean 'scale'"),
        ("initialization.scale=1,-1", "must be > 0, not -1"),
        ("dataset.y.7=1,2", "dataset.y"),
    ],
)
def test_bad_points(axis, message):
    with pytest.raises((ConfigError, UsageError), match=message):
        PlannedSweep(BASE, [], [parse_axis(axis)])


SWEPT = """\
name: swept
seed: 3
dataset: {kind: file, path: data/a.csv}
architecture: {kind: two_layer, width: 8}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
optimizer: {kind: gd, iterations: 30}
sweep:
  grid:
    initialization.scale: 0.01:1:log:3
    dataset.path: [data/a.csv, data/b.csv]
    architecture.activation: [relu, linear]
  let:
    optimizer.lr: min(10, 0.001 / initialization.scale**2)
  seeds: 2
"""


@pytest.fixture
def swept(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("0.5,1.0,1.0\n-1.0,0.3,-1.0\n")
    (tmp_path / "data/b.csv").write_text("0.5,1.0,1.0\n-1.0,0.3,-1.0\n2.0,0.3,-1.0\n")
    (tmp_path / "swept.yaml").write_text(SWEPT)
    return tmp_path / "swept.yaml"


def test_a_section_of_the_config_says_what_is_swept(swept):
    planned = api.plan_sweep(swept)
    assert list(planned[0].settings) == [
        "initialization.scale",
        "dataset.path",
        "architecture.activation",
        "optimizer.lr",
    ]
    assert len(planned) == 3 * 2 * 2 * 2
    for job in planned:
        scale = job.settings["initialization.scale"]
        assert job.config.initialization.scale == scale
        assert (
            job.config.optimizer.lr
            == {0.01: 10, 0.1: pytest.approx(0.1), 1.0: 0.001}[round(scale, 9)]
        )
        assert job.settings["optimizer.lr"] == job.config.optimizer.lr
        assert job.settings["architecture.activation"] == job.config.architecture.activation.kind
        assert job.config.dataset.path == str(
            swept.parent / job.settings["dataset.path"]
        )  # relative to the config
    assert [job.config.seed for job in planned[:4]] == [3, 4, 3, 4]


def test_the_section_is_no_part_of_a_run(swept):
    with pytest.raises(
        ConfigError,
        match=r"swept.yaml:8: sweep: describes .*: `dyn sweep .*swept.yaml --set=seed=3`",
    ):
        load_config(swept, ["seed=3"])
    alone = load_config(swept, ["sweep=null", "optimizer.lr=0.1", "initialization.scale=0.1"])
    one = api.plan_sweep(swept, {"initialization.scale": [0.1]}, record="config")[0]
    assert one.config == alone.model_copy(
        update={"optimizer": one.config.optimizer, "architecture": one.config.architecture}
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "0.01:1:log:3",
            "0.01:-1:log:3",
            r"swept.yaml:10: sweep.grid.initialization.scale: .*positive ends",
        ),
        ("0.01:1:log:3", "[-1, 1]", r"swept.yaml:10: initialization.scale: must be > 0, not -1"),
        ("seeds: 2", "seeds: 0", r"swept.yaml:15: sweep.seeds: must be >= 1, not 0"),
        (
            "seeds: 2",
            "sedes: 2",
            r"swept.yaml:15: sweep.sedes: unknown key; .*did you mean 'seeds'",
        ),
        (
            "scale**2)",
            "skale**2)",
            "initialization.skale is neither swept nor a number of the config",
        ),
    ],
)
def test_mistakes_in_the_section(swept, old, new, message):
    swept.write_text(SWEPT.replace(old, new))
    with pytest.raises((ConfigError, UsageError), match=message):
        api.plan_sweep(swept)


def test_seeds_of_data_and_of_initial_weights_part():
    drawn = "dataset={kind: sphere_teacher, n: 3, dim: 6}"
    grid = {"dataset.seed": [0, 1], "initialization.seed": [0, 1]}
    options = {"overrides": [drawn], "seed": 1}
    planned = api.plan_sweep(BASE, grid, **options)
    assert [len(batch) for batch in divide([job.config for job in planned])] == [4]
    run = api.plan_sweep(BASE, **options)[0]  # the seed of the run, where none is given
    problems = [build_problem(job.config) for job in [*planned, run]]
    data = [one.dataset.x.tobytes() for one in problems]
    weights = [one.initial_parameters()["hidden_weight"].tobytes() for one in problems]
    assert [data.index(one) for one in data] == [0, 0, 2, 2, 2]
    assert [weights.index(one) for one in weights] == [0, 1, 0, 1, 1]


def test_jobs_that_differ_in_numbers_alone_are_trained_together():
    large = ["dataset={kind: gaussians, per_class: 10, mean: [1.0], dim: 5, deviation: 0.5}"]
    planned = api.plan_sweep(
        BASE,
        {"initialization.scale": "0.1:1:17", "loss.kind": ["mse", "half_mse"]},
        overrides=large,
        seeds=2,
    )
    batches = divide([job.config for job in planned])
    assert sorted(number for batch in batches for number in batch) == list(range(len(planned)))
    assert {len({planned[number].config.loss.kind for number in batch}) for batch in batches} == {1}


@pytest.mark.parametrize(
    ("widths", "seeds", "parts", "sizes"),
    [
        ([2], 1000, 50, [20] * 50),  # one group of a thousand networks
        ([2], 10, 6, [1, 1, 2, 2, 2, 2]),
        ([2, 200], 10, 4, [2, 2, 3, 3, 10]),  # the group with more work is divided
        ([2, 2, 2], 6, 2, [3, 3, 6, 6]),  # of three equal groups two parts have nine jobs each
        ([2, 3], 2, 9, [1, 1, 1, 1]),  # there are no more networks
        ([2, 3], 2, 1, [2, 2]),
    ],
)
def test_every_part_of_a_sweep_gets_jobs(widths, seeds, parts, sizes):
    grid = {"architecture.width": widths}
    if len(set(widths)) < len(widths):
        grid = {"loss.kind": ["mse", "half_mse", "logistic"]}
    planned = api.plan_sweep(BASE, grid, seeds=seeds)
    batches = divide([job.config for job in planned], parts)
    assert sorted(map(len, batches)) == sizes
    assert sorted(number for batch in batches for number in batch) == list(range(len(planned)))
    jobs = [sum(map(len, dealt(batches, part, parts))) for part in range(parts)]
    if len(set(widths)) == 1 and seeds % parts == 0:
        assert jobs == [len(planned) // parts] * parts
    assert all(jobs) or len(planned) < parts


POINTS = [
    {"optimizer.lr": 0.01, "loss.kind": "mse"},
    {"optimizer.lr": 0.02, "loss.kind": "half_mse"},
]


@pytest.mark.parametrize("way", ["section", "list", "csv", "yaml", "file of the section", "zip"])
def test_listed_points_are_combined_with_the_grid(way, tmp_path):
    table = "optimizer.lr,loss.kind\n0.01,mse\n0.02,half_mse\n"
    (tmp_path / "p.csv").write_text(table)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(POINTS, sort_keys=False))
    given = {
        "list": POINTS,
        "csv": tmp_path / "p.csv",
        "yaml": tmp_path / "p.yaml",
        "zip": zipped(["optimizer.lr=0.01,0.02", "loss.kind=mse,half_mse"]),
    }
    sections = {"section": {"points": POINTS}, "file of the section": {"points": "p.csv"}}
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({**BASE, "sweep": sections.get(way, {})}, sort_keys=False))
    grid = {"architecture.width": [3, 2]}
    planned = api.plan_sweep(config, grid, points=given.get(way, ()), seeds=2)
    jobs = [(*job.settings.values(), job.config.seed) for job in planned]
    assert jobs == [
        (width, *point.values(), seed) for width in (3, 2) for point in POINTS for seed in (0, 1)
    ]
    assert [job.config.optimizer.lr for job in planned] == [0.01, 0.01, 0.02, 0.02] * 2
    assert planned.described().settings == ["architecture.width", "optimizer.lr", "loss.kind"]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([{"optimizer.lr": 1.0}, {"loss.kind": "mse"}], "sets optimizer.lr, number 2 loss.kind"),
        ([{}], "the first one sets nothing"),
        ("a,b\n1\n", "rows that are not as long as its header"),
        ("optimizer.lr: 0.1\n", "points must be a list of settings"),
        ([{"optimizer.lr": 0.1}] * 2, "trains .* twice"),
    ],
)
def test_points_that_are_none(points, message, tmp_path):
    if isinstance(points, str):
        file = tmp_path / ("p.csv" if "," in points else "p.yaml")
        file.write_text(points)
        points = file
    with pytest.raises(UsageError, match=message):
        api.plan_sweep(BASE, points=points)


def test_zipped_settings_have_as_many_values():
    with pytest.raises(UsageError, match=r"as many values .*: optimizer.lr has 2, seed has 1"):
        zipped(["optimizer.lr=1,2", "seed=3"])


def test_a_job_takes_little_memory():
    tracemalloc.start()
    try:
        jobs = api.plan_sweep(
            BASE, {"initialization.scale": "1e-6:10:log:150"}, seeds=20, record="light"
        )
        assert tracemalloc.get_traced_memory()[0] < 10_000 * len(jobs)  # 1 GB for 100 000 jobs
    finally:
        tracemalloc.stop()
