"""Sweeps of a function: settings, recorders and numbers; skipped, failing, edited, killed calls."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dynamics_cli as dyn
from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.directory import Sweep, verify_sweep
from dynamics_cli.training.many import workers
from dynamics_cli.training.signals import Interrupted

LOOP = """\
import os, signal, torch
from torch import nn

def train(settings, record):
    torch.manual_seed(settings["seed"])
    x = torch.randn(8, 2)
    y = x.prod(1, keepdim=True)
    model = nn.Sequential(nn.Linear(2, settings["width"]), nn.Tanh(), nn.LazyLinear(1))
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    with record(model, x, y, loss="mse", optimizer=optimizer, every=5) as recorder:
        for _ in range(20):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)
            if os.path.exists("stop"):
                os.remove("stop")
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                except KeyboardInterrupt as stop:  # as modules of pybind11 do
                    raise ImportError("initialization failed") from stop
    with open("calls", "a") as file:
        file.write("x")

def square(settings):
    if settings["x"] == 3:
        raise ZeroDivisionError("of three")
    return {"square": settings["x"] ** 2, "final_loss": 0.5}

def text(settings):
    return "no number"

def taken(settings):
    return {"status": 1.0}
"""


@pytest.fixture
def loop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # another name for each test: a process has one module of a name
    file = tmp_path / f"loop_{re.sub('[^a-z0-9]', '_', tmp_path.name.lower())}.py"
    file.write_text(LOOP)
    return file


def here(function, grid, **options):
    with ThreadPoolExecutor(1) as executor:
        return dyn.sweep(function, grid, executor=executor, **{"out": "s", **options})


def test_each_job_is_a_recorded_run_and_the_same_sweep_calls_nothing_again(loop):
    grid = {"lr": [0.05, 0.1], "width": [2, 3]}
    first = here(f"{loop.name}:train", grid, seeds=2, overrides=["depth=2"])
    assert first.counts() == {"complete": 8, "diverged": 0, "failed": 0}
    for row in first.rows:
        run = first.run(row["job"])
        settings = {"lr": row["lr"], "width": row["width"], "depth": 2}
        assert run.config.recorded["settings"] == settings
        assert (run.config.seed, run.iterations) == (row["seed"], 20)
        assert run.config.optimizer["lr"] == row["lr"]
        assert row["final_loss"] == run.final_loss == run.losses[-1]
    assert len({run.hash for run in first.runs()}) == 8
    assert len({row["final_loss"] for row in first.rows}) == 8
    assert [row["width"] for row in first.chosen({"lr": 0.1})] == [2, 2, 3, 3]
    again = here(f"{loop.name}:train", grid, seeds=2, overrides=["depth=2"])
    assert again.rows == first.rows
    assert Path("calls").read_text() == "x" * 8
    assert [*first.described.code.kept] == [loop.name]
    assert verify_sweep(first.path) == []
    assert len(dyn.picture(first, y="final_loss", x="lr").charts) == 1
    with pytest.raises(UsageError, match="holds another sweep"):
        here(f"{loop.name}:train", grid, seeds=2)
    loop.write_text(LOOP + "\n# edited\n")
    with pytest.raises(UsageError, match="holds another sweep"):
        here(f"{loop.name}:train", grid, seeds=2, overrides=["depth=2"])


def test_an_interrupted_call_begins_again_in_its_place(loop):
    grid = {"lr": [0.05], "width": [2]}
    first = here(f"{loop.name}:train", grid, out="whole")
    Path("stop").touch()
    with pytest.raises(Interrupted, match="finished jobs are kept") as stop:
        dyn.sweep(f"{loop.name}:train", grid, out="s")
    assert stop.value.number == signal.SIGTERM
    assert Sweep(Path("s")).describe()["others"] == {"failed": 1}
    again = here(f"{loop.name}:train", grid)
    assert again.table.read_bytes() == first.table.read_bytes()
    assert Path("calls").read_text() == "xx"


def test_a_function_may_return_numbers_and_one_that_fails_says_where(loop, monkeypatch):
    sweep = here(f"{loop.name}:square", {"x": [1, 2, 3]}, let={"y": "2 * x"})
    assert [(row["y"], row["square"], row["final_loss"]) for row in sweep.rows] == [
        (2, 1.0, 0.5),
        (4, 4.0, 0.5),
        (6, None, None),
    ]
    assert "ZeroDivisionError: of three" in sweep.rows[2]["message"]
    assert f"{loop.name}, line 29" in sweep.rows[2]["message"]
    assert "of three" in (sweep.path / "jobs/000002/traceback.txt").read_text()
    monkeypatch.setattr(workers, "MOST_SENT", 1)
    loop.write_text(LOOP.replace("== 3", "== 4"))
    stopped = here(f"{loop.name}:square", {"x": [4, 5]}, stop_at_failure=True, out="stopped")
    assert (len(stopped.rows), stopped.finished) == (1, False)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("text", "returned value = 'no number', not a number"),
        ("taken", "the table has a column 'status' of its own"),
    ],
)
def test_what_a_function_must_not_return(loop, name, told):
    assert told in here(f"{loop.name}:{name}", {"x": [1]}).rows[0]["message"]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("{}:trian", "has no function 'trian' .did you mean 'train'"),
        (lambda settings: 1.0, "write it to a file, outside of classes and functions"),
    ],
)
def test_what_is_no_function(loop, function, told):
    if isinstance(function, str):
        function = function.format(loop.name)
    with pytest.raises(UsageError, match=told):
        here(function, {"x": [1]})


@pytest.mark.long
def test_a_sweep_of_300_calls_in_two_shards_one_of_them_killed(loop):
    command = [sys.executable, "-m", "dynamics_cli", "sweep", f"{loop.name}:train", "--out", "s"]
    command += ["--grid", "lr=0.01:0.3:log:10", "--grid", "width=1,2,4,8,16", "--seeds", "6"]
    shards = [subprocess.Popen([*command, "-q", "--shard", f"{k}/2"]) for k in (1, 2)]
    while not Path("calls").exists() or len(Path("calls").read_text()) < 60:
        time.sleep(0.1)
    os.kill(shards[1].pid, signal.SIGKILL)
    assert shards[0].wait() == 0
    shards[1].wait()
    shown = Sweep(Path("s")).describe()
    assert shown["ended"] + sum(shown["others"].values()) == 300
    done = {path: path.stat().st_mtime_ns for path in Path("s").rglob("losses.npy")}
    subprocess.run([*command, "-q"], check=True)
    whole = Sweep(Path("s"))
    assert (whole.finished, whole.counts()["complete"]) == (True, 300)
    before = [path for path, time_ in done.items() if path.stat().st_mtime_ns == time_]
    assert len(before) >= shown["ended"]
    assert len(Path("calls").read_text()) <= 300 + os.cpu_count()
