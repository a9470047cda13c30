"""The scripts of `benchmarks/`, which are run by hand, still find what they import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
PEERS = ("curvlinops", "jax", "pyhessian", "backpack")
"""Packages that only benchmarks need."""


@pytest.mark.parametrize("name", sorted(file.stem for file in BENCHMARKS.glob("*.py")))
def test_a_script_imports(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in PEERS:
            raise
        pytest.skip(f"{error.name} is not installed")
