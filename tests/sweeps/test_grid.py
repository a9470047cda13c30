"""Axes of a sweep: forms, ranges, mistakes; jobs and their configs."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.config import ConfigError
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.grid import as_override, combinations, parse_axis
from dynamics_cli.sweeps.jobs import build_jobs

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
        ("lr=1:2:exp:3", "must have the form"),
        ("lr=1:2:1", "count an integer of at least 2"),
        ("lr=1:apple:3", "first and last must be numbers"),
        ("lr=0:1:log:3", "a log range needs positive ends"),
        ("lr=1,,2", "has an empty value"),
        ("lr=1,1", "names a value twice"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(UsageError, match=message):
        parse_axis(text)


def test_combinations():
    points = list(combinations([parse_axis("a=1,2"), parse_axis("b=x,y")]))
    assert points == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(UsageError, match="names a twice"):
        list(combinations([parse_axis("a=1,2"), parse_axis("a=3,4")]))
    with pytest.raises(UsageError, match="more than 1000000 points"):
        list(combinations([parse_axis("a=1:2:2000"), parse_axis("b=1:2:2000")]))


@pytest.mark.parametrize("value", [1, 1e-6, "mse", [1.0, 2.5], True])
def test_override_text_reads_back(value):
    assert parse_axis(as_override("k", value)).values == (value,)


def test_jobs_have_the_settings_of_their_point():
    axes = [
        parse_axis("initialization.scale=0.1,0.2"),
        parse_axis("loss.kind=mse,logistic"),
        parse_axis("dataset.y.0=-1,1"),
    ]
    jobs = build_jobs(BASE, ["architecture.width=4"], axes, seeds=2, seed=5)
    assert [job.number for job in jobs] == list(range(16))
    for job in jobs:
        assert job.config.initialization.scale == job.settings["initialization.scale"]
        assert job.config.loss.kind == job.settings["loss.kind"]
        assert job.config.dataset.y == [job.settings["dataset.y.0"], 1.0]
        assert job.config.architecture.width == 4
    assert [job.config.seed for job in jobs[:4]] == [5, 6, 5, 6]


def test_light_and_full_records():
    (light,) = build_jobs(BASE, ["optimizer.iterations=20000"], [])
    assert (light.config.record.snapshots.kind, light.config.record.loss_every) == ("list", 20)
    (full,) = build_jobs(BASE, ["optimizer.iterations=20000"], [], full_record=True)
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
        build_jobs(BASE, [], [parse_axis(axis)])
