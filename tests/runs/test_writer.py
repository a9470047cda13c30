from __future__ import annotations

import errno
import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs import RunWriter, check_space, clear_run, load_run, verify_run
from dynamics_cli.runs.store import files
from tests.runs.conftest import append_snapshot
from tests.runs.damage import arrays_of


def test_the_layout_of_a_finished_run(finished: Path, toy: Any) -> None:
    found = sorted(str(p.relative_to(finished)) for p in finished.rglob("*") if p.is_file())
    assert found == [
        "checkpoint-previous.npz", "checkpoint.npz", "config.yaml", "loss_iterations.npy", "losses.npy",
        "measures/norm.npy", "run.json", "trajectory/hidden_weight.npy", "trajectory/iterations.npy",
        "trajectory/output_weight.npy",
    ]  # fmt: skip
    steps = np.load(finished / "trajectory" / "iterations.npy")
    assert steps.tolist() == list(toy.snapshots)
    weights = np.load(finished / "trajectory" / "hidden_weight.npy", mmap_mode="r")
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, np.stack([toy.weights(i) for i in toy.snapshots]))
    np.testing.assert_array_equal(np.load(finished / "losses.npy"), [toy.loss(i) for i in range(toy.last + 1)])
    np.testing.assert_array_equal(np.load(finished / "loss_iterations.npy"), np.arange(toy.last + 1))
    info = json.loads((finished / "run.json").read_text())
    assert info["status"] == "complete"
    assert info["hash"] == "abc"
    assert info["dtype"] == "float32"
    assert info["rows"]["losses"] == toy.last + 1
    assert info["rows"]["trajectory/hidden_weight"] == len(toy.snapshots)
    assert info["versions"]["numpy"] == np.__version__
    assert verify_run(finished) == []


def test_a_killed_run_goes_back_to_its_checkpoint(unfinished: Path, toy: Any) -> None:
    with RunWriter.reopen(unfinished) as writer:
        assert writer.resumed is not None
        assert writer.resumed.meta == {"iteration": 6}
        np.testing.assert_array_equal(writer.resumed.arrays["w"], toy.weights(6))
        assert (writer.losses.rows, writer.snapshots.rows) == (6, 3)
        assert np.load(unfinished / "losses.npy").shape == (6,)
        assert np.load(unfinished / "trajectory" / "hidden_weight.npy").shape == (3, 4, 2)
        with pytest.raises(ValueError, match=r"5\.\.5 do not increase after 5"):
            writer.append_losses([5], [1.0])
        with pytest.raises(ValueError, match="do not increase after 6"):
            append_snapshot(writer, 6, {})


def test_a_damaged_checkpoint_costs_one_checkpoint(unfinished: Path) -> None:
    (unfinished / "checkpoint.npz").write_bytes(b"damaged")
    with RunWriter.reopen(unfinished) as writer:
        assert writer.resumed is not None
        assert writer.resumed.meta == {"iteration": 3}
        assert (writer.losses.rows, writer.snapshots.rows) == (3, 2)
        assert not (unfinished / "checkpoint.npz").exists()
        writer.finish("failed", iterations=3, final_loss=1, seconds=1)
    assert "checkpoint.npz was damaged" in load_run(unfinished).info["messages"][0]


def test_a_run_without_checkpoint_starts_over(tmp_path: Path, config: RunConfig, toy: Any) -> None:
    run = tmp_path / "run"
    with RunWriter.create(run, config) as writer:
        toy.snapshot(writer, 0)
        writer.append_losses([0, 1], [1.0, 2.0], times=[0.0, 0.1])
    (run / "trajectory" / ".w.npy.99.tmp").write_text("left by a kill")
    with RunWriter.reopen(run) as writer:
        assert writer.resumed is None
        assert (writer.losses.rows, writer.snapshots.rows) == (0, 0)
        assert not arrays_of(run)
        assert not list((run / "trajectory").iterdir())
    assert len(load_run(run).losses) == 0


def test_resuming_where_nothing_is_to_be_resumed(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="complete run: there is nothing to continue"):
        RunWriter.reopen(finished)
    with pytest.raises(RunError, match="does not exist"):
        RunWriter.reopen(tmp_path / "missing")


def test_a_directory_in_use_for_something_is_refused(tmp_path: Path, finished: Path, config: RunConfig) -> None:
    with pytest.raises(UsageError, match="--resume to continue it or --force to start over"):
        RunWriter.create(finished, config)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.yaml").write_text("name: mine\n")
    (foreign / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"is not a run, and holds config\.yaml: dyn will not overwrite it"):
        RunWriter.create(foreign, config)
    with pytest.raises(UsageError, match="is not a run"):
        clear_run(foreign)
    assert (foreign / "config.yaml").read_text() == "name: mine\n"
    (foreign / "config.yaml").unlink()
    RunWriter.create(foreign, config).close()
    assert (foreign / "notes.txt").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, not a directory"):
        RunWriter.create(tmp_path / "file", config)


