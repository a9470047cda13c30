import os
import signal
from pathlib import Path

import pytest

import dynamics_cli as api
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import contents

KEYS = ["path", "status", "iterations", "final_loss", "seconds", "device", "backend"]


def test_prints_the_run_and_its_final_numbers(dyn, place):
    answer = dyn("train", "toy.yaml")
    assert answer.code == 0
    lines = dict(line.split("  ", 1) for line in answer.out.splitlines())
    assert list(lines) == [
        "run",
        "status",
        "iterations",
        "final loss",
        "seconds",
        "device",
        "backend",
    ]
    values = {name: value.strip() for name, value in lines.items()}
    run = Run(values["run"])
    assert run.path.parent == Path("outputs/runs")
    assert run.path.name.startswith("toy-")
    assert (values["status"], values["iterations"], values["device"]) == ("complete", "30", "cpu")
    assert float(values["final loss"]) == pytest.approx(run.final_loss, rel=1e-5)
    assert sorted(path.name for path in place.iterdir()) == ["outputs", "toy.yaml"]


def test_shows_iterations_loss_and_rate_on_stderr(dyn, monkeypatch):
    assert (
        dyn("train", "toy.yaml", "--out", "short").err == ""
    )  # a log is told of what takes long only
    monkeypatch.setattr("dynamics_cli.cli.output.LOG_INTERVAL", 0.0)
    answer = dyn("train", "toy.yaml")
    last = answer.err.replace("\r", "\n").strip().splitlines()[-1]
    assert "30/30" in last
    assert "it/s" in last
    assert f"loss {Run(dyn('train', 'toy.yaml', '--json').json['path']).losses[-2]:.3e}" in last


def test_json_is_one_document_of_the_contracted_keys(dyn, place):
    answer = dyn("train", "toy.yaml", "--json")
    assert list(answer.json) == KEYS
    run = Run(answer.json["path"])
    assert Path(answer.json["path"]).is_absolute()
    assert answer.json["final_loss"] == run.final_loss
    assert answer.json["seconds"] == run.info["seconds"]
    assert (answer.json["device"], answer.json["backend"]) == (
        run.info["device"],
        run.info["backend"],
    )


def test_a_finished_run_is_reused(dyn):
    first = dyn("train", "toy.yaml", "--json").json
    written = (Path(first["path"]) / "run.json").stat().st_mtime_ns
    again = dyn("train", "toy.yaml")
    assert again.code == 0
    assert again.err == "this run was finished before and is reused; --force trains it again\n"
    assert dyn("train", "toy.yaml", "--json").json == first
    assert (Path(first["path"]) / "run.json").stat().st_mtime_ns == written


def test_force_trains_again(dyn):
    first = dyn("train", "toy.yaml", "--json").json
    before = contents(Path(first["path"]))
    again = dyn("train", "toy.yaml", "--force")
    aside = Path(f"{first['path']}.before-1")
    assert f"the run that was there is in {aside}\n" in again.err
    assert contents(aside) == before
    assert dyn("show", "toy", "--json").json["path"] == first["path"], "it has the name alone"
    assert Run(first["path"]).final_loss == first["final_loss"]


def test_dry_run_says_why_torch_trains_large_layers(dyn):
    large = (
        "--set=dataset={kind: teacher, n: 520, dim: 520}",
        "--set=dataset.architecture={kind: two_layer, width: 2}",
        "--set=architecture={kind: fully_connected, widths: [520]}",
        "--set=initialization={kind: default_scaled}",
    )
    told = dyn("train", "toy.yaml", *large, "--dry-run").out
    assert "torch, as a layer has more than 512 inputs and 512 outputs" in told
    smaller = dyn("train", "toy.yaml", *large, "--set=dataset.n=512", "--dry-run").out
    assert "backend     compiled\n" in smaller


def test_dry_run_knows_what_is_there(dyn, place):
    def would(*options):
        plan = dyn("train", "toy.yaml", "--out", "here", "--dry-run", "--json", *options).json
        return plan["status"], plan["action"]

    dyn("train", "toy.yaml", "--out", "here")
    assert would() == ("complete", "reuse the complete run that is there")
    assert would("--force") == (
        "complete",
        f"move the complete run that is there to {place}/here.before-1 and train from iteration 0",
    )
    another = (
        "refuse: here holds a run of another config: give --out another directory, or --force to"
        " move it aside"
    )
    assert would("--seed", 1) == ("complete", another)
    (place / "mine/measures").mkdir(parents=True)
    (place / "mine/measures/lab.csv").write_text("mine")
    plan = dyn("train", "toy.yaml", "--out", "mine", "--force", "--dry-run", "--json").json
    assert plan["action"].startswith("refuse: mine holds measures/lab.csv, which dyn did not")
    with pytest.raises(Interrupted):
        api.train("toy.yaml", out="cut", progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert (
        dyn("train", "toy.yaml", "--out", "cut", "--dry-run", "--json").json["status"]
        == "interrupted"
    )
    unfinished = dyn("train", "toy.yaml", "--out", "cut")
    assert unfinished.code == 2
    assert "--resume continues it, --force starts over" in unfinished.err
    for option, action in (
        ("--resume", "continue the unfinished run"),
        ("-q", "refuse: cut holds an unfinished run"),
    ):
        told = dyn("train", "toy.yaml", "--out", "cut", "--dry-run", "--json", option).json[
            "action"
        ]
        assert told.startswith(action)
    assert (
        dyn("train", "toy.yaml", "--out", "cut", "--resume", "--json").json["status"] == "complete"
    )
    with run_lock(place / "here"):
        assert would() == ("complete", "wait for another process that holds the directory")
