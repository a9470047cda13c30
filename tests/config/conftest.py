from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dynamics_cli.config import ConfigError, load_config
from tests.cases import read

# the same examples every time: what fails in one run fails in the next
settings.register_profile(
    "config", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("config")

TEXT = """\
name: two-points
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 60}
initialization: {kind: balanced, scale: 1.0e-6, divide_by: sqrt_width}
loss: {kind: mse}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 20000}
"""


@pytest.fixture
def base():
    return read(TEXT)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(here):
    """Write a config into the working directory; single lines of the usual text can be replaced
    by section.
    """

    def write(file="run.yaml", /, text=TEXT, **lines):
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
def problems():
    """Return what load_config complains about, one line a problem; nothing when it does not."""

    def problems(source, *overrides, **settings):
        told = []
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
