"""Runs of every kind that leaves its own trace on the disk, and what they must read as when they are cut short."""

from __future__ import annotations

import os
import shutil
import signal
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.runs import NotARunError, Run, RunWriter, info, verify_run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from dynamics_cli.training import loop
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_problems
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import arrays_of
from tests.runs.disk import Change, Disk, Log
from tests.training.kill_script import BASE, CONVOLUTIONAL

CHUNK = 9
"""Iterations between two checkpoints."""
GD = {"kind": "gd", "lr": 0.01, "iterations": 30}
RECORD = {"snapshots": {"kind": "every", "interval": 10}, "measures": ["weight_norm"]}
LIGHT = {"snapshots": {"kind": "list"}, "parameters": "none", "measures": [], "loss_every": 7}
CONFIGS: dict[str, dict[str, Any]] = {
    "recorded": {"optimizer": GD, "record": RECORD},
    "unrecorded": {"optimizer": GD, "record": LIGHT},
    "stopped early": {"optimizer": {**GD, "stop_below": 0.1725}, "record": RECORD},
    "diverged": {
        "optimizer": {**GD, "lr": 30.0},
        "architecture": {**BASE["architecture"], "activation": "linear"},
        "record": RECORD,
    },
    "rescaled time": {"optimizer": {**GD, "loss_scaled": True}, "backend": "torch", "record": RECORD},
    "sgd": {"optimizer": {"kind": "sgd", "lr": 0.01, "batch_size": 2, "epochs": 9}, "record": RECORD},
    "adam": {
        **CONVOLUTIONAL,
        "optimizer": {"kind": "adam", "lr": 0.01, "batch_size": 3, "iterations": 24},
        "record": {**RECORD, "loss_every": 8},
    },
    "layers": {
        "architecture": {"kind": "fully_connected", "widths": [4, 3], "activation": "tanh"},
        "initialization": {"kind": "default_scaled"},
        "optimizer": {"kind": "adamw", "lr": 0.01, "batch_size": 2, "epochs": 9},
        "record": RECORD,
    },
    "gradient flow": {"optimizer": {"kind": "gradient_flow", "until": 3.0, "points": 30}, "record": RECORD},
}
HISTORIES = ("replicas", "resumed", "interrupted", "resumed after a signal", "forced")
"""Runs of the first config that begin or end in other ways."""
CASES = (*CONFIGS, *HISTORIES)


@dataclass(frozen=True)
class Whole:
    """An uninterrupted run."""

    arrays: dict[str, np.ndarray]
    files: dict[str, bytes]
    info: dict[str, Any]

    @classmethod
    def of(cls, directory: Path) -> Whole:
        contents = arrays_of(directory)
        return cls({name: np.load(directory / name) for name in contents}, contents, Run(directory).info)


@dataclass(frozen=True)
class Moment:
    """What the writer had acknowledged after some changes: losses, snapshots, the iteration of the checkpoint."""

    changes: int
    losses: int = 0
    snapshots: int = 0
    checkpoint: int = 0
    finished: bool = False


@dataclass(frozen=True)
class Recording:
    """A run, from its first change of the disk to its last."""

    case: str
    start: Disk
    changes: list[Change]
    moments: list[Moment]
    whole: Whole
    train: Callable[[Path], None]
    """Do in a directory what was recorded."""
    go_on: Callable[[Path], None]
    """Resume a run that was cut short, or train one that had not begun, to the end."""

    def moment(self, changes: int) -> tuple[Moment, Moment]:
        """Return the last moment of which all was written after that many changes, and the one being written."""
        k = bisect_right(self.moments, changes, key=lambda moment: moment.changes)
        return self.moments[k - 1], self.moments[min(k, len(self.moments) - 1)]


