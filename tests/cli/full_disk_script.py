"""`dyn train` on disks that are full, limited, closed or taken away, then `--resume` once all is well again.

Called by `test_full_disk.py` in a process of its own: `python full_disk_script.py FOLDER MODE`. Prints one JSON
document: of every case what was in the way, the exit code and the message of the run that was stopped, and whether the
resumed run has the bits of an uninterrupted one.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dynamics_cli.cli import main
from dynamics_cli.training import loop
from tests.cli.conftest import CONFIG as WHOLE

CONFIG = WHOLE.replace("iterations: 30", "iterations: 900") + "record: {snapshots: {kind: every, interval: 100}}\n"
PAGE = 4096
Case = dict[str, Any]


def dyn(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stderr


def arrays(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*.npy"))}


class Runs:
    """Trains the config in a folder, and compares with what an uninterrupted run gives."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "toy.yaml"
        self.config.write_text(CONFIG)
        assert dyn("train", self.config, "--out", folder / "whole", "--quiet")[0] == 0
        self.whole = arrays(folder / "whole")

    def train(self, run: Path, *options: str) -> tuple[int, str]:
        return dyn("train", self.config, "--out", run, "--quiet", *options)

    def case(self, what: object, run: Path, answer: tuple[int, str], now_at: Path | None = None) -> Case:
        """Resume and compare; `now_at` is where the run has been moved."""
        run = now_at or run
        code, message = self.train(run, "--resume")
        same = arrays(run) == self.whole
        shutil.rmtree(run)
        told = {"code": answer[0], "message": answer[1]}
        return {"what": what, **told, "resumed": code, "resume_message": message, "same": same}


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def limits(folder: Path) -> Iterator[Case]:
    """No file may grow beyond so many bytes."""
    runs = Runs(folder)
    for size in (0, 1, 100, 300, 700, 1000, 1300, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 7000):
        with file_size_limit(size):
            answer = runs.train(folder / "run")
        yield runs.case(size, folder / "run", answer)


def small_disk(folder: Path) -> Iterator[Case]:
    """A file system in memory with so many free pages; needs the right to mount, if only for this process."""
    disk, ballast = folder / "disk", folder / "disk" / "ballast"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], check=True)
    runs = Runs(folder)
    for free in range(30):
        gc.collect()  # deleted arrays that a run of this process has mapped take room until then
        ballast.write_bytes(bytes(512 * 1024 - free * PAGE))
        answer = runs.train(disk / "run")
        ballast.unlink()
        yield runs.case(free, disk / "run", answer)


def closed(folder: Path) -> Iterator[Case]:
    """A directory without the right to write, from the start or from some moment on."""
    runs, run = Runs(folder), folder / "run"

    def close(directory: Path) -> Callable[[], None]:
        return lambda: directory.chmod(0o500)

    (folder / "above").mkdir(mode=0o500)
    answer = runs.train(folder / "above" / "run")
    (folder / "above").chmod(0o700)
    yield runs.case("the folder above", folder / "above" / "run", answer)
    run.mkdir(mode=0o500)
    answer = runs.train(run)
    run.chmod(0o700)
    yield runs.case("from the start", run, answer)
    for reached in (1, 300, 800):
        with at_iteration(reached, close(run)):
            answer = runs.train(run)
        run.chmod(0o700)
        yield runs.case(f"at iteration {reached}", run, answer)


def vanishing(folder: Path) -> Iterator[Case]:
    """A run directory that is deleted, moved, or replaced by another run while it is written."""
    runs, run, elsewhere = Runs(folder), folder / "run", folder / "elsewhere"
    for reached in (1, 800):
        with at_iteration(reached, lambda: shutil.rmtree(run)):
            answer = runs.train(run)
        yield runs.case(f"deleted at {reached}", run, answer)
        with at_iteration(reached, lambda: run.rename(elsewhere)):
            answer = runs.train(run)
        assert not run.exists()
        yield runs.case(f"moved at {reached}", run, answer, now_at=elsewhere)

        def replace() -> None:
            run.rename(elsewhere)
            shutil.copytree(elsewhere, run)

        with at_iteration(reached, replace):
            answer = runs.train(run)
        shutil.rmtree(elsewhere)
        yield runs.case(f"replaced at {reached}", run, answer)


@contextmanager
def at_iteration(reached: int, action: Callable[[], object]) -> Iterator[None]:
    """Do something once in the middle of training."""
    advance, done = loop.TrainingLoop._advance, []

    def advanced(self: loop.TrainingLoop, chunk: int) -> Any:
        result = advance(self, chunk)
        if not done and self.stepper.iteration >= reached:
            done.append(True)
            action()
        return result

    loop.TrainingLoop._advance = advanced  # type: ignore[method-assign]
    try:
        yield
    finally:
        loop.TrainingLoop._advance = advance  # type: ignore[method-assign]


if __name__ == "__main__":
    loop._next_chunk = lambda *_: 70
    loop.CHECKPOINT_SECONDS = -1.0
    os.umask(0o022)
    mode: Callable[[Path], Iterator[Case]] = {"limits": limits, "small disk": small_disk, "closed": closed}[sys.argv[2]]
    print(json.dumps(list(mode(Path(sys.argv[1])))))
