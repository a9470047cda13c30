"""SIGINT and SIGTERM to real processes: exit code, message, what is left; no more is asked of
the time than a limit.
"""

import json
import signal

import psutil
import pytest

from dynamics_cli.runs.run import Run
from dynamics_cli.runs.verify import verify_run
from tests.training.kill_script import BASE, RUNS

from .conftest import Answer, start, wait_until

LIMIT = 240.0
ENDLESS = {"kind": "gd", "lr": 1e-6, "iterations": 10**9}
CASES = {
    "compiled": {"optimizer": ENDLESS},
    "autograd": {"backend": "torch", "optimizer": ENDLESS},
    "flow": {"optimizer": {"kind": "gradient_flow", "until": 1e8, "points": 10**7, "rtol": 1e-3}},
    "gan": {
        **RUNS["gan"],
        "optimizer": {"kind": "adam", "lr": 1e-3, "batch_size": 7, "iterations": 10**9},
    },
}
SHAPES = ("--grid", "architecture.width=4,5,6")
"""Jobs that cannot be trained together."""
LIGHT = {"snapshots": {"kind": "list"}, "loss_every": 10**5, "measures": [], "parameters": "none"}


def config(place, name):
    file = place / f"{name}.json"
    file.write_text(
        json.dumps({**BASE, **CASES[name], "name": name.replace(" ", "-"), "record": LIGHT})
    )
    return file


def answer(process):
    out, err = process.communicate(timeout=LIMIT)
    return Answer(process.returncode, out, err)


def runs_begun(folder):
    """Run directories with a first state."""
    return sorted(
        path.parents[1]
        for path in folder.rglob("trajectory/iterations.npy")
        if path.stat().st_size > 128
    )


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("compiled", signal.SIGINT, 130),
        *(pytest.param(name, signal.SIGTERM, 143, marks=pytest.mark.long) for name in CASES),
    ],
)
def test_training_saves_and_ends(place, name, number, code):
    process = start(place, "train", config(place, name), "--out", "run", "--json")
    wait_until(lambda: bool(runs_begun(place)), process)
    process.send_signal(number)
    ended = answer(process)
    assert ended.code == code
    run = Run(place / "run")
    assert run.status == "interrupted"
    assert ended.json["path"] == str(place / "run")
    assert (ended.json["status"], ended.json["iterations"]) == ("interrupted", run.iterations)
    assert (
        ended.err.splitlines()[-1]
        == f"Error: interrupted at iteration {run.iterations}; the state is saved in run: --resume"
        " continues it"
    )
    assert "Traceback" not in ended.err
    assert (place / "run/checkpoint.npz").exists()
    assert verify_run(place / "run") == []


def test_the_workers_of_a_sweep_save_when_their_parent_is_interrupted(place):
    process = start(
        place, "sweep", config(place, "compiled"), *SHAPES, "--workers", 2, "--out", "sweep", "-q"
    )
    wait_until(lambda: len(runs_begun(place)) == 2, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)  # to the parent only: a terminal would tell the workers too
    ended = answer(process)
    assert ended.code == 130
    assert (
        ended.err
        == "Error: interrupted; finished jobs are kept, the states of the others are saved: the"
        " same command goes on\n"
    )
    wait_until(
        lambda: not any(worker.is_running() and worker.status() != "zombie" for worker in workers)
    )
    assert [Run(run).status for run in runs_begun(place)] == ["interrupted"] * 2
    assert all(
        (run / "checkpoint.npz").exists() and verify_run(run) == [] for run in runs_begun(place)
    )


def test_the_workers_of_a_killed_sweep_end(place):
    process = start(
        place, "sweep", config(place, "compiled"), *SHAPES, "--workers", 1, "--out", "sweep", "-q"
    )
    wait_until(lambda: bool(runs_begun(place)), process)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert workers
    process.kill()
    process.communicate()
    wait_until(
        lambda: not any(worker.is_running() and worker.status() != "zombie" for worker in workers)
    )
    (run,) = runs_begun(place)
    assert Run(run).status == "interrupted"  # saved, and its lock is free
    assert (run / "checkpoint.npz").exists()


def test_a_figure_that_is_being_drawn(place, dyn):
    assert dyn("new", "paper", "mine2026").code == 0
    module = place / "mine2026/mine2026/fig1.py"
    slow = (
        '"""Draw the loss."""\n    Path("drawing").touch()\n    import time\n    time.sleep(1000)'
    )
    module.write_text(module.read_text().replace('"""Draw the loss."""', slow))
    process = start(place, "--with", "mine2026", "reproduce", "mine2026-fig1", "--quiet")
    wait_until((place / "drawing").exists, process)
    process.send_signal(signal.SIGTERM)
    ended = answer(process)
    assert (ended.code, ended.err.strip()) == (143, "interrupted")
    assert [*(place / "outputs").rglob("*.tmp"), *(place / "outputs/figures").rglob("*.*")] == []
    (run,) = (place / "outputs/runs").iterdir()
    assert Run(run).status == "complete"
    assert dyn("verify", "--all").code == 0
