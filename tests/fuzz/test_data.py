"""Readers of data files against anything."""

from __future__ import annotations

import pytest

from tests.fuzz import arrays, pictures, tables

from .conftest import Fuzz

FIXED = {
    "tables": len(tables.FIXED),
    "arrays": len(arrays.FIXED),
    "pictures": pictures.FIXED,
}


@pytest.mark.parametrize("room", FIXED)
def test_a_sample_is_taken_or_answered(room: str, fuzz: Fuzz) -> None:
    report = fuzz(room, FIXED[room] + 100)
    assert any("accepted" in outcome for outcome in report.outcomes)
    assert any("refused" in outcome for outcome in report.outcomes)


@pytest.mark.long
@pytest.mark.parametrize("room", FIXED)
def test_thousands(room: str, fuzz: Fuzz) -> None:
    fuzz(room, 20_000, seed=1)
