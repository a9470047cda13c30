"""Attacks on the store: nothing is lost unnoticed, and no wrong number is read.

By default a sample; `-m long` makes all of them, and `-s` prints how many there were and how each
ended.
"""

import errno
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli import api
from dynamics_cli.config import load_config
from dynamics_cli.errors import DamageWarning, DynError, RunError
from dynamics_cli.runs.errors import CorruptRunError, NotARunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from tests.cases import read
from tests.runs.damage import DAMAGES, arrays_of, damaged, flip
from tests.runs.faults import CHANGING, Disk, Faults, PowerCut
from tests.training import kill_script
from tests.training.kill_script import end_of, forked

CONFIG = read("""
name: bits
dataset: {kind: points, x: [[-0.5], [2.0], [1.0]], y: [-1, 1, 1], append_bias: true}
architecture: {kind: two_layer, width: 3}
initialization: {kind: balanced, scale: 0.5}
loss: {kind: logistic}
optimizer: {kind: gd, lr: 0.1, iterations: 40, loss_scaled: true}
record:
  snapshots: {kind: every, interval: 10}
  measures: [train_accuracy]
""")


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing is written after it."""


def train(directory, seed=0, *, killed=False, **options):
    def progress(reached, loss):
        if killed and reached >= 25:
            raise Killed

    with suppress(Killed):
        obtain_run(
            plan_run(load_config(CONFIG, seed=seed), directory), progress=progress, **options
        )


@pytest.fixture(autouse=True, scope="module")
def often():
    """Chunks do not depend on the clock, and after each of them there is a checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(loop, "HELD_SECONDS", -1.0)
        patch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 7)
        yield


@pytest.fixture(scope="module")
def runs(often, tmp_path_factory):
    """By state a real run, and in `<state>-other` one with another seed."""
    folder = tmp_path_factory.mktemp("bits")
    for state in ("complete", "killed"):
        train(folder / state, killed=state == "killed")
        train(folder / f"{state}-other", 1, killed=state == "killed")
    return {path.name: path for path in folder.iterdir()}


def go_on(run, whole):
    """Resume a run, which then has the bits of the whole one."""
    train(run, resume=True)
    assert arrays_of(run) == arrays_of(whole)
    assert verify_run(run) == []
    assert list(run.rglob("*.tmp")) == []


def check_beginning(run, whole):
    """A run that has ended too early reads as the beginning of the whole one."""
    found = Run(run)
    expected = Run(whole)
    found.check_all()
    for name in found.array_names:
        array = np.load(run / f"{name}.npy")
        assert_array_equal(
            found._read(name), np.load(whole / f"{name}.npy")[: len(found._read(name))]
        )
        assert len(array) >= len(found._read(name))  # NumPy alone reads these rows, or more
    assert found.iterations <= expected.iterations


# Kills.


