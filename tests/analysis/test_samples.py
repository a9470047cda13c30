"""The panel `samples` of a GAN, and its animation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.analysis import animate_run, draw_panel, panels_of
from dynamics_cli.analysis.panels.inputs import SAMPLES, sampler
from dynamics_cli.analysis.registry import PANELS
from dynamics_cli.analysis.view import View
from dynamics_cli.api import train
from dynamics_cli.config import RunConfig
from dynamics_cli.runs import Run

BASE: dict[str, Any] = {
    "name": "gan",
    "dataset": {"kind": "mixture", "layout": "ring", "modes": 8, "deviation": 0.1, "n": 200},
    "architecture": {"kind": "gan", "noise_dim": 3, "generator_widths": [6], "discriminator_widths": [6]},
    "initialization": {"kind": "default_scaled"},
    "loss": {"kind": "hinge"},
    "optimizer": {"kind": "adam", "lr": 0.01, "batch_size": 20, "iterations": 60},
    "record": {"snapshots": {"kind": "every", "interval": 10}, "measures": []},
}


def trained(tmp_path: Path, **changes: Any) -> Run:
    return train(RunConfig.model_validate({**BASE, **changes}), out=tmp_path / "run")


def test_samples_are_those_of_the_state_and_of_the_same_noise(tmp_path: Path) -> None:
    run = trained(tmp_path)
    assert [panel.name for panel in panels_of(run)] == ["loss", "samples"]
    figure = draw_panel(run, "samples")
    assert [axes.get_title() for axes in figure.axes] == [f"iteration {i}" for i in (0, 20, 40, 60)]
    noise = np.random.default_rng(run.config.seed).standard_normal((SAMPLES, 3))
    for axes, state in zip(figure.axes, (0, 2, 4, 6), strict=True):
        data, samples = axes.lines
        np.testing.assert_array_equal(data.get_xydata(), run.dataset().x)
        np.testing.assert_array_equal(samples.get_xydata(), run.config.architecture.generate(run.state(state), noise))
    (single,) = draw_panel(run, "samples", 33).axes
    assert single.get_title() == "iteration 30 (nearest to 33)"


def test_the_generator_alone_is_enough(tmp_path: Path) -> None:
    names = [f"generator_{kind}_{layer}" for kind in ("weight", "bias") for layer in (1, 2)]
    record = {**BASE["record"], "parameters": names}
    some, all_ = trained(tmp_path / "some", record=record), trained(tmp_path / "all")
    np.testing.assert_array_equal(sampler(View(some))(6), sampler(View(all_))(6))


def test_it_moves(tmp_path: Path) -> None:
    files = animate_run(trained(tmp_path), tmp_path / "moving")
    with Image.open(files[0]) as picture:
        assert picture.n_frames == 7


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"record": {"parameters": ["discriminator_weight_1"]}}, "not all parameters of the generator"),
        (
            {
                "dataset": {"kind": "points", "x": [[1.0], [2.0]], "y": [1, -1]},
                "architecture": {"kind": "two_layer", "width": 3},
                "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 3},
            },
            "no generator",
        ),
    ],
)
def test_runs_without_samples_say_why(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    missing = PANELS["samples"].missing(View(trained(tmp_path, **changes)))
    assert missing is not None
    assert reason in missing
