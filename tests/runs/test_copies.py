"""Copies of a run directory that are made while a process trains the run."""

import os
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import DamageWarning
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from tests.cases import read
from tests.runs.damage import arrays_of
from tests.training.kill_script import end_of, forked

CONFIG = read("""
name: copied
dataset: {kind: points, x: [[-0.5], [2.0], [1.0]], y: [-1, 1, 1]}
architecture: {kind: two_layer, width: 3}
initialization: {kind: balanced, scale: 0.5}
loss: {kind: logistic}
optimizer: {kind: gd, lr: 0.1, iterations: 40}
record: {snapshots: {kind: every, interval: 5}, measures: [train_accuracy]}
""")


def train(directory, **options):
    obtain_run(plan_run(load_config(CONFIG), directory), **options)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """After each seven updates there is a checkpoint."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 7)


@pytest.fixture
def live(in_memory, monkeypatch):
    """A run that another process trains, at its third checkpoint, of iteration 10."""
    asked = os.pipe()
    told = os.pipe()
    checkpoint = RunWriter.checkpoint

    def waiting(writer, state, meta):
        checkpoint(writer, state, meta)
        os.write(told[1], b".")
        os.read(asked[0], 1)

    def work():
        os.close(told[0])
        os.close(asked[1])
        monkeypatch.setattr(RunWriter, "checkpoint", waiting)
        train(in_memory / "run")

    pid = forked(work, in_memory / "said")
    os.close(told[1])
    os.close(asked[0])

    def go_on():
        with suppress(BrokenPipeError):
            os.write(asked[1], b".")
        return os.read(told[0], 1) != b""

    os.read(told[0], 1)
    for _ in range(2):
        go_on()
    yield in_memory / "run", go_on
    while go_on():
        pass
    os.close(asked[1])
    os.close(told[0])
    assert end_of(pid) == 0, (in_memory / "said").read_text()


def files_in_order(run):
    """Return the names of the files of a run in the order of rsync."""
    paths = [path for path in run.rglob("*") if path.is_file() and path.name != ".lock"]
    return sorted(path.relative_to(run).as_posix() for path in paths)


def copy(run, names, to, between=bool):
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (run / name).is_file():  # rsync says that others have vanished
            shutil.copy2(run / name, to / name)
        between()


def check_beginning(copied, whole):
    """The copy reads as the beginning of the whole run, and goes on to its bits."""
    found = Run(copied)
    found.check_all()
    assert found.status == "interrupted"
    for name in found.array_names:
        rows = found._read(name)
        np.testing.assert_array_equal(rows, np.load(whole / f"{name}.npy")[: len(rows)])
    reached = found.iterations
    assert len(found.losses) == reached
    train(copied, resume=True)
    assert arrays_of(copied) == arrays_of(whole)
    assert verify_run(copied) == []
    return reached


def test_a_copy_in_the_order_of_names_opens_and_goes_on(live, in_memory):
    """A checkpoint is written between any two files, and the run ends meanwhile."""
    run, go_on = live
    copy(run, files_in_order(run), in_memory / "copy", go_on)
    assert Run(run).status == "complete"
    assert check_beginning(in_memory / "copy", run) == 15


@pytest.mark.parametrize("checkpoints", [0, 1, 2])
def test_a_copy_in_the_worst_order_opens_or_is_told(checkpoints, live, in_memory):
    """Arrays are copied first; the checkpoint before is of their time unless two came between."""
    run, go_on = live
    copied = in_memory / "copy"
    names = files_in_order(run)
    last = [name for name in names if name.endswith((".npz", ".json", ".yaml"))]
    copy(run, [name for name in names if name not in last], copied)
    for _ in range(checkpoints):
        go_on()
    copy(run, last, copied)
    while go_on():
        pass
    if checkpoints == 0:
        assert check_beginning(copied, run) == 10
    elif checkpoints == 1:
        with pytest.warns(DamageWarning, match="ends before checkpoint.npz, as in a copy of a run"):
            assert Run(copied).iterations == 10
        (fault, *_) = verify_run(copied)
        assert "(the checkpoint before takes its place)" in fault.problem
        with warnings.catch_warnings(action="ignore"):
            assert check_beginning(copied, run) == 10
    else:
        with pytest.raises(CorruptRunError, match="it counts 10 rows instead of 20"):
            Run(copied).check_all()
        assert verify_run(copied)


def test_a_copy_with_the_end_of_the_run_and_earlier_arrays_opens(live, in_memory):
    run, go_on = live
    copied = in_memory / "copy"
    names = files_in_order(run)
    copy(run, [name for name in names if name not in ("run.json", "config.yaml")], copied)
    while go_on():
        pass
    copy(run, ["run.json", "config.yaml"], copied)
    found = Run(copied)
    assert (found.status, found.iterations) == ("interrupted", 10)
    assert "as in a copy of a run that was being written" in found.info["messages"][-1]
    assert [fault.file.name for fault in verify_run(copied)] == ["run.json"]
    check_beginning(copied, run)