@pytest.mark.parametrize(
    ("kills", "names"),
    [
        (1, ["compiled", "autograd", "adam", "gan"]),
        pytest.param(13, [*kill_script.RUNS], marks=pytest.mark.long),
    ],
)
def test_kills(tmp_path, kills, names):
    """Steppers, killed by SIGKILL at random moments, go on to the bits of an uninterrupted run."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, kill_script.__file__, str(tmp_path), str(kills), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    print(f"{sum(counts.values())} kills: {counts}")
    assert counts.keys() == set(names)
    assert min(counts.values()) >= kills


# Failing disks and power cuts.


def sampled(cases, sample):
    return cases if sample is None else random.Random(0).sample(cases, sample)


FAILURES = [
    ("before", errno.ENOSPC),
    ("before", errno.EIO),
    ("before", errno.EROFS),
    ("half", errno.ENOSPC),
    ("after", errno.EIO),
]
some = pytest.mark.parametrize("sample", [25, pytest.param(None, marks=pytest.mark.long)])


@some
def test_every_change_fails_once(in_memory, runs, monkeypatch, sample):
    faults = Faults(monkeypatch)
    train(in_memory / "counted")
    names = list(faults.changes)
    assert set(names) <= set(CHANGING)
    cases = [
        (at, *how)
        for at in range(len(names))
        for how in FAILURES
        if how[0] != "half" or names[at] == "write_at"
    ]
    ends = Counter()
    for at, when, code in sampled(cases, sample):
        run = in_memory / "run"
        faults.plan(at, when, code)
        with pytest.raises(
            RunError, match=r"disk full while writing|cannot write|continue with --resume"
        ) as caught:
            train(run)
        assert (caught.value.exit_code, str(caught.value).count("\n")) == (7, 0)
        faults.plan(-1)
        try:
            check_beginning(run, runs["complete"])
            ends[Run(run).status] += 1
        except NotARunError:
            ends["not begun"] += 1
        go_on(run, runs["complete"])
        shutil.rmtree(run)
    print(
        f"{sum(ends.values())} failures at {len(names)} changes; read before going on: {dict(ends)}"
    )
    assert ends["interrupted"] > len(cases) / 2 or sample


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.long)])
def test_power_cuts(in_memory, runs, monkeypatch, step):
    """The power is cut at a change, and everything is lost that was not synced."""
    reached = Counter()
    cut_at = 0
    saved = []
    checkpoint = RunWriter.checkpoint

    def noted(writer, state, meta):
        checkpoint(writer, state, meta)
        saved.append(meta["iteration"])

    monkeypatch.setattr(RunWriter, "checkpoint", noted)
    while True:
        run = in_memory / "run"
        left = in_memory / "left"
        saved.clear()
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, cut_at)
            try:
                train(run)
                break
            except PowerCut:
                pass
        disk.write(run, left)
        with suppress(NotARunError):
            check_beginning(left, runs["complete"])
            last = Run(left).iterations
            assert last >= max(saved, default=0)
            reached[last] += 1
        go_on(left, runs["complete"])
        shutil.rmtree(run)
        shutil.rmtree(left)
        cut_at += step
    print(
        f"{cut_at // step} power cuts; iteration to which the run was safe -> cuts: {dict(reached)}"
    )
    assert len(reached) >= 5


@pytest.mark.parametrize("size", [0, 700, 3000])
def test_files_that_may_not_grow(in_memory, size):
    """Nothing fits, all but `run.json`, all but the losses."""
    config = load_config(CONFIG, ["optimizer.iterations=600", "optimizer.loss_scaled=false"])
    whole = obtain_run(plan_run(config, in_memory / "whole")).run
    run = in_memory / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(RunError, match=r"disk full while writing.*ontinue with --resume"):
            obtain_run(plan_run(config, run))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    obtain_run(plan_run(config, run), resume=True)
    assert arrays_of(run) == arrays_of(whole.path)


def replaced(run, elsewhere):
    run.rename(elsewhere)
    shutil.copytree(elsewhere, run)


@pytest.mark.parametrize(
    ("action", "left", "reached"),
    [
        (lambda run, elsewhere: shutil.rmtree(run), "run", 30),
        (lambda run, elsewhere: run.rename(elsewhere), "elsewhere", 1),
        (replaced, "run", 30),
    ],
    ids=["deleted", "moved", "replaced"],
)
def test_a_directory_that_vanishes(
    in_memory,
    runs,
    monkeypatch,
    action,
    left,
    reached,
):
    advance = loop.TrainingLoop._advance
    todo = [action]

    def advanced(self, chunk):
        result = advance(self, chunk)
        if todo and self.stepper.iteration >= reached:
            todo.pop()(in_memory / "run", in_memory / "elsewhere")
        return result

    monkeypatch.setattr(loop.TrainingLoop, "_advance", advanced)
    gone = r"is gone: was its directory deleted or moved\?.*ontinue with --resume"
    with pytest.raises(RunError, match=gone):
        train(in_memory / "run")
    go_on(in_memory / left, runs["complete"])


def test_a_directory_made_read_only(in_memory, runs):
    run = in_memory / "run"
    run.mkdir()
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    if nobody == 65534:
        for folder in (in_memory, run):
            os.chown(folder, nobody, nobody)

    def as_nobody():
        os.setuid(nobody)
        plan = plan_run(load_config(CONFIG), run)
        with pytest.raises(
            RunError,
            match=(
                r"cannot write .*Permission denied; what was saved is kept; continue with --resume"
            ),
        ):
            obtain_run(plan, progress=lambda reached, loss: run.chmod(0o500))
        check_beginning(run, runs["complete"])
        run.chmod(0o700)

    runs["complete"].parent.chmod(0o755)
    shutil.copytree(runs["complete"], in_memory / "whole")
    runs = {"complete": in_memory / "whole"}
    assert end_of(forked(as_nobody, in_memory / "said")) == 0, (in_memory / "said").read_text()
    go_on(run, runs["complete"])


def test_what_is_finished_is_reused_where_nothing_can_be_written(in_memory, tmp_path, runs):
    run = shutil.copytree(runs["complete"], in_memory / "run")
    swept = in_memory / "sweep"
    (run / ".lock").unlink(missing_ok=True)
    api.sweep(CONFIG, ["seed=0,1"], out=swept)
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    folders = [path for path in in_memory.rglob("*") if path.is_dir()]
    for folder in (in_memory, *folders):
        folder.chmod(0o555)

    def as_nobody():
        os.setuid(nobody)
        assert obtain_run(plan_run(load_config(CONFIG), run)).reused
        assert obtain_run(plan_run(load_config(CONFIG), run), resume=True).reused
        assert len(api.sweep(CONFIG, ["seed=0,1"], out=swept).rows) == 2
        with pytest.raises(RunError, match=r"cannot write .*Permission denied"):
            obtain_run(plan_run(load_config(CONFIG), run), force=True)

    said = tmp_path / "said"
    try:
        assert end_of(forked(as_nobody, said)) == 0, said.read_text()
    finally:
        for folder in (in_memory, *folders):
            folder.chmod(0o755)


# Damaged files.

SUM = "it does not fit its checksum"
JSON = "it is not valid JSON"
EDITED = "it is not the config with which the run"
HEADER = "its header is not one that dyn writes"
READ = "it cannot be read"
ROWS = "its rows do not fit their checksum"
TOLD = {  # damage -> message of verify about run.json, config.yaml, a checkpoint, an array
    "a bit of the contents": (SUM, EDITED, SUM, ROWS),
    "a bit of the header": (SUM, EDITED, SUM, HEADER),
    "cut in half": (JSON, EDITED, SUM, f"{HEADER}|it ends before row"),
    "empty": (JSON, EDITED, SUM, HEADER),
    "a byte more": (JSON, EDITED, SUM, "it is longer than it was when the run ended"),
    "deleted": ("has no run.json: it was half copied, or half deleted", READ, "it is gone", READ),
    "of another run": ("", EDITED, "it belongs to another run", ROWS),
    "a directory": (READ, READ, READ, READ),
    "a pipe": (READ, READ, READ, f"{READ}|{HEADER}"),
}


def files_of(run):
    found = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name != ".lock"]
    checkpoints = 2 * (run.name == "killed")  # the last one, and the one before
    assert len(found) == 2 + 7 + checkpoints  # run.json, config.yaml, arrays
    return found


def same_in_both(file, other):
    """Whether runs of other seeds have equal arrays: of iterations, or accuracies."""
    return file.suffix == ".npy" and np.array_equal(np.load(file), np.load(other))


def read(directory):
    """Everything that a figure or a table may be made of."""
    run = Run(directory)
    run.check_all()
    found = {
        "hash": run.hash,
        "final_loss": repr(run.final_loss),
        "config": run.config.model_dump_json(),
    }
    found |= {"losses": run.losses, "loss_iterations": run.loss_iterations, "times": run.times}
    return found | {"snapshots": run.snapshot_iterations, **run.parameters, **run.measures}


def attempt(work):
    """Return what some work gives, or the error of which a user is told."""
    try:
        return work()
    except DynError as error:
        return error


def outcome(run, file, expected):
    """Read a damaged run: it is `refused` in a message that names the file, or has the numbers of
    before.

    In place of the last checkpoint the one before it is read, which counts fewer rows, and is told.
    """
    with warnings.catch_warnings(record=True, action="always") as said:
        found = attempt(lambda: read(run))
    if file.name == layout.CHECKPOINT:
        assert not isinstance(found, DynError)
        assert [file.name in str(one.message) for one in said] == [True] * file.exists()
        losses = expected["losses"][: len(found["losses"])]
        assert_array_equal(found["losses"], losses)
        return "the checkpoint before"
    assert not said
    if isinstance(found, DynError):
        assert file.name in str(found)
        return "refused"
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert_array_equal(found[key], value, err_msg=f"{file}: other numbers, unnoticed")
    return "not needed"


@pytest.mark.parametrize("state", ["complete", "killed"])
@pytest.mark.parametrize("damage", TOLD)
def test_a_damaged_file_is_told(runs, state, damage):
    run = runs[state]
    counts = Counter()
    expected = read(run)
    for file in files_of(run):
        kind = {"run.json": 0, "config.yaml": 1}.get(file.name, 2 if file.suffix == ".npz" else 3)
        told = TOLD[damage][kind]
        other = runs[f"{state}-other"] / file.relative_to(run)
        if (damage, kind) == ("deleted", 2):
            told = ""  # as after a kill while the next one was written: the other one is there
        if kind == 3 and (
            (damage, state) == ("a byte more", "killed")
            or (damage == "of another run" and same_in_both(file, other))
        ):
            told = ""  # behind the rows that count; or no other number
        with damaged(file, damage, other):
            found = verify_run(run)
            if told:
                (one,) = found
                assert one.file in (file, run if (damage, kind) == ("deleted", 0) else file)
                assert re.search(told, one.problem), (file, one.problem)
            else:  # of another run's run.json, the other files are not its own
                assert bool(found) == (kind == 0)
            counts[outcome(run, file, expected)] += 1
    print(f"{state}, {damage}: {dict(counts)}")
    assert counts["refused"] >= 2
    assert verify_run(run) == []


@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=pytest.mark.long)])
def test_a_flipped_bit_is_told(runs, count):
    rng = random.Random(0)
    counts = Counter()
    expected = {state: read(runs[state]) for state in ("complete", "killed")}
    for _ in range(count):
        state = rng.choice(["complete", "killed"])
        file = rng.choice(files_of(runs[state]))
        data = file.read_bytes()
        at = rng.randrange(len(data))
        file.write_bytes(flip(data, at, rng.randrange(8)))
        try:
            found = [one.file for one in verify_run(runs[state])]
            end = outcome(runs[state], file, expected[state])
            if (found, end, state, file.suffix) == ([], "not needed", "killed", ".npy"):
                end = "behind the checkpoint"  # a row, or the number of rows that NumPy alone reads
                assert at > 60
            else:
                assert found == [file], f"{file}: byte {at}"
            counts[end] += 1
        finally:
            file.write_bytes(data)
    print(f"{count} flipped bits: {dict(counts)}")
    assert counts["refused"] > 0.8 * count


def test_a_damaged_run_resumes_to_the_same_bits_or_not_at_all(runs, tmp_path):
    counts = Counter()
    run = tmp_path / "run"
    for file in files_of(runs["killed"]):
        name = file.relative_to(runs["killed"])
        for damage in (
            "a bit of the contents",
            "cut in half",
            "a byte more",
            "deleted",
            "of another run",
        ):
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(runs["killed"], run)
            contents = DAMAGES[damage](file.read_bytes(), runs["killed-other"] / name)
            (run / name).unlink() if contents is None else (run / name).write_bytes(contents)
            with warnings.catch_warnings(action="ignore", category=DamageWarning):
                refused = attempt(lambda: train(run, resume=True))
            assert refused is None or not file.name.startswith("checkpoint"), (name, damage)
            if refused is not None:
                assert any(part in str(refused) for part in (file.name, str(run)))
                counts["refused"] += 1
                continue
            assert arrays_of(run) == arrays_of(runs["complete"]), (name, damage)
            assert verify_run(run) == []
            assert not [*run.glob("checkpoint*")]
            counts["the same bits"] += 1
    print(f"resumed: {dict(counts)}")
    assert min(counts.values()) >= 9


def test_arrays_of_another_run(runs, tmp_path):
    """Of a complete run all arrays are exchanged; of a killed run its checkpoint too, which
    counts their rows.
    """
    for state, what in (("complete", ROWS), ("killed", "it belongs to another run")):
        run = shutil.copytree(runs[state], tmp_path / state)
        for file in files_of(runs[state])[:]:
            if file.suffix != ".json" and file.name != "config.yaml":
                shutil.copy(
                    runs[f"{state}-other"] / file.relative_to(runs[state]),
                    run / file.relative_to(runs[state]),
                )
        assert what in {found.problem.partition(" (")[0] for found in verify_run(run)}
        with pytest.raises(CorruptRunError, match=what):
            read(run)
        with pytest.raises(CorruptRunError, match=what):
            train(run, resume=True)


def test_nothing_but_the_checkpoint_counts_rows(runs, tmp_path):
    run = shutil.copytree(runs["killed"], tmp_path / "run")
    assert Run(run).iterations > 0
    for name in (layout.CHECKPOINT, layout.CHECKPOINT_BEFORE):
        (run / name).unlink()
    with pytest.raises(CorruptRunError, match="it is gone"):
        train(run, resume=True)
    train(run, force=True)
    assert arrays_of(run) == arrays_of(runs["complete"])


# Several processes.


def test_writers_of_one_run_take_turns(in_memory, runs):
    run = in_memory / "run"
    pids = [forked(lambda: train(run), in_memory / f"said-{k}") for k in range(4)]
    assert [end_of(pid) for pid in pids] == [0] * 4, [
        path.read_text() for path in in_memory.glob("said-*")
    ]
    assert arrays_of(run) == arrays_of(runs["complete"])
    assert "resumptions" not in Run(run).info  # the first trains, the others take its run
