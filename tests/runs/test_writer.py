from __future__ import annotations

import errno
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from dynamics_cli.runs.store.layout import clear_run
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter
from tests.runs.conftest import append_snapshot
from tests.runs.damage import arrays_of, reseal
from tests.runs.faults import Faults


def test_the_layout_of_a_finished_run(finished: Path, toy: Any) -> None:
    found = sorted(str(p.relative_to(finished)) for p in finished.rglob("*") if p.is_file())
    assert found == [
        "config.yaml",
        "loss_iterations.npy",
        "losses.npy",
        "measures/norm.npy",
        "run.json",
        "trajectory/hidden_weight.npy",
        "trajectory/iterations.npy",
        "trajectory/output_weight.npy",
    ]
    weights = np.load(finished / "trajectory" / "hidden_weight.npy", mmap_mode="r")
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, np.stack([toy.weights(i) for i in toy.snapshots]))
    np.testing.assert_array_equal(
        np.load(finished / "losses.npy"), [toy.loss(i) for i in range(toy.last + 1)]
    )
    info = read_info(finished)
    assert (info["status"], info["hash"], info["dtype"]) == ("complete", "abc", "float32")
    assert (info["rows"]["losses"], info["rows"]["trajectory/hidden_weight"]) == (
        toy.last + 1,
        len(toy.snapshots),
    )
    assert verify_run(finished) == []


def test_a_killed_run_goes_back_to_its_checkpoint(unfinished: Path, toy: Any) -> None:
    writer = RunWriter.reopen(unfinished)
    assert writer.resumed is not None
    assert writer.resumed.meta == {"iteration": 6}
    np.testing.assert_array_equal(writer.resumed.arrays["w"], toy.weights(6))
    assert np.load(unfinished / "losses.npy").shape == (6,)
    assert np.load(unfinished / "trajectory" / "hidden_weight.npy").shape == (3, 4, 2)
    with pytest.raises(ValueError, match=r"5\.\.5 do not increase after 5"):
        writer.append_losses([5], [1.0])
    with pytest.raises(ValueError, match="do not increase after 6"):
        append_snapshot(writer, 6, {})


def test_a_run_without_checkpoint_starts_over(tmp_path: Path, config: RunConfig, toy: Any) -> None:
    run = tmp_path / "run"
    writer = RunWriter.create(run, config)
    toy.snapshot(writer, 0)
    writer.append_losses([0, 1], [1.0, 2.0], times=[0.0, 0.1])
    (run / "trajectory" / ".w.npy.99.tmp").write_text("left by a kill")
    assert Run(run).array_names == []
    writer = RunWriter.reopen(run)
    assert writer.resumed is None
    assert not (run / "trajectory" / ".w.npy.99.tmp").exists()
    toy.train(run, config, resume=True)
    assert verify_run(run) == []
    assert len(Run(run).losses) == toy.last + 1


def test_resuming_where_nothing_is_to_be_resumed(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="complete run: there is nothing to continue"):
        RunWriter.reopen(finished)
    with pytest.raises(RunError, match="does not exist"):
        RunWriter.reopen(tmp_path / "missing")


