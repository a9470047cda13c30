"""Damaged files of a run: reading tells which file it is, or gives what was acknowledged; never other numbers.

`pytest -s` prints how many files were damaged, and how it was noticed; `-m long` flips more bits.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError
from dynamics_cli.runs import CorruptRunError, list_runs, load_run, verify_run
from dynamics_cli.runs.info import RunInfo, read_info
from dynamics_cli.runs.store.arrays import ArrayWriter, Header, crc_of_text
from dynamics_cli.runs.store.checkpoints import read_checkpoint, save_checkpoint
from dynamics_cli.runs.store.sealed import check_entries
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run

from .damage import DAMAGES, arrays_of, damaged, flip, reseal

CONFIG = {
    "name": "bits",
    "dataset": {"kind": "points", "x": [[-0.5], [2.0], [1.0]], "y": [-1, 1, 1], "append_bias": True},
    "architecture": {"kind": "two_layer", "width": 3},
    "initialization": {"kind": "balanced", "scale": 0.5},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 40, "loss_scaled": True},  # which has times of its own
    "record": {"snapshots": {"kind": "every", "interval": 10}, "measures": ["train_accuracy"]},
}
STATES = ("complete", "killed")
SUM, JSON, EDITED = "it does not fit its checksum", "it is not valid JSON", "it is not the config with which the run"
HEADER, READ, OTHER = "its header is not one that dyn writes", "it cannot be read", "it belongs to another run"
TOLD = {  # damage -> message of verify about run.json, config.yaml, a checkpoint, an array
    "a bit of the contents": (SUM, EDITED, SUM, "its rows do not fit their checksum"),
    "a bit of the header": (SUM, EDITED, SUM, HEADER),
    "cut in half": (JSON, EDITED, SUM, f"{HEADER}|it ends before row"),
    "empty": (JSON, EDITED, SUM, HEADER),
    "a byte more": (JSON, EDITED, SUM, "it is longer than it was when the run ended"),
    "deleted": ("has no run.json: it was half copied or half deleted", READ, "", READ),
    "of another run": ("", EDITED, OTHER, OTHER),
    "a directory": (READ, READ, READ, READ),
    "a pipe": (READ, READ, READ, READ),
}
Numbers = dict[str, Any]
T = TypeVar("T")


class Killed(BaseException):
    """Ends a training as SIGKILL does: nothing is written after it."""


def train(directory: Path, state: str, seed: int) -> None:
    def progress(reached: int, loss: float) -> None:
        if state == "killed" and reached >= 25:
            raise Killed

    plan = plan_run(load_config(CONFIG, seed=seed), directory)
    if state == "complete":
        obtain_run(plan)
        return
    with pytest.raises(Killed):
        obtain_run(plan, progress=progress)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By state a real run, and in `<state>-other` one with another seed."""
    folder = tmp_path_factory.mktemp("bits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 3)
        for state in STATES:
            train(folder / state, state, 0)
            train(folder / f"{state}-other", state, 1)
    return {path.name: path for path in folder.iterdir()}


def files_of(run: Path) -> list[Path]:
    found = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in ("lock", "lock.json")]
    assert len(found) == 2 + 7 + 2  # run.json, config.yaml, arrays, checkpoints
    return found


def read(directory: Path) -> Numbers:
    """Everything that a figure or a table may be made of."""
    run = load_run(directory)
    run.check_all()
    found: Numbers = {"hash": run.hash, "final_loss": repr(run.final_loss), "config": run.config.model_dump_json()}
    found |= {"losses": run.losses, "loss_iterations": run.loss_iterations, "times": run.times}
    return found | {"snapshots": run.snapshot_iterations, **run.parameters, **run.measures}


def attempt(work: Callable[[], T]) -> T | DynError:
    """Return what some work gives, or the error of which a user is told."""
    try:
        return work()
    except DynError as error:
        return error


def outcome(run: Path, file: Path, expected: Numbers) -> str:
    """Read a damaged run: it is `refused` in a message that names the file, or has the numbers of before."""
    found = attempt(lambda: read(run))
    if isinstance(found, DynError):
        assert file.name in str(found)
        return "refused"
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[key], value, err_msg=f"{file}: other numbers, unnoticed")
        else:
            assert found[key] == value
    return "not needed"


