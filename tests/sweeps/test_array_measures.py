"""Measures of several numbers in the table of a sweep."""

from __future__ import annotations

import csv
from pathlib import Path

import dynamics_cli as dyn


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
    assert [round(float(row["singular_values_end_to_end.0"]), 2) for row in rows] == [2.0, 2.0]
    assert [round(float(row["singular_values_end_to_end.1"]), 2) for row in rows] == [1.0, 1.0]
    assert all(float(row["weight_norm"]) > 0 for row in rows)
