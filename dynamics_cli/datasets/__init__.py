"""Data sets, one family a file; a new one is a schema class, a module with `load`, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dynamics_cli.datasets.dataset import Dataset, make_dataset

LOADERS = {
    "points": "dynamics_cli.datasets.points",
    "file": "dynamics_cli.datasets.file",
    "orthonormal": "dynamics_cli.datasets.orthonormal",
    "gaussians": "dynamics_cli.datasets.linear_teacher",
    "linear_teacher": "dynamics_cli.datasets.linear_teacher",
    "orthogonally_separable": "dynamics_cli.datasets.orthogonally_separable",
    "mnist_pair": "dynamics_cli.datasets.digits",
    "mnist": "dynamics_cli.datasets.digits",
    "mixture": "dynamics_cli.datasets.mixture",
    "dogs_vs_cats": "dynamics_cli.datasets.cats_and_dogs",
}
"""kind -> module whose `load(config, seed)` returns the data set; its `resolve(config)`, where it has one, replaces
what depends on the machine (`auto`) by what holds here, so that a run's identity and its record say what was used."""


def build_dataset(config: Any, seed: int) -> Dataset:
    """Return the data set that a config section describes; random ones draw from the data stream of `seed`."""
    dataset: Dataset = import_module(LOADERS[config.kind]).load(config, seed)
    return dataset


def resolve_dataset(config: Any) -> Any:
    """Return the config section with every `auto` replaced by what it stands for on this machine."""
    resolve = getattr(import_module(LOADERS[config.kind]), "resolve", None)
    return config if resolve is None else resolve(config)


__all__ = ["LOADERS", "Dataset", "build_dataset", "make_dataset", "resolve_dataset"]
