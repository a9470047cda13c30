"""Readers of run directories against anything."""

from __future__ import annotations

import pytest

from .conftest import Fuzz


def test_a_sample_is_read_or_answered(fuzz: Fuzz) -> None:
    report = fuzz("run-directories", 40)
    assert any(outcome.startswith("read") for outcome in report.outcomes)
    assert any(outcome.startswith("refused") for outcome in report.outcomes)


@pytest.mark.long
def test_thousands(fuzz: Fuzz) -> None:
    fuzz("run-directories", 5_000, seed=1)
