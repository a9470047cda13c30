"""Real runs, killed, failing and cut from power at every change of the disk: nothing acknowledged is lost.

By default a few cases of one run; `-m long` takes more, of runs of every kind, and with `-s` prints their numbers.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
    """Return so many of the cases, always the same ones."""
    return random.Random(case).sample(list(cases), min(count, len(cases)))


def sampled(few: Sequence[str], every: Sequence[str]) -> pytest.MarkDecorator:
    """Take ten states of a few runs by default, and forty of every run under `-m long`."""
    more = [pytest.param(case, 40, marks=pytest.mark.long) for case in every]
    return pytest.mark.parametrize(("case", "sample"), [*((case, 10) for case in few), *more])


def check_read(recording: Recording, run: Path, changes: int, what: str) -> None:
    """Assert that a run cut short in a change reads as before or after it; `NotARunError` before the run is there."""
    before, after = recording.moment(changes)
    try:
        losses, snapshots = check_prefix(run, recording.whole)
    except NotARunError:
        # before `run.json` is there, or after --force has deleted it
        assert after.losses == after.snapshots == 0, what
        raise
    assert losses in (before.losses, after.losses), what
    assert snapshots in (before.snapshots, after.snapshots), what


def check_killed(recording: Recording, run: Path, k: int, what: str, disk: Disk) -> str:
    """Read what a kill left, and go on; return how it read."""
    disk.write(run)
    read = "an acknowledged state"
    try:
        check_read(recording, run, k, what)
    except NotARunError:
        read = "no run"
    except CorruptRunError as error:
        # a header torn in its middle: no system does that to so few bytes, yet it is noticed
        change = recording.changes[k]
        said = ("torn" in what, len(change.data), error.file)
        assert said == (True, HEADER_BYTES, run / change.path), what
        read = "a torn header, refused"
    recording.go_on(run)
    check_end(run, recording.whole)
    return read


@sampled(["recorded"], CASES)
def test_a_run_killed_at_every_change(in_memory: Path, case: str, sample: int) -> None:
    recording = record(case, in_memory)
    states = list(each_once(recording, killed(recording.start, recording.changes)))
    reads = Counter(check_killed(recording, in_memory / "run", *state) for state in some(states, sample, case))
    print(f"{case}: {len(recording.changes)} changes, killed at {sample} of {len(states)}: {dict(reads)}")
    assert sum(reads.values()) == sample
    assert reads["an acknowledged state"] > 0


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
    with suppress(NotARunError):
        check_read(recording, run, at, what)
    recording.go_on(run)
    check_end(run, recording.whole)


def faults_of(recording: Recording) -> list[Fault]:
    """Errors at every change: before it, in the middle of a write, after it; once, or from there on."""
    every = list(range(len(recording.changes)))
    halves = [at for at in every if recording.changes[at].name == "write_at"]
    found = [(at, "half", code, False) for at, code in product(halves, (errno.ENOSPC, errno.EIO))]
    found += [(at, "before", code, lasting) for at, code, lasting in product(every, FULL, (False, True))]
    return found + [
        (at, when, errno.EIO, last) for at, when, last in product(every, ("before", "after"), (False, True))
    ]


FULL = (errno.ENOSPC, errno.EDQUOT)
FAILING = [case for case in CASES if case != "interrupted"]  # its signal would come in the way of the failure


@sampled(["recorded"], FAILING)
def test_a_disk_that_fails_at_every_change(in_memory: Path, faults: Faults, case: str, sample: int) -> None:
    recording = record(case, in_memory)
    cases = faults_of(recording)
    for fault in some(cases, sample, case):
        check_failed(recording, in_memory / "run", faults, fault)
    print(f"{case}: {sample} of {len(cases)} failures at {len(recording.changes)} changes")


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


@sampled(["recorded"], ["recorded", "unrecorded", "resumed", "resumed after a signal", "forced", "replicas"])
def test_power_cuts(in_memory: Path, case: str, sample: int) -> None:
    recording = record(case, in_memory)
    states = list(each_once(recording, power_cut(recording.start, recording.changes)))
    chosen = some(states, sample, case)
    reads = Counter(check_cut(recording, in_memory / "run", *state) for state in chosen)
    print(f"{case}: {len(recording.changes)} changes, {len(chosen)} of {len(states)} different disks; {dict(reads)}")
    assert sum(reads.values()) == sample


def test_a_damaged_end_does_not_hide_the_way_out(in_memory: Path) -> None:
    recording, run = record("recorded", in_memory), in_memory / "run"
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
