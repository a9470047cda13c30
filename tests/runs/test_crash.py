"""Kills at every change of the disk, and at random moments: what reads back is a prefix, and going on ends the same."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.runs import NotARunError, load_run


def check_prefix(directory: Path, toy: Any) -> int:
    """Assert that the run reads as some acknowledged state; return how many losses it has."""
    try:
        run = load_run(directory)
    except NotARunError:
        return 0
    count = len(run.losses)
    np.testing.assert_array_equal(run.loss_iterations, np.arange(count))
    np.testing.assert_array_equal(run.losses, [toy.loss(i) for i in range(count)])
    steps = run.snapshot_iterations.tolist()
    assert steps == list(toy.snapshots)[: len(steps)]
    if steps:
        np.testing.assert_array_equal(run.parameters["hidden_weight"], [toy.weights(i) for i in steps])
        np.testing.assert_array_equal(run.parameters["output_weight"], [toy.weights(i)[:, 0] for i in steps])
        np.testing.assert_array_equal(run.measures["norm"], [toy.loss(i) for i in steps])
    return count


def arrays_of(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*.npy"))}


def go_on(directory: Path, config: RunConfig, toy: Any) -> None:
    if not (directory / "run.json").exists():
        toy.train(directory, config)
    elif load_run(directory).status != "complete":
        toy.train(directory, config, resume=True)
    assert not [p for p in directory.rglob("*") if p.name.endswith(".tmp")]


SOME = [4, pytest.param(1, marks=pytest.mark.long)]
"""Every fourth change, or all."""


# before one change is after another
@pytest.mark.parametrize("step", SOME)
@pytest.mark.parametrize("when", ["half", pytest.param("after", marks=pytest.mark.long)])
def test_killed_at_changes_of_a_run(
    finished: Path, config: RunConfig, toy: Any, faults: Any, when: str, step: int
) -> None:
    tmp_path = finished.parent
    expected = arrays_of(finished)
    run, at, seen = tmp_path / "run", 0, []
    while True:
        shutil.rmtree(run, ignore_errors=True)
        faults.plan(at, when)
        if not faults.dies(lambda: toy.train(run, config)):
            break
        seen.append(check_prefix(run, toy))  # half of a row count's 20 characters are spaces: it reads as the old one
        go_on(run, config, toy)
        assert arrays_of(run) == expected, at
        at += step
    assert at > 150
    assert seen == sorted(seen)
    assert max(seen) == toy.last + 1


@pytest.mark.parametrize("step", SOME)
def test_killed_at_changes_of_a_resumption(
    unfinished: Path, config: RunConfig, toy: Any, faults: Any, step: int
) -> None:
    tmp_path = unfinished.parent
    toy.snapshots = (0, 3, 6, 9, 12)
    expected_run = tmp_path / "expected"
    toy.train(expected_run, config)
    expected = arrays_of(expected_run)
    run, at = tmp_path / "run", 0
    while True:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(unfinished, run)
        faults.plan(at, "after")
        if not faults.dies(lambda: toy.train(run, config, resume=True)):
            break
        assert check_prefix(run, toy) >= 6
        go_on(run, config, toy)
        assert arrays_of(run) == expected, at
        at += step
    assert at > 80


def test_killed_at_random_moments(tmp_path: Path, config: RunConfig, toy: Any) -> None:
    """Twenty SIGKILLs of a process that writes, each followed by reading and going on."""
    toy = type("LongToy", (toy,), {"last": 300, "snapshots": tuple(range(0, 301, 2)), "chunk": 9})
    expected = tmp_path / "expected"
    began = time.monotonic()
    toy.train(expected, config)
    seconds = time.monotonic() - began
    fork = multiprocessing.get_context("fork")
    rng = random.Random(0)
    run, kills, progress = tmp_path / "run", 0, 0
    while kills < 20:
        resume = (run / "run.json").exists()
        process = fork.Process(target=toy.train, args=(run, config, resume))
        process.start()
        time.sleep(rng.uniform(0.001, seconds / 4))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        count = check_prefix(run, toy)
        assert count >= progress - toy.chunk
        progress = count
        if (run / "run.json").exists() and load_run(run).status == "complete":
            assert arrays_of(run) == arrays_of(expected)
            shutil.rmtree(run)
            progress = 0
    go_on(run, config, toy)
    assert arrays_of(run) == arrays_of(expected)


@pytest.fixture(autouse=True)
def same_snapshots(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test change the schedule of the toy run."""
    monkeypatch.setattr(toy, "snapshots", toy.snapshots)
