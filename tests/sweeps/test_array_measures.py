"""Measures of several numbers in the table and the pictures of a sweep."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import dynamics_cli as dyn
from dynamics_cli.sweeps.columns import SweepTable
from dynamics_cli.sweeps.pictures import sweep_charts


def test_every_number_has_a_column(tmp_path: Path) -> None:
    config = {
        "name": "modes",
        "dataset": {"kind": "linear_map", "inputs": 3, "outputs": 2, "singular_values": [2.0, 1.0]},
        "architecture": {"kind": "fully_connected", "widths": [3], "outputs": 2, "activation": "linear", "bias": False},
        "initialization": {"kind": "unbalanced", "scale": 0.3},
        "loss": {"kind": "half_mse"},
        "optimizer": {"kind": "gd", "lr": 0.05, "iterations": 400},
        "record": {"measures": [{"kind": "singular_values", "layer": "end_to_end", "top": 2}, "weight_norm"]},
    }
    sweep = dyn.sweep(config, {"initialization.scale": [0.1, 0.3]}, out=tmp_path / "s")
    with (sweep.path / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [round(float(row["singular_values_end_to_end.1"]), 2) for row in rows] == [2.0, 2.0]
    assert [round(float(row["singular_values_end_to_end.2"]), 2) for row in rows] == [1.0, 1.0]
    assert all(float(row["weight_norm"]) > 0 for row in rows)


def test_columns_are_called_as_the_numbers_are_and_have_curves(tmp_path: Path) -> None:
    config = {
        "name": "classes",
        "dataset": {"kind": "points", "x": [[-1.0], [0.0], [1.0]], "y": [0, 1, 0]},
        "architecture": {"kind": "fully_connected", "widths": [3], "outputs": 2},
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "cross_entropy"},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 2},
        "record": {
            "measures": [{"kind": "hessian_trace", "blocks": {"first one": "weight_1", "last one": "weight_2"}}]
        },
    }
    sweep = dyn.sweep(config, {"optimizer.lr": [0.1, 0.2]}, out=tmp_path / "s")
    table = SweepTable(sweep)
    assert table.measures[:2] == ["hessian_trace_by_block.first one", "hessian_trace_by_block.last one"]
    (chart,) = sweep_charts(table, "", "hessian_trace_by_block.last one", table.free)
    for k, line in enumerate(chart.lines):
        assert np.array_equal(line.columns[:, 0], sweep.run(k).measures["hessian_trace_by_block"][:, 1])
    dyn.plot(sweep, "curve", out=tmp_path)
    assert (tmp_path / "curve-hessian_trace_by_block.first_one.png").exists()
