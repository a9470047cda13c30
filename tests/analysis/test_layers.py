"""The panels of layers, for every kind of network with numbered layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.analysis import draw_panel, panels_of
from dynamics_cli.api import train
from dynamics_cli.config import RunConfig
from dynamics_cli.runs import Run

PIXELS = np.random.default_rng(0).standard_normal((6, 36)).tolist()
POINTS = {"kind": "points", "x": PIXELS, "y": [1, 1, 1, -1, -1, -1], "append_bias": False}
NETWORKS: dict[str, dict[str, Any]] = {
    "residual": {"width": 5},
    "convolutional": {"image": [1, 6, 6], "convolutions": [[3, 3, 1, 1], [4, 2, 2, 0]], "widths": [5]},
    "vgg16": {"image": [1, 6, 6], "width_multiplier": 1 / 64},
}


def trained(tmp_path: Path, kind: str, **changes: Any) -> Run:
    config = {
        "name": kind.replace("_", "-"),
        "dataset": POINTS,
        "architecture": {"kind": kind, **NETWORKS.get(kind, {})},
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "logistic"},
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4},
        "record": {"snapshots": {"kind": "every", "interval": 1}, "measures": []},
        **changes,
    }
    return train(RunConfig.model_validate(config), out=tmp_path / "run")


@pytest.mark.parametrize("kind", NETWORKS)
def test_norms_and_spectra_of_every_layer(kind: str, tmp_path: Path) -> None:
    run = trained(tmp_path, kind)
    assert [panel.name for panel in panels_of(run)] == ["loss", "norms", "spectrum"]
    names = [f"weight_{layer}" for layer in range(1, 1 + sum("weight" in name for name in run.parameters))]
    weights = [run.parameters[name][-1] for name in names]
    norms = draw_panel(run, "norms").axes[0]
    assert [line.get_ydata()[-1] for line in norms.lines] == pytest.approx([np.linalg.norm(W) for W in weights])
    spectra = [axes for axes in draw_panel(run, "spectrum").axes if "singular" in axes.get_ylabel()]
    assert len(spectra) == len(names)
    for axes, W in zip(spectra, weights, strict=True):  # a kernel is a row
        largest = np.linalg.norm(W.reshape(len(W), -1), 2)
        assert max(line.get_ydata()[-1] for line in axes.lines) == pytest.approx(largest, rel=1e-6)


def test_a_residual_network_on_a_line_has_a_function(tmp_path: Path) -> None:
    line = {"kind": "points", "x": [[-1.0], [0.5], [2.0]], "y": [1, -1, 1], "append_bias": True}
    run = trained(tmp_path, "residual", dataset=line)
    assert [panel.name for panel in panels_of(run)] == ["loss", "function", "norms", "spectrum"]
    draw_panel(run, "function")
