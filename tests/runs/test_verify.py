from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.runs import CorruptRunError, verify_run, writer
from dynamics_cli.runs.info import read_info, write_info

from .damage import cut


@pytest.mark.parametrize("gone", ["losses", "loss_iterations", "times", "trajectory/iterations", "measures/norm"])
def test_deleted_arrays_before_the_first_checkpoint(tmp_path: Path, config: RunConfig, toy: Any, gone: str) -> None:
    with writer.RunWriter.create(tmp_path / "run", config, {"arrays": ["measures/norm", "times"]}) as run:
        for i in (0, 1):
            run.append_losses([i], [1.0], [0.5 * i])
            toy.snapshot(run, i)
    assert verify_run(tmp_path / "run") == []
    (tmp_path / "run" / f"{gone}.npy").unlink()
    assert [found.file for found in verify_run(tmp_path / "run")] == [tmp_path / "run" / f"{gone}.npy"]
    with writer.RunWriter.reopen(tmp_path / "run"):  # from the beginning: nothing of what is left is used
        assert verify_run(tmp_path / "run") == []


def test_deleted_checkpoints(unfinished: Path, finished: Path) -> None:
    for run in (unfinished, finished):
        for name in ("checkpoint.npz", "checkpoint-previous.npz"):
            (run / name).unlink()
    assert verify_run(finished) == []
    assert [(found.file.name, found.problem) for found in verify_run(unfinished)] == [
        ("checkpoint.npz", "it is gone, and so is the one before it")
    ]
    with pytest.raises(CorruptRunError, match="it is gone"):
        writer.RunWriter.reopen(unfinished)


def test_fewer_rows_than_snapshots(unfinished: Path) -> None:
    for name in ("checkpoint.npz", "checkpoint-previous.npz"):
        (unfinished / name).unlink()
    write_info(unfinished, {**read_info(unfinished), "checkpointed": False})
    cut(unfinished, "measures/norm", 2)
    findings = verify_run(unfinished)
    assert [(f.file.name, f.problem) for f in findings] == [("norm.npy", "it has 2 rows of 3 snapshots")]


def test_a_config_that_this_version_does_not_understand(finished: Path) -> None:
    text = "name: x\nunknown: 1\n"
    (finished / "config.yaml").write_text(text)
    info = read_info(finished)
    write_info(finished, {**info, "config_sha256": hashlib.sha256(text.encode()).hexdigest()})
    found = [f.file.name for f in verify_run(finished)]
    assert found == ["config.yaml", "checkpoint.npz", "checkpoint-previous.npz"]  # the latter are of the former config
    assert "unknown" in verify_run(finished)[0].problem
