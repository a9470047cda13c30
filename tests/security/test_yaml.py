"""A config is data: nothing in it is built, called or looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from dynamics_cli.config import ConfigError, load_config
from tests.runs.damage import reseal

from .conftest import CONFIG, Harm, dyn

SAMPLES: dict[str, Callable[[Harm], str]] = {
    "a call": lambda harm: f"!!python/object/apply:os.system ['{harm.command}']",
    "a call in words": lambda harm: f"!!python/object/apply:subprocess.check_output [['touch', '{harm.path}']]",
    "a call of new": lambda harm: f"!!python/object/new:os.system ['{harm.command}']",
    "code": lambda harm: f"!!python/object/apply:builtins.eval [\"open('{harm.path}', 'w').close()\"]",
    "a tag with a handle": lambda harm: f"!<tag:yaml.org,2002:python/object/apply:os.system> ['{harm.command}']",
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_tags_that_call(sample: str, harm: Harm, place: Path) -> None:
    value = SAMPLES[sample](harm)
    text = CONFIG.replace("0.01", value)
    yaml.load(text, Loader=yaml.UnsafeLoader)
    assert harm.done
    (place / "bad.yaml").write_text(text)
    for use in (
        lambda: load_config("bad.yaml"),
        lambda: load_config("toy.yaml", [f"optimizer.lr={value}"]),
        lambda: load_config({"extends": "bad.yaml"}),
    ):
        with pytest.raises(ConfigError, match=r"the YAML tag '!!python/object/\S+' is not allowed"):
            use()
    for command in (
        ["train", "bad.yaml"],
        ["show", "bad.yaml"],
        ["config", "check", "bad.yaml"],
        ["train", "toy.yaml", "--set", f"optimizer.lr={value}"],
        ["sweep", "toy.yaml", "--set", f"optimizer.lr={value}", "--grid", "seed=0,1"],
    ):
        result = dyn(*command)
        assert result.exit_code == 3
        assert "is not allowed" in result.stderr


@pytest.mark.parametrize("sample", SAMPLES)
def test_grids_of_sweeps(sample: str, harm: Harm, place: Path) -> None:
    value = SAMPLES[sample](harm)
    yaml.load(f"[{value}]", Loader=yaml.UnsafeLoader)
    assert harm.done
    assert dyn("sweep", "toy.yaml", "--grid", f"optimizer.lr={value}").exit_code in (2, 3)


def test_the_config_of_a_run(harm: Harm, place: Path) -> None:
    """Even one whose checksum is right."""
    assert dyn("train", "toy.yaml", "--out", "run", "--quiet").exit_code == 0
    path = place / "run" / "config.yaml"
    text = path.read_text() + f"x: {SAMPLES['a call'](harm)}\n"
    yaml.load(text, Loader=yaml.UnsafeLoader)
    assert harm.done
    path.write_text(text)
    reseal(place / "run" / "run.json", config_sha256=hashlib.sha256(text.encode()).hexdigest())
    for command in (["show", "run"], ["plot", "run", "--list"], ["train", "toy.yaml", "--out", "run", "--resume"]):
        assert dyn(*command).exit_code in (0, 3, 7)
