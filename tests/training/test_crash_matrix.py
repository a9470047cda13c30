"""Real runs, killed, failing and cut from power at every change of the disk: nothing acknowledged is lost.

By default a sample of each matrix; `-m long` takes all of it, and with `-s` prints the numbers of cases.
"""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs import CorruptRunError, NotARunError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from tests.runs.disk import Disk, killed, power_cut
from tests.runs.faults import Faults
from tests.training.crash_runs import CASES, Recording, check_end, check_prefix, record, steady, trainer

State = tuple[int, str, Disk]
HEADER_BYTES = 128


@pytest.fixture(autouse=True)
def same_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: these tests make and delete thousands of files."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def each_once(recording: Recording, states: Iterator[State]) -> Iterator[State]:
    """Leave out what is the same as before, as after a sync: the disk, and what had been acknowledged by then."""
    seen: set[tuple[object, ...]] = set()
    for k, what, disk in states:
        before, after = recording.moment(k)
        key = (disk.digest(), replace(before, changes=0), replace(after, changes=0))
        if key not in seen:
            seen.add(key)
            yield k, what, disk.copy()


def some(cases: Sequence, count: int, case: str) -> list:
    return random.Random(case).sample(list(cases), min(count, len(cases)))


def check_killed(recording: Recording, run: Path, k: int, what: str, disk: Disk) -> str:
    """Read what a kill left, and go on; return how it read."""
    disk.write(run)
    before, after = recording.moment(k)
    read = "an acknowledged state"
    try:
        losses, snapshots = check_prefix(run, recording.whole)
    except NotARunError:
        # before `run.json` is there, or after --force has deleted it
        assert after.losses == after.snapshots == 0, what
        read = "no run"
    except CorruptRunError as error:
        # a header torn in its middle: no system does that to so few bytes, yet it is noticed
        change = recording.changes[k]
        said = ("torn" in what, len(change.data), error.file)
        assert said == (True, HEADER_BYTES, run / change.path), what
        read = "a torn header, refused"
    else:
        assert losses in (before.losses, after.losses), what
        assert snapshots in (before.snapshots, after.snapshots), what
    recording.go_on(run)
    check_end(run, recording.whole)
    return read


def kill_everywhere(case: str, place: Path, sample: int | None) -> Counter[str]:
    recording = record(case, place)
    states = list(each_once(recording, killed(recording.start, recording.changes)))
    chosen = states if sample is None else some(states, sample, case)
    reads = Counter(check_killed(recording, place / "run", *state) for state in chosen)
    everything = 1 + len(recording.changes) + sum(len(c.data) > 0 for c in recording.changes)
    print(f"{case}: {len(recording.changes)} changes, {everything} kills and more by the byte; {dict(reads)}")
    return reads


@pytest.mark.parametrize("case", CASES)
def test_a_run_killed_at_some_changes(place: Path, case: str) -> None:
    reads = kill_everywhere(case, place, sample=7)
    assert reads["an acknowledged state"] > 0


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_run_killed_at_every_change(place: Path, case: str) -> None:
    reads = kill_everywhere(case, place, sample=None)
    assert sum(reads.values()) > 130
    assert reads["an acknowledged state"] > 0.6 * sum(reads.values())


Fault = tuple[int, str, int, bool]


def check_failed(recording: Recording, run: Path, faults: Faults, fault: Fault) -> None:
    """Let the disk fail at one change of a run; then mend it and go on."""
    at, when, code, lasting = fault
    what = f"{recording.case}: {errno.errorcode[code]} {when} change {at} {recording.changes[at]}, lasting: {lasting}"
    recording.start.write(run)
    faults.plan(at, when, code, lasting)
    with pytest.raises(RunError) as caught:
        recording.train(run)
    faults.plan(-1)
    message = str(caught.value)
    assert caught.value.exit_code == 7
    assert "\n" not in message
    assert "--resume" in message or "same command" in message, what
    assert ("disk full" if code != errno.EIO else "cannot write") in message, what
    before, after = recording.moment(at)
    try:
        losses, snapshots = check_prefix(run, recording.whole)
    except NotARunError:
        assert after.losses == after.snapshots == 0, what
    else:
        assert losses in (before.losses, after.losses), what
        assert snapshots in (before.snapshots, after.snapshots), what
    recording.go_on(run)
    check_end(run, recording.whole)


