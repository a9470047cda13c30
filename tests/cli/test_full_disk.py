"""What stops `dyn train` from writing is told in one message, with exit code 7; `--resume` ends
with the same bits.

Errors of a disk at every change: tests/runs/test_attacks.py.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.training import loop
from tests.runs.damage import arrays_of

from .conftest import Answer, Dyn

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits and rights are those of Linux"
)
LONG = [
    "--set",
    "optimizer.iterations=900",
    "--set",
    "record.snapshots={kind: every, interval: 100}",
    "--quiet",
]
Train = Callable[..., Answer]


@pytest.fixture
def train(dyn: Dyn, in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Train a run in memory, with a checkpoint after every 70 iterations."""
    monkeypatch.chdir(shutil.copytree(Path.cwd(), in_memory / "place"))
    monkeypatch.setattr(loop, "_next_chunk", lambda *_: 70)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    return lambda run, *options: dyn("train", "toy.yaml", "--out", run, *LONG, *options)


def check(train: Train, answer: Answer, told: str, run: str = "run") -> None:
    """Assert that a run was stopped with this message, and goes on from there."""
    if not Path("whole").exists():
        assert train("whole").code == 0
    assert (answer.code, answer.err.count("\n"), told in answer.err) == (7, 1, True), answer
    assert "ontinue with --resume" in answer.err
    assert train(run, "--resume").code == 0
    assert arrays_of(Path(run)) == arrays_of(Path("whole"))
    shutil.rmtree(run)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_files_that_may_not_grow(train: Train) -> None:
    for size in (0, 700, 3000):
        with file_size_limit(size):
            answer = train("run")
        check(train, answer, "disk full while writing")


def replaced(run: Path, elsewhere: Path) -> None:
    run.rename(elsewhere)
    shutil.copytree(elsewhere, run)


@pytest.mark.parametrize(
    ("action", "run", "reached"),
    [
        (lambda run, elsewhere: shutil.rmtree(run), "run", 800),
        (lambda run, elsewhere: run.rename(elsewhere), "elsewhere", 1),
        (replaced, "run", 800),
    ],
    ids=["deleted", "moved", "replaced"],
)
def test_a_directory_that_vanishes(
    train: Train,
    monkeypatch: pytest.MonkeyPatch,
    action: Callable[..., object],
    run: str,
    reached: int,
) -> None:
    advance = loop.TrainingLoop._advance
    done = []

    def advanced(self: loop.TrainingLoop, chunk: int) -> Any:
        result = advance(self, chunk)
        if not done and self.stepper.iteration >= reached:
            done.append(True)
            action(Path("run"), Path("elsewhere"))
        return result

    monkeypatch.setattr(loop.TrainingLoop, "_advance", advanced)
    check(train, train("run"), "is gone: was its directory deleted or moved?", run)
