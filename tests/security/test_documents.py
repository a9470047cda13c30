"""The JSON of a figure that was made by somebody else, with a good checksum."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.reproduction.document import verify_figure
from dynamics_cli.runs.store.sealed import seal

GOOD: dict[str, Any] = {"format": 1, "figure": "x", "sha256": {}, "runs": []}


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": {"/dev/zero": "0"}}, {"sha256": {"../x": "0"}}, {"sha256": {"..": "0"}}, {"sha256": {"pipe": "0"}},
        {"sha256": {"link": "0"}}, {"sha256": ["pipe"]}, {"sha256": {"a\0": "0"}}, {"runs": [{"hash": "0"}]},
        {"runs": [{"path": "."}]}, {"runs": [{"path": 1, "hash": "0"}]}, {"runs": [{"path": "a\0", "hash": "0"}]},
        {"runs": ["."]}, {"runs": {"path": "."}},
    ],
)  # fmt: skip
def test_hostile_documents_are_told_and_followed_nowhere(tmp_path: Path, change: dict[str, Any]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "x.json").write_bytes(seal(GOOD))
    assert verify_figure(tmp_path / "x.json") == []
    (tmp_path / "x.json").write_bytes(seal(GOOD | change))
    assert verify_figure(tmp_path / "x.json")
