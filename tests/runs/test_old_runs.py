"""Runs of formats 1 and 2, whose arrays had their checksums in files beside them, as dyn wrote them before format 3."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError
from dynamics_cli.runs import load_run, verify_run
from dynamics_cli.runs.info import read_info
from tests.runs.damage import HEADER_BYTES, arrays_of
from tests.runs.disk import Log
from tests.runs.disk import killed as kills

ARCHIVE = Path(__file__).with_name("old_runs.tar.xz")
"""Toy runs: complete, and killed after the checkpoint of iteration 6, while the next snapshot was written."""
LOSSES = {"killed-1": 8, "killed-2": 8, "complete-2": 13}
"""Recorded losses by run."""
killed = pytest.mark.parametrize("old", ["killed-1", "killed-2"], indirect=True)


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / request.param


def losses(directory: Path, toy: Any) -> int:
    """Assert that a run reads as the beginning of the toy run; return how many losses it has."""
    run = load_run(directory)
    steps, count = run.snapshot_iterations.tolist(), len(run.losses)
    assert run.loss_iterations.tolist() == list(range(count))
    assert steps == list(toy.snapshots)[: len(steps)]
    np.testing.assert_array_equal(run.losses, [toy.loss(i) for i in range(count)])
    np.testing.assert_array_equal(run.parameters["hidden_weight"], [toy.weights(i) for i in steps])
    np.testing.assert_array_equal(run.measures["norm"], [toy.loss(i) for i in steps])
    return count


@pytest.mark.parametrize("old", LOSSES, indirect=True)
def test_they_are_read(old: Path, toy: Any) -> None:
    assert verify_run(old) == []
    assert losses(old, toy) == LOSSES[old.name]


@killed
def test_they_are_resumed(old: Path, config: RunConfig, toy: Any, finished: Path) -> None:
    toy.train(old, config, resume=True)
    assert arrays_of(old) == arrays_of(finished)
    assert read_info(old)["format"] == read_info(finished)["format"]
    assert verify_run(old) == []
    assert not list(old.rglob("*.crc"))


@killed
def test_damage_before_the_checkpoint_is_not_resumed(old: Path, config: RunConfig, toy: Any) -> None:
    data = bytearray((old / "trajectory" / "hidden_weight.npy").read_bytes())
    data[150] ^= 1
    (old / "trajectory" / "hidden_weight.npy").write_bytes(data)
    with pytest.raises(DynError, match=r"hidden_weight\.npy"):
        toy.train(old, config, resume=True)


@killed
def test_a_resumption_killed_at_changes(old: Path, config: RunConfig, toy: Any, finished: Path) -> None:
    """Also while arrays are given today's form."""
    with pytest.MonkeyPatch.context() as patch:
        log = Log(patch, old)
        toy.train(old, config, resume=True)
    expected, run = arrays_of(finished), old.parent / "run"
    states = [*kills(log.start, log.changes)]  # no system tears a header, which format 2 could not mend
    states = [one for one in states if "torn" not in one[1] or len(log.changes[one[0]].data) != HEADER_BYTES]
    assert len(states) > 200
    for _, what, disk in states[::3]:
        disk.write(run)
        assert losses(run, toy) >= 6, what
        if read_info(run)["status"] != "complete":
            toy.train(run, config, resume=True)
        assert arrays_of(run) == expected, what


@pytest.mark.parametrize("old", LOSSES, indirect=True)
@pytest.mark.parametrize("how", ["flip", "cut", "empty", "deleted"])
def test_damage_is_found(old: Path, how: str) -> None:
    files = [path for path in sorted(old.rglob("*")) if path.suffix in (".npy", ".crc")]
    assert len(files) == 12
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), 7) if how == "flip" else (1,):
            flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            file.write_bytes({"flip": flipped, "cut": data[:-1]}.get(how, b""))
            if how == "deleted":
                file.unlink()
            told = verify_run(old)
            if told:
                assert {found.file.stem for found in told} == {file.stem}
                with pytest.raises(DynError, match=file.stem):
                    load_run(old).check_all()
            else:  # what follows the acknowledged rows
                assert old.name.startswith("killed")
                assert file.stem == "hidden_weight"
        file.write_bytes(data)
    assert verify_run(old) == []
