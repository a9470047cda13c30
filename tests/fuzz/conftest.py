from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.cage import Report, run_cases

Fuzz = Callable[..., Report]


@pytest.fixture
def fuzz(tmp_path: Path) -> Fuzz:
    """Run cases of a room, and fail with those that did what should not be."""

    def run(room: str, count: int, *, first: int = 0, seed: int = 0) -> Report:
        report = run_cases(room, seed, count, tmp_path / "cage", first=first)
        assert not report.failures, f"{len(report.failures)} failures\n" + "\n".join(report.failures[:5])
        assert sum(report.outcomes.values()) == count
        return report

    return run