@pytest.mark.parametrize("damage", TOLD)
@pytest.mark.parametrize("state", STATES)
def test_a_damaged_file_is_told(runs: dict[str, Path], state: str, damage: str) -> None:
    run, counts = runs[state], Counter[str]()
    expected = read(run)
    for file in files_of(run):
        kind = {"run.json": 0, "config.yaml": 1}.get(file.name, 2 if file.suffix == ".npz" else 3)
        told = TOLD[damage][kind]
        if damage == "a byte more" and state == "killed" and kind == 3:
            told = ""  # behind what is acknowledged: dropped by design
        with damaged(file, damage, runs[f"{state}-other"] / file.relative_to(run)):
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


@pytest.mark.parametrize("count", [100, pytest.param(20_000, marks=pytest.mark.long)])
def test_flipped_bits_are_told(runs: dict[str, Path], count: int) -> None:
    rng, counts = random.Random(0), Counter[str]()
    expected = {state: read(runs[state]) for state in STATES}
    for _ in range(count):
        state = rng.choice(STATES)
        file = rng.choice(files_of(runs[state]))
        data = file.read_bytes()
        at = rng.randrange(len(data))
        file.write_bytes(flip(data, at, rng.randrange(8)))
        try:
            found = verify_run(runs[state])
            assert [one.file for one in found] == [file], f"{file}: byte {at}"
            counts[outcome(runs[state], file, expected[state])] += 1
        finally:
            file.write_bytes(data)
    print(f"{count} flipped bits: {dict(counts)}")
    assert counts["refused"] > count / 2


@pytest.mark.parametrize("resume", [False, True])
def test_damage_of_a_finished_run_is_told_when_it_is_reused(
    runs: dict[str, Path], tmp_path: Path, resume: bool
) -> None:
    run = shutil.copytree(runs["complete"], tmp_path / "run")
    (run / "losses.npy").write_bytes(flip((run / "losses.npy").read_bytes(), -5))
    with pytest.raises(DynError, match=r"losses\.npy is damaged.*--force trains the run again"):
        obtain_run(plan_run(load_config(CONFIG), run), resume=resume)


def test_a_damaged_run_resumes_to_the_same_bits_or_not_at_all(runs: dict[str, Path], tmp_path: Path) -> None:
    counts, plan = Counter[str](), load_config(CONFIG)
    whole, run = arrays_of(runs["complete"]), tmp_path / "run"
    for file in files_of(runs["killed"]):
        name = file.relative_to(runs["killed"])
        for damage in ("a bit of the contents", "cut in half", "a byte more", "deleted", "of another run"):
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(runs["killed"], run)
            contents = DAMAGES[damage](file.read_bytes(), runs["killed-other"] / name)
            (run / name).unlink() if contents is None else (run / name).write_bytes(contents)
            obtained = attempt(lambda: obtain_run(plan_run(plan, run), resume=True))
            if isinstance(obtained, DynError):
                assert any(part in str(obtained) for part in (file.name, str(run))), obtained
                counts["refused"] += 1
                continue
            assert arrays_of(run) == whole, (name, damage)
            assert [found for found in verify_run(run) if found.file.suffix != ".npz"] == []
            counts["the same bits"] += 1
    print(f"resumed: {dict(counts)}")
    assert min(counts.values()) >= 10


# Files that fit their checksums, and still are not what dyn writes.

GOOD: dict[str, Any] = {
    "status": "complete", "name": "toy", "hash": None, "messages": [], "iterations": 3, "final_loss": None,
    "seconds": 1,
    "rows": {"losses": 3, "loss_iterations": 3, "trajectory/iterations": 0, "measures/norm": 0},
    "replicas": [{"seed": 0}], "replica_losses": [0.5], "replica_iterations": [None],
    "replica_statuses": ["complete"], "more": object(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "x"), ("status", ["complete"]), ("name", 3), ("hash", 3), ("messages", "x"), ("messages", [3]),
        ("iterations", -1), ("iterations", 1.0), ("iterations", 2**63), ("final_loss", "x"), ("seconds", 10**400),
        ("rows", []), ("rows", {"losses": -1}), ("rows", {"losses": 1.5}), ("rows", {"measures/../x": 1}),
        ("rows", {"/precious": 3}), ("rows", {"trajectory/a/b": 3}), ("rows", {"losses": 3}),
        ("rows", {"measures/norm": 1}), ("replicas", {}), ("replica_losses", ["x"]), ("replica_losses", []),
        ("replica_iterations", [1, 2]), ("replica_statuses", [3]), ("versions", []), ("provenance", "x"),
    ],
)  # fmt: skip
def test_wrong_entries_are_named(name: str, value: Any) -> None:
    check_entries(Path("run.json"), GOOD, RunInfo)
    with pytest.raises(CorruptRunError, match=f"its entry '{name}' is not one that dyn writes"):
        check_entries(Path("run.json"), {**GOOD, name: value}, RunInfo)


