from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.analysis.overlay import labels_of, overlay_chart
from dynamics_cli.api import train
from dynamics_cli.errors import UsageError
from tests.cases import TWO_POINTS

from .conftest import ORTHOGONAL


def test_overlay_of_runs(tmp_path):
    changes = {"optimizer.iterations": 20}
    scales = (0.5, 0.8, 0.8)
    runs = [
        train(ORTHOGONAL, {**changes, "initialization.scale": s}, out=tmp_path / str(k))
        for k, s in enumerate(scales)
    ]
    chart = overlay_chart(runs)
    assert_array_equal(chart.lines[1].columns[:, 0], runs[1].losses)
    assert [line.name for line in chart.lines] == [
        "scale λ = 0.5",
        "2: scale λ = 0.8",
        "3: scale λ = 0.8",
    ]
    with pytest.raises(UsageError, match="no measure 'sharp'.*it has loss"):
        overlay_chart(runs, "sharp")


def test_each_run_has_its_own_bound_in_its_colour(tmp_path):
    changes = {"optimizer.iterations": 3, "record.measures": ["sharpness"]}
    runs = [
        train(ORTHOGONAL, {**changes, "optimizer.lr": lr}, out=tmp_path / str(lr))
        for lr in (0.05, 0.07, 0.1)
    ]
    chart = overlay_chart(runs, "sharpness", labels={"sharpness": "top eigenvalue"})
    assert [level.value for level in chart.levels] == pytest.approx([40, 2 / 0.07, 20])
    assert [level.color for level in chart.levels] == [line.color for line in chart.lines]
    assert chart.ylabel == "top eigenvalue"
    same = overlay_chart([runs[0], runs[0]], "sharpness")
    assert [tuple(level) for level in same.levels] == [("2 / η", 40.0, "theory")]


def test_branches_are_called_by_their_changes(tmp_path):
    config = {**TWO_POINTS, "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4}}
    halved = {"at": 2, "optimizer": {"lr": 0.005}}
    runs = [
        train(config, out=tmp_path / "parent"),
        train({**config, "changes": [halved]}, out=tmp_path / "branch"),
        train({**config, "changes": [halved], "seed": 3}, out=tmp_path / "other"),
    ]
    assert labels_of(runs[:2]) == ["no change", "lr 0.005 from 2"]
    assert overlay_chart(runs).marks == [(2, "lr 0.005")]
    later = train({**config, "changes": [{"at": 2, "loss": {"kind": "half_mse"}}]})
    assert overlay_chart([*runs, later]).marks == [(2, "")]
    assert labels_of(runs)[1:] == ["seed = 0; lr 0.005 from 2", "seed = 3; lr 0.005 from 2"]
