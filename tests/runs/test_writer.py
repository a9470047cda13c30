import errno
import io
import math
import os
import re
import shutil
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.find import runs_below
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter
from tests.runs.conftest import append_snapshot
from tests.runs.damage import contents, reseal
from tests.runs.faults import Faults


def numpy_file():
    """Return an array as NumPy writes it."""
    contents = io.BytesIO()
    np.save(contents, np.arange(3.0))
    return contents.getvalue()


def test_the_layout_of_a_finished_run(finished, toy):
    assert sorted(contents(finished)) == [
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
    assert_array_equal(weights, np.stack([toy.weights(i) for i in toy.snapshots]))
    assert_array_equal(np.load(finished / "losses.npy"), [toy.loss(i) for i in range(toy.last + 1)])
    info = read_info(finished)
    assert (info["status"], info["hash"], info["dtype"]) == ("complete", "abc", "float32")
    assert (info["rows"]["losses"], info["rows"]["trajectory/hidden_weight"]) == (
        toy.last + 1,
        len(toy.snapshots),
    )
    assert verify_run(finished) == []


def test_a_killed_run_goes_back_to_its_checkpoint(unfinished, toy):
    writer = RunWriter.reopen(unfinished)
    assert writer.resumed.meta == {"iteration": 6}
    assert_array_equal(writer.resumed.arrays["w"], toy.weights(6))
    assert np.load(unfinished / "losses.npy").shape == (6,)
    assert np.load(unfinished / "trajectory" / "hidden_weight.npy").shape == (3, 4, 2)
    with pytest.raises(ValueError, match=r"5\.\.5 do not increase after 5"):
        writer.append_losses([5], [1.0])
    with pytest.raises(ValueError, match="do not increase after 6"):
        append_snapshot(writer, 6, {})


def test_a_run_without_checkpoint_starts_over(tmp_path, config, toy):
    run = tmp_path / "run"
    writer = RunWriter.create(run, config)
    toy.snapshot(writer, 0)
    writer.append_losses([0, 1], [1.0, 2.0], times=[0.0, 0.1])
    left = [run / "trajectory/.w.npy.99.tmp", run / "checkpoints/.500.npz.99.tmp"]
    for file in left:
        file.parent.mkdir(exist_ok=True)
        file.write_text("left by a kill")
    assert Run(run).array_names == []
    writer = RunWriter.reopen(run)
    assert writer.resumed is None
    assert not any(file.exists() for file in left)
    toy.train(run, config, resume=True)
    assert verify_run(run) == []
    assert len(Run(run).losses) == toy.last + 1


def test_resuming_where_nothing_is_to_be_resumed(finished, tmp_path):
    with pytest.raises(UsageError, match="complete run: there is nothing to continue"):
        RunWriter.reopen(finished)
    with pytest.raises(RunError, match="does not exist"):
        RunWriter.reopen(tmp_path / "missing")


FOREIGN = {
    "run.json": b'{"status": "mine"}',
    "config.yaml": b"name: mine",
    "losses.npy": numpy_file(),
    "checkpoint.npz": b"PK mine",
    "trajectory/mine.npy": numpy_file(),
    "measures/lab.csv": b"mine",
    "parts/chapter.tex": b"mine",
    "trajectory/.mine.7.tmp": b"mine",
}
"""Files of somebody else under the names of a run."""


@pytest.mark.parametrize("name", FOREIGN)
def test_what_dyn_did_not_write_keeps_a_run_away(config, name, tmp_path):
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(FOREIGN[name])
    for force in (False, True):
        with pytest.raises(UsageError, match=f"{re.escape(name)}, which dyn did not write"):
            RunWriter.create(tmp_path, config, force=force)
        assert contents(tmp_path) == {name: FOREIGN[name]}
    with pytest.raises(UsageError, match="is a file, not a directory"):
        RunWriter.create(file, config)


@pytest.mark.parametrize("state", ["finished", "half copied"])
@pytest.mark.parametrize("kill", [None, "measures", "run.json"])
def test_force_moves_a_run_aside_and_keeps_the_rest(finished, config, toy, state, kill):
    """Every file of it, whoever wrote it, at once or after a kill."""
    if state == "half copied":
        (finished / "run.json").unlink()
        with pytest.raises(RunError, match="half copied, or half deleted"):
            Run(finished)
    for name, mine in FOREIGN.items():
        if "/" in name:
            (finished / name).parent.mkdir(parents=True, exist_ok=True)
            (finished / name).write_bytes(mine)
    before = contents(finished)
    (finished / "notes.txt").write_text("mine")
    (finished.with_name(f"{finished.name}.before-1")).write_text("mine")
    with pytest.raises(UsageError, match="--resume to continue|half copied.*--force moves it"):
        RunWriter.create(finished, config)
    replace = files.replace

    def killed(source, target):
        if source.name == kill:
            raise ZeroDivisionError
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch, suppress(ZeroDivisionError):
        patch.setattr(files, "replace", killed)
        RunWriter.create(finished, config, force=True)
    if kill is not None:
        RunWriter.create(finished, config, force=True)
    assert sorted(contents(finished)) == ["config.yaml", "notes.txt", "run.json"]
    assert contents(finished.with_name(f"{finished.name}.before-2")) == before
    assert [*runs_below(finished.parent)] == [finished]
    toy.train(finished, config, resume=True)
    assert verify_run(finished) == []


def test_nothing_is_written_through_a_link(unfinished, finished, config, tmp_path):
    """A run of somebody else may stand behind it."""
    before = contents(finished)
    shutil.move(unfinished / "losses.npy", tmp_path / "losses.npy")
    for link in (os.symlink, os.link):
        link(tmp_path / "losses.npy", unfinished / "losses.npy")
        with pytest.raises(RunError, match="is a link, and dyn does not|it has hard links"):
            RunWriter.reopen(unfinished)
        (unfinished / "losses.npy").unlink()
    shutil.move(tmp_path / "losses.npy", unfinished / "losses.npy")
    shutil.rmtree(unfinished / "trajectory")
    (unfinished / "trajectory").symlink_to(finished / "trajectory")
    with pytest.raises(UsageError, match="trajectory is a link, and dyn does not write through"):
        RunWriter.reopen(unfinished)
    assert RunWriter.create(unfinished, config, force=True).aside is not None
    assert contents(finished) == before


def test_what_is_recorded_is_checked(tmp_path, config):
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
    assert run.times.tolist() == [0.0, 0.5]
    assert run.parameters["count"].tolist() == [[1], [2]]
    assert run.measures["m"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert verify_run(tmp_path / "run") == []


def test_a_writer_survives_a_full_disk_that_is_freed(tmp_path, config, toy, monkeypatch):
    writer = RunWriter.create(tmp_path / "run", config)
    faults = Faults(monkeypatch)
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
    arrays=STATE,
    meta={"iteration": 7, "rng": 2**127 + 1, "nan": None, "text": "ü"},
    rows={"losses": 3},
    crc32={"losses": 7},
    config_sha256="0",
)
INFO = {"config_sha256": "0"}


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path):
    assert load_checkpoint(tmp_path, INFO) is None
    save_checkpoint(tmp_path, SAVED)
    found = load_checkpoint(tmp_path, INFO)
    data = (tmp_path / "checkpoint.npz").read_bytes()
    assert (found.meta, found.rows, found.crc32) == (SAVED.meta, SAVED.rows, SAVED.crc32)
    with np.load(tmp_path / "checkpoint.npz", allow_pickle=False) as loaded:
        for name, array in STATE.items():
            assert found.arrays[name].dtype == array.dtype
            assert_array_equal(found.arrays[name], array)
            assert_array_equal(loaded[name], array)
    save_checkpoint(tmp_path, SAVED)
    assert (tmp_path / "checkpoint.npz").read_bytes() == data
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.npz", "checkpoint.before.npz"}


@pytest.mark.parametrize(
    "rows", [{"../x": 1}, {"losses": -1}, {"trajectory/a/b": 1}, {"measures/..": 1}, {"x": 1}]
)
def test_rows_name_arrays_of_the_run(rows, tmp_path, finished):
    """The checksums are right: somebody has made them so."""
    made = Checkpoint.model_construct(
        rows=rows, crc32=rows, arrays={}, meta={"iteration": 1}, config_sha256="0"
    )
    save_checkpoint(tmp_path, made)
    with pytest.raises(CorruptRunError, match="its contents are no checkpoint"):
        load_checkpoint(tmp_path, INFO)
    reseal(finished / "run.json", rows=rows, crc32=rows)
    with pytest.raises(CorruptRunError, match="it is not one that dyn writes"):
        Run(finished)
