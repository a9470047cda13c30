"""Bad bits: whatever happens to one file of a run, reading tells which file it is, or gives what was acknowledged.

By default a sample of each matrix; `-m long` takes all of it, and with `-s` prints the numbers of cases.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError
from dynamics_cli.runs import Finding, load_run, verify_run
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted

from .damage import arrays_of, damaged, damages, directory_instead

CONFIG = {
    "name": "bits",
    "dataset": {"kind": "points", "x": [[-0.5], [2.0], [1.0]], "y": [-1, 1, 1], "append_bias": True},
    "architecture": {"kind": "two_layer", "width": 3},
    "initialization": {"kind": "balanced", "scale": 0.5},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 40, "loss_scaled": True},  # which has times of its own
    "record": {"snapshots": {"kind": "every", "interval": 10}, "measures": ["train_accuracy"]},
}
STATES = ("complete", "interrupted", "killed")
Numbers = dict[str, Any]
T = TypeVar("T")


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing is written after it."""


def train(directory: Path, state: str, seed: int = 0) -> None:
    def progress(reached: int, loss: float) -> None:
        if reached < 25:
            return
        if state == "killed":
            raise Killed
        os.kill(os.getpid(), signal.SIGINT)

    plan = plan_run(load_config(CONFIG, seed=seed), directory)
    if state == "complete":
        obtain_run(plan)
        return
    with pytest.raises(Killed if state == "killed" else Interrupted):
        obtain_run(plan, progress=progress)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By state a real run, and in `<state>-other` one with another seed."""
    folder = tmp_path_factory.mktemp("bits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 3)
        for state in STATES:
            train(folder / state, state)
            train(folder / f"{state}-other", state, seed=1)
    return {path.name: path for path in folder.iterdir()}


def files_of(run: Path) -> list[Path]:
    return [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in ("lock", "lock.json")]


def read(directory: Path) -> Numbers:
    """Everything that a figure or a table may be made of."""
    run = load_run(directory)
    run.check_all()
    found: Numbers = {"hash": run.hash, "final_loss": repr(run.final_loss), "config": run.config.model_dump_json()}
    found |= {"losses": run.losses, "loss_iterations": run.loss_iterations, "times": run.times}
    found |= {"snapshots": run.snapshot_iterations, **run.parameters, **run.measures}
    return found


def attempt(work: Callable[[], T]) -> T | DynError:
    """Return what some work gives, or the error of which a user is told."""
    try:
        return work()
    except DynError as error:
        return error


def check_same(found: Numbers, expected: Numbers, *, prefix: bool) -> None:
    """Assert that the numbers are the expected ones; with `prefix`, those of an earlier state."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if not isinstance(value, np.ndarray):
            assert found[key] == value, key
            continue
        assert prefix or len(found[key]) == len(value), key
        np.testing.assert_array_equal(found[key], value[: len(found[key])], err_msg=key)


def outcome(run: Path, file: Path, expected: Numbers, case: str) -> str:
    """Read a damaged run and return how it went: `refused`, `unneeded` (of no use for reading), or `earlier`."""
    findings = verify_run(run)
    tail = "more" in case and run.name == "killed" and file.suffix == ".npy"  # dropped by design
    assert tail or findings, f"{case}: dyn verify finds nothing"
    told = [is_told(finding, file, run) for finding in findings]
    # nothing fits the run.json of another run
    assert any(told) if file.name == "run.json" and findings else all(told), f"{case}: {findings}"
    found = attempt(lambda: read(run))
    if isinstance(found, DynError):
        assert file.name in str(found), f"{case}: {found}"
        return "refused"
    try:
        check_same(found, expected, prefix=run.name == "killed")
    except AssertionError as error:
        raise AssertionError(f"{case}: other numbers, unnoticed") from error
    if not tail and file.suffix != ".npz":
        assert case.endswith("flipped"), f"{case}: nothing is noticed"
        return "earlier"
    return "unneeded"


