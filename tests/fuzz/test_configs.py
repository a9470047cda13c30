"""The reader of configs against anything: `python -m tests.fuzz.run configs 100000` runs more of the same."""

from __future__ import annotations

import pytest

from tests.fuzz import grammar
from tests.fuzz.configs import FIXED, Room

from .conftest import Fuzz

GIB = 2**30


def test_a_sample_is_taken_or_answered(fuzz: Fuzz) -> None:
    """All constructs that are the same for every seed, and some hundred changed and grown configs."""
    report = fuzz("configs", FIXED + 300)
    assert set(report.outcomes) <= {"accepted", "refused, exit 2", "refused, exit 3", "refused, exit 4"}
    assert report.outcomes["accepted"] > 20  # the generators make more than nonsense
    assert report.growth < 0.5 * GIB


def test_plans_of_whatever_is_accepted(fuzz: Fuzz) -> None:
    report = fuzz("plans", 60)
    assert report.outcomes["planned"] > 10
    assert report.outcomes["refused, exit 3"] > 10


@pytest.mark.long
def test_the_largest_configs_that_are_read(fuzz: Fuzz) -> None:
    report = fuzz("large-configs", 50)
    assert report.slowest < 2
    assert report.growth < 0.5 * GIB


@pytest.mark.long
def test_a_hundred_thousand(fuzz: Fuzz) -> None:
    report = fuzz("configs", 100_000, seed=1)
    assert report.outcomes["accepted"] > 2_000


@pytest.mark.long
def test_thousands_of_plans(fuzz: Fuzz) -> None:
    assert fuzz("plans", 5_000, seed=1).outcomes["planned"] > 500


def test_cases_are_the_same_again() -> None:
    """A failure is told by its seed and number, so these must say which case it was."""
    rooms = [Room(), Room()]
    for room in rooms:
        room.seeds, room.snippets = [b"name: x\n"], [b"?"]
    first, again = ([room.case(7, i) for i in range(FIXED - 3, FIXED + 50)] for room in rooms)
    assert first == again
    assert first[3:] != [rooms[0].case(8, i) for i in range(FIXED, FIXED + 50)]


def test_configs_that_are_grown_reach_every_kind() -> None:
    import random

    found = {
        (section, data[section].get("kind"))
        for k in range(400)
        for data in [grammar.config(random.Random(k), wild=0.0)]
        for section in ("dataset", "architecture", "initialization", "loss", "optimizer")
    }
    from dynamics_cli.config.schema import kinds

    for section in ("dataset", "architecture", "initialization", "loss", "optimizer"):
        assert {kind for name, kind in found if name == section} == set(kinds((section,)))
