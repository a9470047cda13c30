"""Files of a run that fit their checksums, and still are not what dyn writes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.runs import CorruptRunError, list_runs, load_run
from dynamics_cli.runs.info import RunInfo, read_info
from dynamics_cli.runs.store.arrays import ArrayWriter, Header, crc_of_text
from dynamics_cli.runs.store.checkpoints import read_checkpoint, save_checkpoint
from dynamics_cli.runs.store.sealed import check_entries

from .damage import reseal

GOOD: dict[str, Any] = {
    "status": "complete", "name": "toy", "hash": None, "messages": [], "iterations": 3, "final_loss": None,
    "seconds": 1,
    "rows": {"losses": 3, "loss_iterations": 3, "trajectory/iterations": 0, "measures/norm": 0},
    "replicas": [{"seed": 0}], "replica_losses": [0.5], "replica_iterations": [None],
    "replica_statuses": ["complete"], "more": object(),
}  # fmt: skip


def wrong_entry(info: dict[str, Any]) -> str | None:
    """Return the entry that `check_entries` names, if any."""
    try:
        check_entries(Path("run.json"), info, RunInfo)
    except CorruptRunError as error:
        named = re.match(r"its entry '(\w+)' is not one that dyn writes \(.+\)$", error.problem)
        assert named is not None
        return named[1]
    return None


def test_what_is_written_is_right(finished: Path) -> None:
    assert wrong_entry(GOOD) is None
    assert wrong_entry(load_run(finished).info) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "x"), ("status", ["complete"]), ("name", 3), ("hash", 3), ("messages", "x"), ("messages", [3]),
        ("iterations", -1), ("iterations", 1.0), ("iterations", True), ("iterations", 2**63), ("final_loss", "x"),
        ("final_loss", True), ("seconds", []), ("seconds", 10**400), ("rows", []), ("rows", {"losses": -1}),
        ("rows", {"losses": 1.5}), ("rows", {"../x": 1}), ("rows", {"measures/../x": 1}), ("rows", {"x": 1}),
        ("rows", {"/precious": 3}),
        ("rows", {"trajectory/../../precious": 3}), ("rows", {"measures/": 3}), ("rows", {"trajectory/a/b": 3}),
        ("rows", {"losses": 3}), ("rows", {"loss_iterations": 3}), ("rows", {"measures/norm": 1}), ("replicas", {}),
        ("replicas", [1]), ("replica_losses", ["x"]), ("replica_losses", []), ("replica_iterations", [1, 2]),
        ("replica_statuses", [3]), ("versions", []), ("provenance", "x"),
    ],
)  # fmt: skip
def test_wrong_entries_are_named(name: str, value: Any) -> None:
    assert wrong_entry({**GOOD, name: value}) == name


def test_replicas_need_their_number() -> None:
    assert wrong_entry({"status": "complete", "replica_losses": [1.0]}) == "replica_losses"


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
        ("loss_iterations", np.zeros(13, np.int64)),
        ("loss_iterations", np.arange(-1, 12)),
        ("trajectory/iterations", np.zeros((6, 1), np.int64)),
        ("trajectory/hidden_weight", np.zeros(6)),
        ("trajectory/hidden_weight", np.zeros((6, 5, 2), np.float32)),
        ("trajectory/output_weight", np.zeros((6, 4, 1), np.float32)),
    ],
)
def test_arrays_of_another_form(name: str, array: np.ndarray, finished: Path) -> None:
    """They have good checksums and the right number of rows, as if copied from another run."""
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


@pytest.mark.parametrize("row_shape", [(1,) * 40, (10**17, 10**17)])
@pytest.mark.parametrize("rows", [0, 1])
def test_rows_that_numpy_cannot_think_of(row_shape: tuple[int, ...], rows: int, finished: Path) -> None:
    header = Header(np.dtype(np.float64), row_shape, rows, crc_of_text("abc measures/norm"))
    (finished / "measures" / "norm.npy").write_bytes(header._replace(checksum=header.start()).encode() + bytes(8))
    reseal(finished / "run.json", rows={**read_info(finished)["rows"], "measures/norm": rows}, crc32={})
    with pytest.raises(CorruptRunError, match=r"norm\.npy"):
        load_run(finished).check_all()


def test_a_pipe_in_place_of_a_file(finished: Path) -> None:
    for name in ("losses.npy", "run.json"):
        (finished / name).unlink()
        os.mkfifo(finished / name)
        with pytest.raises(CorruptRunError):
            _ = load_run(finished).losses
