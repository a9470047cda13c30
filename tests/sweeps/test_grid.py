"""Axes of a sweep: forms, ranges, mistakes; jobs and their configs."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli import api
from dynamics_cli.config import ConfigError, load_config, run_hash
from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.grid import check_axes, parse_axis
from dynamics_cli.sweeps.jobs import PlannedSweep

BASE = {
    "name": "base",
    "dataset": {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0], "append_bias": True},
    "architecture": {"kind": "two_layer", "width": 8},
    "initialization": {"kind": "balanced", "scale": 0.1},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 300},
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("optimizer.lr=0.1,0.2", (0.1, 0.2)),
        ("architecture.width=1:5:5", (1, 2, 3, 4, 5)),
        ("optimizer.lr=0:1:3", (0.0, 0.5, 1.0)),
        ("loss.kind=mse,half_mse", ("mse", "half_mse")),
        ("dataset.y=[1, 2],[3, 4]", ([1, 2], [3, 4])),
        ("optimizer.lr=1e-3", (1e-3,)),
        ("architecture.width=8:512:logint:7", (8, 16, 32, 64, 128, 256, 512)),
        ("architecture.width=1:10:logint:12", (1, 2, 3, 4, 5, 7, 8, 10)),  # round(10**(k/11)), each once
    ],
)
def test_values(text, values):
    assert parse_axis(text).values == values


def test_log_range_has_exact_ends():
    axis = parse_axis("initialization.scale=1e-6:10:log:25")
    assert (len(axis.values), axis.values[0], axis.values[-1], axis.log) == (25, 1e-6, 10.0, True)
    np.testing.assert_allclose(np.diff(np.log(axis.values)), np.log(1e7) / 24)


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
        ("lr=1,,2", "has an empty value"),
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
        8, [(0.1, "mse", 0), (0.1, "mse", 1), (0.1, "half_mse", 0), (0.1, "half_mse", 1),
            (0.2, "mse", 0), (0.2, "mse", 1), (0.2, "half_mse", 0), (0.2, "half_mse", 1)],
    )  # fmt: skip
    assert jobs.cells(5) == ({"optimizer.lr": 0.2, "loss.kind": "mse"}, 1)
    with pytest.raises(UsageError, match="optimizer.lr gets its values twice"):
        check_axes([lr, lr])
    with pytest.raises(UsageError, match="more than 1000000 points"):
        check_axes([parse_axis("a=1:2:2000"), parse_axis("b=1:2:2000")])


def test_jobs_have_the_settings_of_their_point():
    axes = list(map(parse_axis, ("initialization.scale=0.1,0.2", "loss.kind=mse,logistic", "dataset.y.0=-1,1")))
    jobs = PlannedSweep(BASE, ["architecture.width=4"], axes, seeds=2, seed=5)
    assert [job.number for job in jobs] == list(range(16))
    for job in jobs:
        assert job.config.initialization.scale == job.settings["initialization.scale"]
        assert job.config.loss.kind == job.settings["loss.kind"]
        assert job.config.dataset.y == [job.settings["dataset.y.0"], 1.0]
        assert job.config.architecture.width == 4
    assert [job.config.seed for job in jobs[:4]] == [5, 6, 5, 6]


@pytest.mark.parametrize(
    ("section", "limit", "options", "record"),
    [
        ({}, 4.0, {}, "config"),
        ({}, 1e-6, {}, "light"),
        ({}, 1e-6, {"record": "config"}, "config"),
        ({"record": "ends"}, 4.0, {}, "ends"),
        ({"record": "ends"}, 4.0, {"record": "light"}, "light"),
    ],
)
def test_a_sweep_keeps_what_its_config_asks_for_below_a_limit(section, limit, options, record):
    base, told = {**BASE, "record": {"limit_gib": limit}, "sweep": section}, []
    planned = api.plan_sweep(base, {"optimizer.lr": [0.1, 0.2]}, messages=told.append, **options)
    assert planned.record == record
    assert ["--record light" in text for text in told] == [True] * (limit < 1 and not options)


def test_light_and_full_records():
    (light,) = PlannedSweep(BASE, ["optimizer.iterations=20000"], [])
    assert (light.config.record.snapshots.kind, light.config.record.loss_every) == ("list", 20)
    (full,) = PlannedSweep(BASE, ["optimizer.iterations=20000"], [], record="config")
    assert (full.config.record.snapshots.kind, full.config.record.loss_every) == ("geometric", None)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("initialization.scal=1,2", r"unknown key .*did you mean 'scale'"),
        ("initialization.scale=1,-1", "must be a number > 0, not -1"),
        ("optimizer.kind=gd,gdd", "did you mean 'gd'"),
        ("architecture.width=1,2.5", "must be an integer"),
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
  zip:
    - {architecture.width: [4, 8], architecture.activation: [relu, linear]}
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
    assert planned.keys == [
        "initialization.scale", "dataset.path", "architecture.width", "architecture.activation", "optimizer.lr",
    ]  # fmt: skip
    assert len(planned) == 3 * 2 * 2 * 2
    for job in planned:
        scale, width = job.settings["initialization.scale"], job.config.architecture.width
        assert job.config.initialization.scale == scale
        assert job.config.optimizer.lr == {0.01: 10, 0.1: pytest.approx(0.1), 1.0: 0.001}[round(scale, 9)]
        assert job.settings["optimizer.lr"] == job.config.optimizer.lr
        assert job.config.architecture.activation.kind == {4: "relu", 8: "linear"}[width]
        assert job.settings["architecture.activation"] == job.config.architecture.activation.kind
        assert job.config.dataset.path == str(swept.parent / job.settings["dataset.path"])  # relative to the config
    assert [job.config.seed for job in planned[:4]] == [3, 4, 3, 4]


def test_options_add_to_the_section_and_replace_what_it_says(swept):
    changed = api.plan_sweep(swept, {"initialization.scale": [0.5], "loss.kind": ["mse", "logistic"]}, seeds=1,
                             let={"optimizer.lr": "0.1 * initialization.scale"})  # fmt: skip
    assert len(changed) == 2 * 2 * 2
    assert {job.config.optimizer.lr for job in changed} == {0.05}


def test_the_section_is_no_part_of_a_run(swept):
    with pytest.raises(ConfigError, match=r"swept.yaml:8: sweep: describes .*: `dyn sweep .*swept.yaml --set=seed=3`"):
        load_config(swept, ["seed=3"])
    alone = load_config(swept, ["sweep=null", "optimizer.lr=0.1", "initialization.scale=0.1"])
    one = api.plan_sweep(swept, {"initialization.scale": [0.1]}, record="config")[0]
    assert one.config == alone.model_copy(
        update={"optimizer": one.config.optimizer, "architecture": one.config.architecture}
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.01:1:log:3", "0.01:-1:log:3", r"swept.yaml:10: sweep.grid.initialization.scale: .*positive ends"),
        ("0.01:1:log:3", "[-1, 1]", r"swept.yaml:10: initialization.scale: must be a number > 0, not -1"),
        ("seeds: 2", "seeds: 0", r"swept.yaml:16: sweep.seeds: must be an integer >= 1, not 0"),
        ("seeds: 2", "sedes: 2", r"swept.yaml:16: sweep.sedes: unknown key; .*did you mean 'seeds'"),
        ("[4, 8]", "[4, 8, 9]", r"swept.yaml:13: sweep.zip\[0\]: .*architecture.width 3, architecture.activation 2"),
        ("scale**2)", "skale**2)", "initialization.skale is neither swept nor a number of the config"),
    ],
)  # fmt: skip
def test_mistakes_in_the_section(swept, old, new, message):
    swept.write_text(SWEPT.replace(old, new))
    with pytest.raises((ConfigError, UsageError), match=message):
        api.plan_sweep(swept)


def test_what_runs_together_may_come_twice():
    jobs = api.plan_sweep(BASE, together=["optimizer.lr=0.1,0.1,0.2", "architecture.width=2,4,4"])
    assert [(j.config.optimizer.lr, j.config.architecture.width) for j in jobs] == [(0.1, 2), (0.1, 4), (0.2, 4)]
    with pytest.raises(UsageError, match="as many values each, not optimizer.lr 2, architecture.width 3"):
        api.plan_sweep(BASE, together=["optimizer.lr=0.1,0.2", "architecture.width=2,4,8"])


def test_jobs_that_share_sections_have_the_names_that_they_have_alone(swept):
    configs = [job.config for job in api.plan_sweep(swept)]
    assert configs[0].loss is configs[8].loss  # which differ in the scale
    alone = [run_hash(config, device="cpu", backend="auto") for config in configs]
    parts = {}
    assert [run_hash(config, device="cpu", backend="auto", parts=parts) for config in configs] == alone
    assert len({*alone}) == len(configs)
    read = [load_config(to_plain(config)) for config in configs]
    assert [run_hash(config, device="cpu", backend="auto") for config in read] == alone