def faults_of(recording: Recording) -> list[Fault]:
    """Every error at every change: before it, in the middle of a write, after it; once, or from there on.

    A full disk fails before it does something, or in its middle; the full product is taken of some cases only.
    """
    every = list(range(len(recording.changes)))
    halves = [at for at in every if recording.changes[at].name == "write_at"]
    found = [(at, when, errno.ENOSPC, True) for when, ats in (("before", every), ("half", halves)) for at in ats]
    if recording.case in THOROUGH:
        found += [(at, "half", code, False) for at, code in product(halves, (errno.ENOSPC, errno.EIO))]
        found += [(at, "before", code, False) for at, code in product(every, (errno.ENOSPC, errno.EDQUOT))]
        found += [(at, when, errno.EIO, last) for at, when, last in product(every, ("before", "after"), (False, True))]
    return found


def fail_everywhere(case: str, place: Path, faults: Faults, sample: int | None) -> int:
    recording = record(case, place)
    cases = faults_of(recording)
    chosen = cases if sample is None else some(cases, sample, case)
    for fault in chosen:
        check_failed(recording, place / "run", faults, fault)
    print(f"{case}: {len(chosen)} of {len(cases)} failures at {len(recording.changes)} changes")
    return len(chosen)


THOROUGH = ("recorded", "resumed", "replicas", "forced")
FAILING = [case for case in CASES if case != "interrupted"]  # its signal would come in the way of the failure


@pytest.mark.parametrize("case", THOROUGH)
def test_a_disk_that_fails_at_some_changes(place: Path, faults: Faults, case: str) -> None:
    assert fail_everywhere(case, place, faults, sample=8) == 8


@pytest.mark.long
@pytest.mark.parametrize("case", FAILING)
def test_a_disk_that_fails_at_every_change(place: Path, faults: Faults, case: str) -> None:
    assert fail_everywhere(case, place, faults, sample=None) > 140


@pytest.fixture
def faults(same_chunks: None, monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def check_cut(recording: Recording, run: Path, k: int, what: str, disk: Disk) -> str:
    """Read what a power cut left, and go on; return how it read."""
    disk.write(run)
    before, _ = recording.moment(k)
    promised, message = before.checkpoint, str(run)
    try:
        losses, snapshots = check_prefix(run, recording.whole)
    except NotARunError:
        read = "no run"
    except CorruptRunError as error:
        read = "refused"
        message = str(error)
    else:
        read = f"{'all' if (losses, snapshots) == (before.losses, before.snapshots) else 'part'} of what was recorded"
    assert str(run) in message, what
    kept = load_checkpoint(run) if files.exists(run / "run.json") and read != "refused" else None
    if promised and before.finished is False and recording.case != "forced":
        assert read != "no run", what
        assert kept is None or kept.meta["iteration"] >= promised, what
    recording.go_on(run)
    check_end(run, recording.whole)
    return read


def cut_everywhere(case: str, place: Path, sample: int | None) -> Counter[str]:
    recording = record(case, place)
    states = list(each_once(recording, power_cut(recording.start, recording.changes)))
    chosen = states if sample is None else some(states, sample, case)
    reads = Counter(check_cut(recording, place / "run", *state) for state in chosen)
    print(f"{case}: {len(recording.changes)} changes, {len(chosen)} of {len(states)} different disks; {dict(reads)}")
    return reads


@pytest.mark.parametrize("case", ["recorded", "resumed"])
def test_some_power_cuts(place: Path, case: str) -> None:
    assert sum(cut_everywhere(case, place, sample=20).values()) == 20


def test_a_damaged_end_does_not_hide_the_way_out(place: Path) -> None:
    recording, run = record("recorded", place), place / "run"
    half = recording.start.copy()
    unsaved = next(moment for moment in recording.moments if moment.losses > moment.checkpoint + 1 > 1)
    for change in recording.changes[: unsaved.changes]:
        half.apply(change)
    half.write(run)
    (run / "losses.npy").write_bytes((run / "losses.npy").read_bytes()[:-4])
    with pytest.raises(UsageError, match=r"unfinished run \(.*losses.npy is damaged: .*--resume continues it"):
        trainer("recorded")(run, resume=False)
    recording.go_on(run)
    check_end(run, recording.whole)


@pytest.mark.long
@pytest.mark.parametrize("case", ["recorded", "unrecorded", "resumed", "resumed after a signal", "forced", "replicas"])
def test_power_cuts(place: Path, case: str) -> None:
    assert sum(cut_everywhere(case, place, sample=None).values()) > 400
