"""CITATION.cff and the files that are made from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamics_cli.version import __version__

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("citation", ROOT / "docs" / "_ext" / "citation.py")
assert SPEC
assert SPEC.loader
citation: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(citation)


@pytest.mark.parametrize("name", citation.FILES)
def test_files_made_from_citation_are_not_stale(name: str) -> None:
    """`python docs/_ext/citation.py` writes them."""
    assert (ROOT / name).read_text(encoding="utf-8") == citation.texts()[name]


def test_version_is_that_of_the_program() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__
