"""The table of `benchmarks/measures_table.py`: measures x ways x situations, each number beside an
oracle that is written from nothing.
"""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
OWN = (
    "batch norm",
    "unfrozen later",
    "padding, (sum, count)",
    "padding, token mean, head 0",
    "class weights that change",
    "counts below 1",
    "classes left out",
    "complex",
    "hooks",
    "attributes that change",
    "a loss that is learnt",
)
"""Situations in which a copy, a block or a batch is easily taken for another."""
QUICK = (
    "train_loss",
    "gradient_norm",
    "gradient_noise",
    "batch_sharpness",
    "llc",
    "kernel_distance",
    "weight_norm",
    "update_cosine_gradient",
    "directional_sharpness",
    "critical_lr",
    "preconditioned_sharpness",
)
REFUSED = {"padding, token mean, head 0": "the loss is no mean over samples"}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("measures_table")


@pytest.mark.parametrize("way", ["dyn.measure", "Recorder"])
@pytest.mark.parametrize("name", OWN)
def test_numbers_of_own_networks_are_right(name, way, table, monkeypatch):
    monkeypatch.setattr(table, "MEASURES", {one: table.MEASURES[one] for one in QUICK})
    found = table.cells(way, name)
    assert {column for column, cell in found.items() if cell.wrong} == set()
    if name in REFUSED:
        assert all(REFUSED[name] in cell.refused for cell in found.values())
    else:
        assert {column for column, cell in found.items() if cell.error is None} == set()


@pytest.mark.long
@pytest.mark.parametrize("way", ["dyn.measure", "Recorder", "train torch", "train compiled"])
def test_the_whole_table_is_right(way, table):
    wrong = [
        (name, column, str(cell))
        for name in table.TRAINED.get(way, table.CASES)
        for column, cell in table.cells(way, name).items()
        if cell.wrong
    ]
    assert wrong == []
