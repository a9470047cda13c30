"""`dyn sweep` and the pictures of a sweep."""

from pathlib import Path

import pytest

from dynamics_cli import api
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.directory import Sweep
from tests.cli.conftest import CONFIG

GRID = ["--grid", "initialization.scale=0.1:1:log:3", "--grid", "optimizer.lr=0.01,0.02"]


def only(folder):
    (found,) = folder.iterdir()
    return found


def test_a_sweep_writes_a_table_and_says_where(dyn, place, monkeypatch):
    monkeypatch.setattr("dynamics_cli.cli.output.LOG_INTERVAL", 0.0)
    answer = dyn("sweep", "toy.yaml", *GRID, "--seeds", 2)
    assert answer.code == 0, answer.err
    assert "| 12/12 [" in answer.err.splitlines()[-2]  # a line now and then, in a file
    directory = only(place / "outputs" / "sweeps")
    assert directory.name.startswith("toy-")
    assert (
        answer.out == f"sweep  outputs/sweeps/{directory.name}\n"
        f"table  outputs/sweeps/{directory.name}/results.csv\n"
        "jobs   12 of 12: 12 complete\n"
    )


def test_json(dyn, place):
    answer = dyn("sweep", "toy.yaml", "--grid", "architecture.width=2,4", "--json")
    assert answer.err == ""
    document = answer.json
    assert (document["complete"], document["diverged"], document["failed"]) == (2, 0, 0)
    assert document["path"] == str(only(place / "outputs" / "sweeps"))
    assert [job["architecture.width"] for job in document["jobs"]] == [2, 4]
    assert dyn("sweep", "toy.yaml", "--grid", "architecture.width=2,4", "--json").out == answer.out


def test_failed_jobs_give_exit_code_6_and_are_counted_by_their_messages(dyn, place):
    (place / "sgd.yaml").write_text(
        CONFIG.replace("kind: gd, lr: 0.01, iterations: 30", "kind: sgd, lr: 1, epochs: 1")
    )
    answer = dyn(
        *("sweep", "sgd.yaml", "--grid", "optimizer.batch_size=1,3,4", "--seeds", 2),
        *("--out", "s", "--quiet"),
    )
    assert answer.code == 6
    assert (
        answer.err
        == "Error: 4 failed of 6 jobs, the first: optimizer.batch_size is 3, the training set has 2"
        " samples\n"
    )
    assert "2 complete, 4 failed" in answer.out
    assert dyn("show", "s").out.endswith(
        "messages\n"
        "  2 x optimizer.batch_size is 3, the training set has 2 samples\n"
        "  2 x optimizer.batch_size is 4, the training set has 2 samples\n"
    )


def test_a_sweep_that_diverges_gives_exit_code_6_and_a_message_for_each_job(dyn, place):
    diverges = ["--set", "architecture.activation=linear", "--out", "s", "--quiet"]
    answer = dyn("sweep", "toy.yaml", "--grid", "optimizer.lr=100,1e30", *diverges)
    assert answer.code == 6
    assert "2 of 2: 2 diverged" in answer.out
    rows = Sweep(place / "s").rows
    messages = [f"the loss is not finite at iteration {row['iterations']}" for row in rows]
    assert [row["message"] for row in rows] == messages
    assert answer.err == f"Error: 2 diverged of 2 jobs, the first: {messages[0]}\n"
    assert all(f"  1 x {message}\n" in dyn("show", "s").out for message in messages)
    again = dyn("sweep", "toy.yaml", "--grid", "optimizer.lr=100,1e30", *diverges)
    assert (again.code, again.err) == (6, answer.err)


def test_replicas(dyn, place):
    answer = dyn("sweep", "toy.yaml", "--seeds", 5, "--record", "config", "--json")
    assert answer.code == 0, answer.err
    assert [job["seed"] for job in answer.json["jobs"]] == [0, 1, 2, 3, 4]
    alone = dyn("train", "toy.yaml", "--seed", 3, "--json").json
    assert answer.json["jobs"][3]["final_loss"] == pytest.approx(alone["final_loss"], rel=1e-5)
    batch = Path(answer.json["path"]) / "batches" / "000000"
    refused = dyn("page", batch)
    assert (refused.code, refused.err) == (
        7,
        f"Error: {batch} holds several runs trained together: name one, {batch}:0 to {batch}:4\n",
    )
    assert "function" in dyn("plot", f"{batch}:3", "--list").out
    drawn = dyn("plot", f"{batch}:3", "--panel", "loss", "--out", place / "pictures")
    assert Path(drawn.out.strip()).stat().st_size > 5000
    compared = dyn("compare", f"{batch}:0", f"{batch}:1", "--json")
    assert compared.code == 0, compared.err
    assert "none with number 9" in dyn("plot", f"{batch}:9", "--list").err


def test_pictures_of_a_sweep(dyn, place):
    dyn("sweep", "toy.yaml", *GRID, "--grid", "loss.kind=mse,half_mse", "--seeds", 2, "--out", "s")
    listed = dyn("plot", "s", "--list", "--json").json
    assert [panel["name"] for panel in listed] == ["phase", "curve", "losses"]
    files = dyn("plot", "s", "--json").json["files"]
    assert [Path(file).name for file in files] == ["phase.png", "curve.png", "losses.png"]
    assert all(Path(file).stat().st_size > 5000 for file in files)
    assert dyn("plot", "s", "--animate").code == 2
    with pytest.raises(UsageError, match="a sweep has no states"):
        api.plot("s", "curve", 3)