def test_a_run_with_a_wrong_entry_is_damaged(finished: Path) -> None:
    reseal(finished / "run.json", iterations="many")
    with pytest.raises(CorruptRunError, match="its entry 'iterations' is not one that dyn writes"):
        load_run(finished)
    assert [run.status for run in list_runs(finished.parent)] == ["damaged"]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("losses", np.zeros((13, 2))),
        ("losses", np.zeros(13, np.float32)),
        ("loss_iterations", np.zeros(13)),
        ("loss_iterations", np.arange(-1, 12)),
        ("trajectory/iterations", np.zeros((6, 1), np.int64)),
        ("trajectory/hidden_weight", np.zeros((6, 5, 2), np.float32)),
        ("trajectory/output_weight", np.zeros((6, 4, 1), np.float32)),
    ],
)
def test_arrays_of_another_form(name: str, array: np.ndarray, finished: Path) -> None:
    writer = ArrayWriter(finished / f"{name}.npy", array.shape[1:], array.dtype, f"abc {name}")
    writer.append(array)
    writer.close()
    reseal(finished / "run.json", crc32={})
    run = load_run(finished)
    with pytest.raises(CorruptRunError, match="which dyn never writes there"):
        _ = (run.losses, run.loss_iterations, run.snapshot_iterations, *run.parameters.values())


@pytest.mark.parametrize("rows", [{"../x": 1}, {"losses": -1}])
def test_rows_of_a_checkpoint(rows: dict[str, int], tmp_path: Path) -> None:
    save_checkpoint(tmp_path, {"w": np.zeros(2)}, {}, rows, {})
    with pytest.raises(CorruptRunError, match="its contents are not those of a checkpoint"):
        read_checkpoint(tmp_path / "checkpoint.npz")


@pytest.mark.parametrize("change", [{"seconds": None}, {"last_loss": "x"}, {"halted": "x"}, {}])
def test_the_state_of_a_checkpoint(change: dict[str, Any], runs: dict[str, Path], tmp_path: Path) -> None:
    """Its checksum is right, and it is not the state of this run; an empty change takes an array away."""
    run = shutil.copytree(runs["killed"], tmp_path / "run")
    found = read_checkpoint(run / "checkpoint.npz")
    arrays = {name: array for k, (name, array) in enumerate(found.arrays.items()) if k or change}
    owner = read_info(run)["config_sha256"]
    for _ in range(2):
        save_checkpoint(run, arrays, {**found.meta, **change}, found.rows, found.checksums, owner)
    with pytest.raises(CorruptRunError, match="its contents are not the state of this run"):
        obtain_run(plan_run(load_config(CONFIG), run), resume=True)


@pytest.mark.parametrize("row_shape", [(1,) * 40, (10**17, 10**17)])
def test_rows_that_numpy_cannot_think_of(row_shape: tuple[int, ...], finished: Path) -> None:
    header = Header(np.dtype(np.float64), row_shape, 1, crc_of_text("abc measures/norm"))
    (finished / "measures" / "norm.npy").write_bytes(header._replace(checksum=header.start()).encode() + bytes(8))
    reseal(finished / "run.json", rows={**read_info(finished)["rows"], "measures/norm": 1}, crc32={})
    with pytest.raises(CorruptRunError, match=r"norm\.npy"):
        load_run(finished).check_all()


def test_a_link_in_place_of_a_pipe_is_never_waited_for(finished: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (finished / "losses.npy").unlink()
    (finished / "losses.npy").symlink_to(tmp_path / "pipe")
    with pytest.raises(CorruptRunError):
        _ = load_run(finished).losses
