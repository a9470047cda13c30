"""The cage itself: what hangs, eats memory, crashes or dies is told as a failure of its case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz import cage, rooms
from tests.fuzz.cage import run_cases


class Harmful:
    """Cases that do what must not be, by their number."""

    memory = 200 * 10**6
    seconds = 0.3

    def prepare(self, place: Path) -> None:
        """Need nothing."""

    def case(self, seed: int, i: int) -> int:
        return i

    def run(self, case: int) -> str:
        match case:
            case 1:
                while True:
                    pass
            case 2:
                bytearray(10**9)
            case 3:
                raise KeyError("unexpected")
            case 4:
                os._exit(9)
        return "well"

    def describe(self, case: int) -> str:
        return f"number {case}"


def test_harm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harmful.py").write_text(
        "from tests.fuzz import rooms, test_cage, worker\nimport sys\nfrom pathlib import Path\n"
        "rooms.ROOMS['harmful'] = test_cage.Harmful\nworker.TOLD = 1\n"
        "worker.main(sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5]))\n"
    )
    monkeypatch.setattr(cage, "WORKER", [str(tmp_path / "harmful.py")])
    report = run_cases("harmful", 0, 6, tmp_path / "place")
    assert dict(report.outcomes) == {
        "well": 2,
        "FAILED: too slow (CPU time)": 1,
        "FAILED: too much memory": 1,
        "FAILED: KeyError": 1,
        "worker died": 1,
    }
    assert [failure.splitlines()[0] for failure in report.failures] == [
        "harmful case 1 of seed 0: number 1",
        "harmful case 2 of seed 0: number 2",
        "harmful case 3 of seed 0: number 3",
        "harmful case 4 of seed 0 or one soon after: exit status 9",
    ]


def test_a_worker_that_is_silent_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "silent.py").write_text("import threading; threading.Event().wait()")
    monkeypatch.setattr(cage, "WORKER", [str(tmp_path / "silent.py")])
    monkeypatch.setattr(cage, "PATIENCE", 0.5)
    report = run_cases("configs", 0, 1, tmp_path / "place")
    assert report.outcomes == {"worker died": 1}
    assert report.failures[0].startswith("configs: the worker could not begin, exit status -9")


def test_an_empty_or_wrong_refusal_is_a_failure() -> None:
    from dynamics_cli.errors import DynError, InputError, RunError

    assert rooms.refused(InputError("why")) == "refused, exit 3"
    for error in (InputError(" "), RunError("why"), DynError("why"), InputError("x" * 10**6), InputError("Traceback")):
        with pytest.raises(AssertionError):
            rooms.refused(error)
