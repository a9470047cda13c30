"""Archives: no path escapes, no bombs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from tests.datasets.test_dogs_vs_cats import jpeg, pets, zip_of
from tests.fuzz import arrays

from .conftest import dyn, tree


def refused(told: str, *command: object) -> None:
    """Assert that a command leaves with a message."""
    result = dyn(*command)
    assert result.exit_code == 3
    assert told in result.stderr


def test_nothing_is_unpacked(tmp_path: Path, place: Path) -> None:
    escaping = {"../../escaped.jpg": jpeg(), "train/../../cat.9.jpg": jpeg(), f"{tmp_path}/cat.8.jpg": jpeg()}
    zip_of(place / "train.zip", {f"train/{name}": content for name, content in pets().items()} | escaping, prefix="")
    assert dyn("data", "add", "dogs-vs-cats", "train.zip", "--quiet").exit_code == 0
    assert {name for name in tree(tmp_path) if name.endswith(".jpg")} == set()


def test_a_bomb_of_a_picture(place: Path) -> None:
    zip_of(place / "train.zip", pets() | {"cat.1.jpg": bytes(64 * 2**20)})
    assert (place / "train.zip").stat().st_size < 100_000
    refused("cat.1.jpg cannot be used: more than", "data", "add", "dogs-vs-cats", "train.zip", "--quiet")


def test_a_bomb_of_an_array(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that says what it holds, and holds it: refused where it cannot fit."""
    (place / "bomb.npz").write_bytes(arrays.bomb(64))
    assert (place / "bomb.npz").stat().st_size < 200_000
    with np.load("bomb.npz") as naive:
        assert naive["x"].nbytes == 64 * 2**20
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=32 * 2**20))
    told = "x takes 0.1 GiB of memory, this machine has 0.0 GiB"
    refused(told, "train", "toy.yaml", "--set", "dataset={kind: file, path: bomb.npz}")


def test_an_array_that_only_claims_to_be_large(place: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    claim = arrays.archive({"x.npy": arrays.npy(header, bytes(72)), "y.npy": arrays.Y})
    (place / "claim.npz").write_bytes(claim)
    told = "claim.npz: not a readable .npz file of plain arrays ("
    refused(told, "train", "toy.yaml", "--set", "dataset={kind: file, path: claim.npz}")