def test_a_directory_in_use_for_something_is_refused(
    tmp_path: Path, finished: Path, config: RunConfig
) -> None:
    with pytest.raises(UsageError, match="--resume to continue it or --force to start over"):
        RunWriter.create(finished, config)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.yaml").write_text("name: mine\n")
    (foreign / "notes.txt").write_text("mine")
    with pytest.raises(
        UsageError, match=r"is not a run, and holds config\.yaml: dyn will not overwrite it"
    ):
        RunWriter.create(foreign, config)
    with pytest.raises(UsageError, match="is not a run"):
        clear_run(foreign)
    assert (foreign / "config.yaml").read_text() == "name: mine\n"
    (foreign / "config.yaml").unlink()
    RunWriter.create(foreign, config)
    assert (foreign / "notes.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="is a file, not a directory"):
        RunWriter.create(foreign / "notes.txt", config)


def test_force_empties_a_run_and_keeps_the_rest(
    finished: Path, config: RunConfig, toy: Any, tmp_path: Path
) -> None:
    (finished / ".lock").write_text("")
    (finished / "notes.txt").write_text("mine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep.npy").write_text("")
    (finished / "plots").symlink_to(outside)
    shutil.rmtree(finished / "measures")
    (finished / "measures").symlink_to(outside)
    clear_run(finished)
    assert sorted(p.name for p in finished.iterdir()) == [".lock", "notes.txt"]
    assert (outside / "keep.npy").exists()
    clear_run(finished)
    clear_run(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
    toy.train(finished, config)
    assert Run(finished).status == "complete"


def test_a_half_deleted_run_is_ours(finished: Path, config: RunConfig) -> None:
    (finished / "run.json").unlink()
    with pytest.raises(RunError, match="half copied or half deleted"):
        Run(finished)
    RunWriter.create(finished, config)
    assert not arrays_of(finished)


def test_what_is_recorded_is_checked(tmp_path: Path, config: RunConfig) -> None:
    weights = np.zeros((4, 2), np.float32)
    writer = RunWriter.create(tmp_path / "run", config)
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
    writer.finish(
        "diverged",
        iterations=2,
        final_loss=math.inf,
        seconds=0.1,
        messages=["at iteration 2"],
        best=1,
    )
    run = Run(tmp_path / "run")
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


def test_a_writer_survives_a_full_disk_that_is_freed(
    tmp_path: Path, config: RunConfig, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, faults = RunWriter.create(tmp_path / "run", config), Faults(monkeypatch)
    toy.snapshot(writer, 0)
    for at in range(8):
        faults.plan(at, "before", errno.ENOSPC)
        with pytest.raises(RunError, match="disk full"):
            toy.snapshot(writer, 1)
    faults.plan(-1)
    toy.snapshot(writer, 1)
    writer.finish("interrupted", iterations=1, final_loss=1.0, seconds=1.0)
    assert Run(tmp_path / "run").snapshot_iterations.tolist() == [0, 1]
    assert verify_run(tmp_path / "run") == []


STATE = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.array(7),
    "m.0.weight": np.ones((0, 2)),
}
SAVED = Checkpoint(
    STATE,
    {"iteration": 7, "rng": 2**127 + 1, "nan": None, "text": "ü"},
    {"losses": 3},
    {"losses": 7},
)
INFO = {"config_sha256": "0"}


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path, INFO) is None
    save_checkpoint(tmp_path, SAVED, "0")
    found, data = load_checkpoint(tmp_path, INFO), (tmp_path / "checkpoint.npz").read_bytes()
    assert found is not None
    assert (found.meta, found.rows, found.crc32) == (SAVED.meta, SAVED.rows, SAVED.crc32)
    with np.load(tmp_path / "checkpoint.npz", allow_pickle=False) as loaded:
        for name, array in STATE.items():
            assert found.arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(found.arrays[name], array)
            np.testing.assert_array_equal(loaded[name], array)
    save_checkpoint(tmp_path, SAVED, "0")
    assert (tmp_path / "checkpoint.npz").read_bytes() == data
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]


@pytest.mark.parametrize(
    "rows", [{"../x": 1}, {"losses": -1}, {"trajectory/a/b": 1}, {"measures/..": 1}, {"x": 1}, []]
)
def test_rows_name_arrays_of_the_run(rows: Any, tmp_path: Path, finished: Path) -> None:
    """The checksums are right: somebody has made them so."""
    save_checkpoint(tmp_path, Checkpoint({}, {"iteration": 1}, rows, rows), "0")
    with pytest.raises(CorruptRunError, match="its contents are no checkpoint"):
        load_checkpoint(tmp_path, INFO)
    reseal(finished / "run.json", rows=rows, crc32=rows)
    with pytest.raises(CorruptRunError, match="it is not one that dyn writes"):
        Run(finished)
