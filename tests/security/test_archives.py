"""Archives: no path escapes, no bombs."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from dynamics_cli.datasets.files.dogs_vs_cats import remembered
from dynamics_cli.datasets.files.pictures import MAX_BYTES, open_pictures
from dynamics_cli.errors import InputError
from tests.fuzz import arrays
from tests.fuzz.pictures import CAT, PETS, entry, zipped

from .conftest import dyn, tree


def refused(told: str, *command: object) -> None:
    """Assert that a command, by default the one that adds `train.zip`, leaves with a message."""
    result = dyn(*(command or ("data", "add", "dogs-vs-cats", "train.zip", "--quiet")))
    assert result.exit_code == 3
    assert told in result.stderr


def unpack_naively(path: Path, folder: Path) -> None:
    """Write every file where the archive says, links as links."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            target = folder / info.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            if info.external_attr >> 16 & 0o170000 == 0o120000:
                target.symlink_to(archive.read(info).decode())
            else:
                target.write_bytes(archive.read(info))


@pytest.mark.parametrize("form", ["../../escaped.jpg", "train/../../../escaped.jpg", "{outside}/escaped.jpg"])
def test_paths_do_not_escape(form: str, tmp_path: Path, place: Path) -> None:
    name = form.format(outside=tmp_path)
    archive, inner = place / "train.zip", tmp_path / "naive" / "inner"
    archive.write_bytes(zipped([*PETS, (name, CAT)]))
    inner.mkdir(parents=True)
    unpack_naively(archive, inner)
    escaped = [path for path in tmp_path.rglob("escaped.jpg") if inner not in path.parents]
    assert escaped
    for path in escaped:
        path.unlink()
    before = tree(tmp_path)
    refused("images are called cat.0.jpg or dog.0.jpg (in train/ or not), but there is")
    assert remembered() is None
    assert tree(tmp_path) == before


def test_links_are_not_followed(tmp_path: Path, place: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"a secret")
    archive = place / "train.zip"
    archive.write_bytes(zipped([*PETS, (entry("train/cat.1.jpg", 0o120777), str(secret).encode())]))
    unpack_naively(archive, tmp_path / "naive")
    assert (tmp_path / "naive" / "train" / "cat.1.jpg").read_bytes() == b"a secret"
    refused("train/cat.1.jpg: not a JPEG")  # the name of the secret, not its contents
    told = "is a link or no file; the folder must hold the pictures themselves"
    refused(told, "data", "add", "dogs-vs-cats", tmp_path / "naive" / "train", "--quiet")


def test_nothing_is_unpacked(place: Path) -> None:
    (place / "train.zip").write_bytes(zipped(PETS))
    assert dyn("data", "add", "dogs-vs-cats", "train.zip", "--quiet").exit_code == 0
    assert {name for name in tree(place) if name.endswith(".jpg")} == set()


def test_a_bomb_of_pictures(place: Path) -> None:
    bomb = zipped([*PETS, ("train/cat.1.jpg", bytes(64 * 2**20))], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    (place / "train.zip").write_bytes(bomb)
    with zipfile.ZipFile("train.zip") as archive:
        assert len(archive.read("train/cat.1.jpg")) == 64 * 2**20  # what a naive reader has in memory then
    refused(f"train/cat.1.jpg: has more than {MAX_BYTES} bytes")
    assert MAX_BYTES < 64 * 2**20


def test_a_bomb_of_bombs_and_many_small_ones(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped([("a", bytes(2**20))], zipfile.ZIP_DEFLATED)
    (place / "train.zip").write_bytes(zipped([*PETS, ("train/cat.1.jpg", inner)]))
    with zipfile.ZipFile("train.zip") as archive, zipfile.ZipFile(archive.open("train/cat.1.jpg")) as naive:
        assert len(naive.read("a")) == 2**20
    refused("train/cat.1.jpg: not a JPEG")
    monkeypatch.setattr("dynamics_cli.datasets.files.pictures.MAX_TOTAL", 3 * 2**20)
    many = [(f"train/cat.{k}.jpg", bytes(2**20)) for k in range(4)]
    (place / "many.zip").write_bytes(zipped(many, zipfile.ZIP_DEFLATED))
    with pytest.raises(InputError, match="the archive is refused"), open_pictures(place / "many.zip"):
        pass


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