def is_told(finding: Finding, file: Path, run: Path) -> bool:
    """Whether a finding speaks of the file: by its name, or of the run whose `run.json` is gone."""
    if file.name == "run.json" and finding.file == run:
        return True
    return finding.file.name == file.name or file.name in finding.problem


def matrix(runs: dict[str, Path], state: str, *, full: bool) -> Counter[str]:
    """Damage every file of a run in every way; return how many cases ended how."""
    run, counts = runs[state], Counter[str]()
    expected = read(run)
    assert verify_run(run) == []
    files = files_of(run)
    assert len(files) == 2 + 7 + 2  # run.json, config.yaml, arrays, checkpoints
    for file in files:
        other = runs[f"{state}-other"] / file.relative_to(run)
        for what, contents in damages(file, other, full=full):
            with damaged(file, contents):
                if what == "deleted" and file.suffix == ".npz":
                    continue  # an older checkpoint, or none, is a state that a run may be in
                counts[outcome(run, file, expected, f"{state}: {file.relative_to(run)}: {what}")] += 1
        with directory_instead(file):
            counts[outcome(run, file, expected, f"{state}: {file.relative_to(run)}: a directory instead")] += 1
    check_same(read(run), expected, prefix=False)
    return counts


def sampled(some: Sequence[str], every: Sequence[str]) -> pytest.MarkDecorator:
    """Take a sample of the damages of some states by default, and all of those of every state under `-m long`."""
    whole = [pytest.param(state, True, marks=pytest.mark.long) for state in every]
    return pytest.mark.parametrize(("state", "full"), [*((state, False) for state in some), *whole])


@sampled(["complete", "killed"], STATES)
def test_a_damaged_file_is_told_or_does_no_harm(runs: dict[str, Path], state: str, full: bool) -> None:
    counts = matrix(runs, state, full=full)
    print(f"{state}: {sum(counts.values())} cases, {dict(counts)}")
    assert counts["refused"] > (3000 if full else 100)
    assert full or counts["earlier"] <= 3


@pytest.mark.parametrize("resume", [False, True])
def test_a_flipped_bit_of_a_finished_run_is_told_when_it_is_reused(
    runs: dict[str, Path], tmp_path: Path, resume: bool
) -> None:
    run = shutil.copytree(runs["complete"], tmp_path / "run")
    data = bytearray((run / "losses.npy").read_bytes())
    data[-5] ^= 1
    (run / "losses.npy").write_bytes(data)
    with pytest.raises(DynError, match=r"losses\.npy is damaged.*--force trains the run again"):
        obtain_run(plan_run(load_config(CONFIG), run), resume=resume)


@sampled(STATES[1:], STATES[1:])
def test_a_damaged_run_resumes_to_the_same_bits_or_not_at_all(
    runs: dict[str, Path], state: str, full: bool, tmp_path: Path
) -> None:
    """Each ends as an uninterrupted one, or says which file is damaged."""
    counts = Counter[str]()
    plan_of = load_config(CONFIG)
    whole = arrays_of(runs["complete"])
    for file in files_of(runs[state]):
        name = file.relative_to(runs[state])
        cases = list(damages(file, runs[f"{state}-other"] / name, full=False))
        for what, contents in cases if full else cases[:: max(1, len(cases) // 3)]:
            run = tmp_path / "run"
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(runs[state], run)
            (run / name).unlink() if contents is None else (run / name).write_bytes(contents)
            case = f"{state}: {name}: {what}"
            obtained = attempt(lambda run=run: obtain_run(plan_run(plan_of, run), resume=True))
            if isinstance(obtained, DynError):
                assert any(name in str(obtained) for name in (file.name, str(run))), f"{case}: {obtained}"
                counts["refused"] += 1
                continue
            assert arrays_of(run) == whole, case
            assert [f for f in verify_run(run) if f.file.suffix != ".npz"] == [], case
            counts["same bits"] += 1
    print(f"{state}: {sum(counts.values())} resumptions, {dict(counts)}")
    assert full or counts["refused"] > 20
    assert counts["same bits"] > (40 if full else 5)