def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let chunks, and with them the changes of the disk, not depend on time; nothing waits for the disk.

    The same YAML text is parsed once only, which otherwise takes a third of the time of a case.
    """
    monkeypatch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: CHUNK)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(loop, "HELD_SECONDS", -1.0)
    for name in ("sync", "sync_directory"):
        monkeypatch.setattr(files, name, lambda handle: None)
    known: dict[bytes, RunConfig] = {}

    def read_once(path: Path, **options: Any) -> RunConfig:
        text = path.read_bytes()
        if text not in known:
            known[text] = load_config(path, **options)
        return known[text]

    monkeypatch.setattr(info, "load_config", read_once)


def trainer(case: str) -> Callable[..., None]:
    """Return what trains a case, or goes on with it, in the directory given."""
    config = load_config({**BASE, **CONFIGS.get(case, CONFIGS["recorded"]), "name": "toy"})
    seeds = range(3) if case == "replicas" else range(config.seed, config.seed + 1)
    plan = plan_problems([build_problem(config.model_copy(update={"seed": k})) for k in seeds], Path())

    def train(directory: Path, **options: Any) -> None:
        directory.mkdir(exist_ok=True)
        obtain_run(replace(plan, directory=directory), **({"resume": True} | options))

    return train


def record(case: str, place: Path) -> Recording:
    """Train a run of this case and log every change that it makes; `steady` must hold."""
    train, whole, run = trainer(case), place / "whole", place / "logged"
    place.mkdir(exist_ok=True)
    for directory in (whole, run):
        shutil.rmtree(directory, ignore_errors=True)
    train(whole)
    if case == "resumed":  # a run killed after two checkpoints, in the middle of a chunk
        before = record("recorded", place / "before")
        k = [moment for moment in before.moments if moment.checkpoint == 2 * CHUNK + 1][-1].changes + 3
        state = before.start.copy()
        for change in before.changes[:k]:
            state.apply(change)
        state.write(run)
    elif case == "resumed after a signal":
        _interrupt(train, run)
    elif case == "forced":
        train(run)
    run.mkdir(exist_ok=True)
    first = train
    if case == "interrupted":
        first = partial(_interrupt, train)
    elif case == "forced":
        first = partial(train, force=True, resume=False)
    with pytest.MonkeyPatch.context() as patch:
        log = Log(patch, run)
        moments = _moments(patch, log, run)
        first(run)
    return Recording(case, log.start, log.changes, moments, Whole.of(whole), first, train)


def _interrupt(train: Callable[..., None], run: Path) -> None:
    with pytest.raises(Interrupted):
        train(run, progress=lambda iteration, _: iteration > CHUNK and os.kill(os.getpid(), signal.SIGTERM))


def _moments(patch: pytest.MonkeyPatch, log: Log, run: Path) -> list[Moment]:
    """Note what the writer has acknowledged, each time that it says so."""
    moments = [_beginning(run)]

    def noting(name: str, more: Callable[..., dict[str, Any]] = lambda *_: {}) -> None:
        real = getattr(RunWriter, name)

        def wrapped(*args: Any, **keywords: Any) -> Any:
            made = real(*args, **keywords)
            writer = made or args[0]
            rows = {"losses": writer.losses.rows, "snapshots": writer.snapshots.rows}
            moments.append(replace(moments[-1], changes=len(log.changes), **rows, **more(*args)))
            return made

        patch.setattr(RunWriter, name, wrapped)

    noting("create", lambda *_: {"checkpoint": 0, "finished": False})
    noting("reopen", lambda *_: {"finished": False})
    noting("append_losses")
    noting("append_snapshots")
    noting("checkpoint", lambda writer, state, meta: {"checkpoint": meta["iteration"]})
    noting("finish", lambda *_: {"finished": True})
    return moments


def _beginning(run: Path) -> Moment:
    try:
        found = Run(run)
    except NotARunError:
        return Moment(0)
    checkpoint = load_checkpoint(run)
    reached = checkpoint.meta["iteration"] if checkpoint else 0
    return Moment(0, len(found.losses), len(found.snapshot_iterations), reached, found.finished)


def check_prefix(directory: Path, whole: Whole) -> tuple[int, int]:
    """Assert that a run reads as the beginning of the whole one; return how many losses and snapshots it has."""
    run = Run(directory)
    losses, snapshots = len(run.losses), len(run.snapshot_iterations)
    seen = {"losses": run.losses, "loss_iterations": run.loss_iterations}
    if losses and run.times is not None:
        seen["times"] = run.times
    same_beginning(seen, whole, losses)
    recorded = {f"trajectory/{name}": run.parameters[name] for name in run.parameters}
    recorded |= {f"measures/{name}": run.measures[name] for name in run.measures}
    same_beginning({"trajectory/iterations": run.snapshot_iterations, **recorded}, whole, snapshots)
    if run.status == "complete":
        check_end(directory, whole)
    return losses, snapshots


def same_beginning(seen: dict[str, Any], whole: Whole, rows: int) -> None:
    for name, array in seen.items():
        expected = whole.arrays[f"{name}.npy"][:rows]
        assert len(array) == rows, name
        assert rows == 0 or array.shape == expected.shape, name
        assert array.tobytes() == expected.tobytes(), name


def check_end(directory: Path, whole: Whole) -> None:
    """Assert that a run has ended as the whole one did, bit for bit."""
    said = Run(directory).info
    for key in ("status", "iterations", "final_loss", "stopped_early", "rows", "replica_losses", "replica_iterations"):
        assert said.get(key) == whole.info.get(key), key
    assert arrays_of(directory) == whole.files
    assert verify_run(directory) == []
    left = [p.name for p in directory.rglob("*.tmp")]
    assert all(name.startswith(f".{layout.LOCK_HOLDER}.") for name in left), left  # the next writer deletes it
