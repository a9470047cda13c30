"""No file operation follows a link out of the directory that it is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.runs import CorruptRunError, RunWriter, run_lock, verify_run
from dynamics_cli.runs.store import files, layout

PRECIOUS = ("a.npy", "b.txt", ".c.99.tmp", "losses.npy", "run.json")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in PRECIOUS:
        (folder / name).write_text("precious")
    return folder


def untouched(victim: Path) -> bool:
    return {path.name: path.read_text() for path in victim.iterdir()} == dict.fromkeys(PRECIOUS, "precious")


@pytest.mark.parametrize("name", ["measures", "trajectory", "losses.npy", "checkpoint.npz", "run.json"])
def test_an_unfinished_run_with_a_link_is_refused(unfinished: Path, victim: Path, name: str) -> None:
    part = unfinished / name
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    part.symlink_to(victim if "." not in name else victim / "losses.npy")
    with pytest.raises(CorruptRunError):
        RunWriter.reopen(unfinished)
    assert verify_run(unfinished)
    assert untouched(victim)


def test_a_linked_copy_of_the_truth_is_told(unfinished: Path, tmp_path: Path) -> None:
    (unfinished / "measures").rename(tmp_path / "elsewhere")
    (unfinished / "measures").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "other.npy").write_text("precious")
    assert unfinished / "measures" in [found.file for found in verify_run(unfinished)]
    with pytest.raises(CorruptRunError, match="it is a link"):
        RunWriter.reopen(unfinished)
    assert (tmp_path / "elsewhere" / "other.npy").read_text() == "precious"


def test_what_is_deleted_or_written_is_the_link(finished: Path, victim: Path, config: RunConfig) -> None:
    shutil.rmtree(finished / "trajectory")
    for name in ("trajectory", "plots"):
        (finished / name).symlink_to(victim)
    with pytest.raises(UsageError, match="is a link"):
        layout.plots_folder(finished)
    (finished / ".losses.npy.99.tmp").symlink_to(victim / "losses.npy")
    with pytest.raises(OSError, match="symbolic"):
        files.create(finished / ".losses.npy.99.tmp")
    (finished / "times.npy").symlink_to(victim / "losses.npy")
    layout.clear_run(finished)
    (finished / "trajectory").symlink_to(victim)
    with pytest.raises(UsageError, match="is not a run, and holds trajectory: dyn will not overwrite it"):
        RunWriter.create(finished, config)
    (finished / "trajectory").unlink()
    RunWriter.create(finished, config).close()
    (finished / "measures").rmdir()
    (finished / "measures").symlink_to(victim)
    layout.clear_run(finished)
    assert not (finished / "measures").is_symlink()
    assert untouched(victim)


def test_a_lock_that_is_a_link(finished: Path, victim: Path) -> None:
    (finished / "lock").unlink(missing_ok=True)
    (finished / "lock").symlink_to(victim / "run.json")
    with pytest.raises(DynError), run_lock(finished, wait=False):
        pass
    assert untouched(victim)
