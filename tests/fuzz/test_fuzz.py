"""Readers against anything: `python -m tests.fuzz.run ROOM COUNT` runs more of the same."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamics_cli.config import json_schema
from dynamics_cli.config.schema import kinds
from dynamics_cli.errors import DynError, InputError, RunError
from tests.fuzz.rooms import ROOMS, Room, attack, opened, refused
from tests.fuzz.strategies import grown

ROOT = Path(__file__).parents[2]
long = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "count", "least"),
    [  # how many are drawn, and how often an answer is given at least: the strategies draw more than nonsense
        ("configs", 300, {"accepted": 10, "refused, exit 3": 20}),
        ("plans", 60, {"planned": 5, "refused, exit 3": 2}),
        ("tables", 100, {"accepted": 5, "refused, exit 3": 5}),
        ("arrays", 100, {"accepted": 5, "refused, exit 3": 5}),
        ("run-directories", 40, {"read": 1, "refused": 1}),
        pytest.param("large-configs", 0, {"refused, exit 3": 40}, marks=long),
        pytest.param("configs", 100_000, {"accepted": 2000}, marks=long),
        pytest.param("plans", 5000, {"planned": 500}, marks=long),
        *(pytest.param(name, 20_000, {}, marks=long) for name in ("tables", "arrays")),
        pytest.param("run-directories", 5000, {}, marks=long),
    ],
)  # fmt: skip
def test_inputs_are_taken_or_answered(name: str, count: int, least: dict[str, int], tmp_path: Path) -> None:
    with opened(name, tmp_path) as room:
        answers = attack(room, count, number=int(count >= 5000))
        assert answers.total() >= count
    for answer, times in least.items():
        assert sum(found for said, found in answers.items() if said.startswith(answer)) >= times, answers


def test_every_room_is_attacked() -> None:
    (mark,) = (mark for mark in test_inputs_are_taken_or_answered.pytestmark if mark.name == "parametrize")
    assert {getattr(case, "values", case)[0] for case in mark.args[1]} == set(ROOMS)


def test_cases_are_the_same_again() -> None:
    def drawn(number: int) -> list[bytes]:
        cases: list[bytes] = []
        attack(Room(st.binary(), lambda case: str(cases.append(case))), 50, number)
        return cases

    assert drawn(7) == drawn(7) != drawn(8)


def never_end() -> NoReturn:
    while True:
        with contextlib.suppress(Exception):
            pass


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (never_end, "the case takes more than its seconds of CPU time"),
        (lambda: bytearray(10**9), None),
        (lambda: {}["unexpected"], "unexpected"),
    ],
    ids=["slow", "large", "an error"],
)
def test_harm_is_told(harm, told: str | None) -> None:
    for room in (
        Room(st.nothing(), lambda case: str(harm()), [1], seconds=0.3, memory=2 * 10**8),
        Room(st.just(1), lambda case: str(harm()), seconds=0.3, memory=2 * 10**8),
    ):
        with pytest.raises((AssertionError, MemoryError, KeyError), match=told):
            attack(room, len(room.fixed) == 0)
    bytearray(10**9)  # the limits are those of the attack


HANGING = """
import signal, time
from tests.fuzz import rooms
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGPROF])  # as in C code, which no alarm reaches
rooms.WALL = 0.1
with rooms.watched(9.0):
    time.sleep(60)
"""


def test_a_process_that_hangs_in_c_code_ends_and_says_where() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'File "<string>", line 7' in done.stderr


def test_an_empty_or_wrong_refusal_is_a_failure() -> None:
    assert refused(InputError("why")) == "refused, exit 3"
    for error in (InputError(" "), RunError("why"), DynError("why"), InputError("x" * 10**6), InputError("Traceback")):
        with pytest.raises(AssertionError):
            refused(error)


@pytest.mark.parametrize("section", ["dataset", "architecture", "initialization", "loss", "optimizer"])
def test_configs_that_are_grown_reach_every_kind(section: str) -> None:
    found: set[str] = set()

    @settings(max_examples=600, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(grown(json_schema()["$defs"]["RunConfig"]["properties"][section], wild=False))
    def look(data: dict[str, str]) -> None:
        found.add(data["kind"])

    look()
    assert found == set(kinds((section,)))