def test_force_empties_a_run_and_keeps_the_rest(finished: Path, config: RunConfig, toy: Any, tmp_path: Path) -> None:
    (finished / "lock").write_text("")
    (finished / "notes.txt").write_text("mine")
    (finished / "plots").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("")
    (finished / "plots" / "link").symlink_to(outside)
    clear_run(finished)
    assert sorted(p.name for p in finished.iterdir()) == ["lock", "notes.txt"]
    assert (outside / "keep").exists()
    clear_run(finished)
    clear_run(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    toy.train(finished, config)
    assert load_run(finished).status == "complete"


def test_a_half_deleted_run_is_ours(finished: Path, config: RunConfig) -> None:
    (finished / "run.json").unlink()
    with RunWriter.create(finished, config):
        assert not arrays_of(finished)
        assert not (finished / "checkpoint.npz").exists()


def test_what_is_recorded_is_checked(tmp_path: Path, config: RunConfig) -> None:
    weights = np.zeros((4, 2), np.float32)
    with RunWriter.create(tmp_path / "run", config) as writer:
        with pytest.raises(ValueError, match="hidden_weight is float64 in a run in float32"):
            append_snapshot(writer, 0, {"hidden_weight": weights.astype(np.float64)})
        for name in ("../w", "/w", "..", "", ".hidden", "a/b", "a\\b", "a\0b", "x" * 300, "iterations"):
            with pytest.raises(ValueError, match=r"cannot name an array|no parameter can be called"):
                append_snapshot(writer, 0, {name: weights})
        for name in ("a b", "../w", "x" * 300):
            with pytest.raises(ValueError, match="cannot name an array"):
                append_snapshot(writer, 0, {}, {name: 1.0})
        append_snapshot(writer, 0, {"w": weights, "count": np.array([1])}, {"m": [1.0, 2.0]})
        for parameters in ({"w": weights}, {"w": weights[:1], "count": np.array([1])}):
            with pytest.raises(ValueError, match="instead of"):
                append_snapshot(writer, 1, parameters, {"m": [1.0, 2.0]})
        append_snapshot(writer, 1, {"w": weights, "count": np.array([2])}, {"m": [3.0, 4.0]})
        writer.append_losses([0, 2], [1.0, math.inf], [0.0, 0.5])
        with pytest.raises(ValueError, match="instead of"):
            writer.append_losses([3], [1.0])
        with pytest.raises(ValueError, match="different lengths"):
            writer.append_losses([3, 4], [1.0], [1.0, 2.0])
        with pytest.raises(ValueError, match="do not increase"):
            writer.append_losses([4, 4], [1.0, 1.0], [1.0, 2.0])
        writer.append_losses([], [], [])
        writer.finish("diverged", iterations=2, final_loss=math.inf, seconds=0.1, messages=["at iteration 2"], best=1)
    run = load_run(tmp_path / "run")
    assert run.status == "diverged"
    assert math.isnan(run.final_loss)
    assert run.info["final_loss"] is None
    assert (run.info["best"], run.info["messages"]) == (1, ["at iteration 2"])
    assert run.losses.tolist() == [1.0, math.inf]
    assert run.times is not None
    assert run.times.tolist() == [0.0, 0.5]
    assert run.parameters["count"].tolist() == [[1], [2]]
    assert run.measures["m"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert verify_run(tmp_path / "run") == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "disk full while writing .*: what was acknowledged is kept; free space and continue"),
        (errno.EDQUOT, "disk full while writing"),
        (errno.EACCES, "is not writable"),
        (errno.EROFS, "is not writable"),
        (errno.EIO, "cannot write"),
    ],
)
def test_a_failing_disk_is_told(
    tmp_path: Path, config: RunConfig, toy: Any, faults: Any, code: int, message: str
) -> None:
    """Nothing is lost then: tests/training/test_crash_matrix.py."""
    faults.plan(21, "half", code)
    with pytest.raises(RunError, match=message):
        toy.train(tmp_path / "run", config)


def test_a_writer_survives_a_full_disk_that_is_freed(tmp_path: Path, config: RunConfig, toy: Any, faults: Any) -> None:
    with RunWriter.create(tmp_path / "run", config) as writer:
        toy.snapshot(writer, 0)
        for at, when in product(range(8), ("before", "half")):
            faults.plan(at, when, errno.ENOSPC)
            with pytest.raises(RunError, match="disk full"):
                toy.snapshot(writer, 1)
            faults.plan(-1)
            assert load_run(tmp_path / "run").snapshot_iterations.tolist() == [0]
        toy.snapshot(writer, 1)
        writer.finish("interrupted", iterations=1, final_loss=1.0, seconds=1.0)
    assert load_run(tmp_path / "run").snapshot_iterations.tolist() == [0, 1]
    assert verify_run(tmp_path / "run") == []


def test_too_little_room_is_refused_and_what_is_there_counts_as_room(
    tmp_path: Path, finished: Path, unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_space(tmp_path / "not" / "there", 1)
    with pytest.raises(RunError, match=r"needs about 1\.0 PiB, and .* are free .* record less"):
        check_space(tmp_path / "not" / "there", 2**50)
    monkeypatch.setattr(files, "free_bytes", lambda _: 100)
    check_space(finished, 2**50)
    check_space(unfinished, 2000)
    for directory, needed, force in (
        (tmp_path / "new", 2000, False),
        (unfinished, 2**50, False),
        (finished, 2**50, True),
    ):
        with pytest.raises(RunError, match="free space"):
            check_space(directory, needed, force=force)
