"""Every claim on trained networks fails under a named change of its runs: the tables `changes.py` of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.experiments.falsify import Change, check_changes, check_complete

QUICK = {"boursier2022-fig2", "boursier2022-fig3", "min2024-fig7", "phuong2021-fig1", "tachet2018-fig5-time"}
CHANGES: dict[str, Sequence[Change]] = {}
for path in sorted(Path(__file__).parent.glob("*/changes.py")):
    CHANGES |= import_module(f"tests.experiments.{path.parent.name}.changes").CHANGES


@pytest.mark.parametrize(
    "figure", [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in CHANGES]
)
def test_every_claim_fails_under_a_named_change(figure: str) -> None:
    check_changes(figure, CHANGES[figure])
    check_complete(figure, CHANGES[figure])
