from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dynamics_cli.config import ConfigError, load_config

# the same examples every time: what fails in one run fails in the next
settings.register_profile(
    "config", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("config")

BASE: dict[str, Any] = {
    "name": "two-points",
    "dataset": {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0], "append_bias": True},
    "architecture": {"kind": "two_layer", "width": 60},
    "initialization": {"kind": "balanced", "scale": 1e-6, "divide_by": "sqrt_width"},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 1e-3, "iterations": 20000},
}
TEXT = """\
name: two-points
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 60}
initialization: {kind: balanced, scale: 1.0e-6, divide_by: sqrt_width}
loss: {kind: mse}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 20000}
"""


@pytest.fixture
def base() -> dict[str, Any]:
    return copy.deepcopy(BASE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(here: Path) -> Callable[..., Path]:
    """Write a config into the working directory; single lines of the usual text can be replaced
    by section.
    """

    def write(file: str = "run.yaml", /, text: str = TEXT, **lines: str) -> Path:
        for section, line in lines.items():
            text = "".join(
                line + "\n" if written.startswith(f"{section}:") else written
                for written in text.splitlines(True)
            )
        path = Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def problems() -> Callable[..., list[str]]:
    """Return what load_config complains about, one line a problem; nothing when it does not."""

    def problems(source: Any, *overrides: str, **settings: Any) -> list[str]:
        told: list[str] = []
        try:
            load_config(source, overrides, **settings)
        except ConfigError as error:
            told = [str(problem) for problem in error.problems]
            text = str(error)
        else:
            return []
        assert text == "\n".join(told)
        return told

    return problems
