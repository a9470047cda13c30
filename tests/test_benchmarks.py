"""The scripts of `benchmarks/`, which are run by hand, still find what they import."""

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


def test_tokens_of_scripts_are_words_numbers_strings_and_operators(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    text = importlib.import_module("text")
    source = "const a = /[/]x/g.test(`${b} // c`) ?? d?.[1.5]; // e\n/* f */ y++ && (y => -y)"
    found = [match[0].strip() for match in text.SCRIPT.finditer(source) if not match["comment"]]
    words = "const a = /[/]x/g test `${b}_//_c` ?? d ?. 1.5 y ++ && y => - y"
    assert found == [word.replace("_", " ") for word in words.split()]
    counts = text.count_script(source)
    assert (counts["tokens"], counts["comments"], counts["lines"]) == (len(found), 2, 2)
