from pathlib import Path

import yaml

from dynamics_cli.config import load_config
from dynamics_cli.runs.run import Run


def test_a_config_is_shown_with_every_default_and_reads_back(dyn):
    answer = dyn("show", "toy.yaml", "--set", "seed=4")
    assert answer.code == 0
    shown = yaml.safe_load(answer.out)
    assert (shown["seed"], shown["dtype"]) == (4, "float32")
    assert load_config(shown) == load_config("toy.yaml", ["seed=4"])
    assert dyn("show", "toy.yaml", "--set", "seed=4", "--json").json == shown


def test_a_run(dyn):
    path = Path(dyn("train", "toy.yaml", "--json").json["path"])
    run = Run(path)
    shown = dyn("show", path, "--json").json
    assert (shown["path"], shown["status"], shown["iterations"]) == (str(path), "complete", 30)
    assert shown["final_loss"] == run.final_loss
    assert shown["config"]["architecture"]["width"] == 8
    assert shown["hash"] == run.hash
    assert {
        str(path / name) for name in ("run.json", "losses.npy", "trajectory/hidden_weight.npy")
    } <= set(shown["files"])
    text = dyn("show", path).out
    assert "status      complete\n" in text
    assert "\nsettings\n  name: toy\n" in text
    assert "  trajectory/hidden_weight.npy\n" in text
