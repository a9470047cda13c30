"""Data sets, one family a file; a new one is a schema class, a module with `load`, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dynamics_cli.data.dataset import Dataset, make_dataset

LOADERS = {
    "points": "dynamics_cli.data.points",
    "file": "dynamics_cli.data.files",
    "orthonormal": "dynamics_cli.data.orthonormal",
}
"""kind -> module whose `load(config, seed)` returns the data set."""


def build_dataset(config: Any, seed: int) -> Dataset:
    """Return the data set that a config section describes; random ones draw from the data stream of `seed`."""
    dataset: Dataset = import_module(LOADERS[config.kind]).load(config, seed)
    return dataset


__all__ = ["LOADERS", "Dataset", "build_dataset", "make_dataset"]
