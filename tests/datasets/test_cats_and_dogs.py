"""Cats and dogs as a data set, made of small pictures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from dynamics_cli.datasets.files import dogs_vs_cats
from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats, load_images
from dynamics_cli.datasets.files.pictures import open_pictures
from dynamics_cli.datasets.images import DogsVsCats
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import Streams

from .conftest import folder_of, pets, zip_of


def config(**settings: Any) -> DogsVsCats:
    return DogsVsCats(**{"size": 4, **settings})


def test_rows_are_planes_of_colours_from_0_to_1(tmp_path: Path) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets(cats=4, dogs=8)))
    resolved = config(light_effect=False).resolve()
    assert resolved.images == place.key
    assert resolved.resolve() is resolved
    data = resolved.load(Streams(0))
    assert data.x_test is not None
    assert data.y_test is not None
    assert (data.x.shape, data.x_test.shape, data.x.dtype) == ((9, 48), (3, 48), np.float32)
    assert (sorted(data.y), sorted(data.y_test)) == ([-1.0] * 6 + [1.0] * 3, [-1.0, -1.0, 1.0])
    raw = load_images(place, 4)
    rows = {tuple(row) for row in np.concatenate([data.x, data.x_test])}
    assert rows == {tuple(np.moveaxis(image, -1, 0).reshape(-1).astype(np.float32) / np.float32(255)) for image in raw}


def test_the_light_effect_parts_cats_from_dogs(tmp_path: Path) -> None:
    add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets(cats=4, dogs=4)))
    data = config().load(Streams(0))
    assert data.x[data.y > 0].max() <= np.float32(127 / 255)
    assert data.x[data.y < 0].min() >= np.float32(128 / 255)


def test_other_images_and_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataMissingError):
        config().resolve()
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets()))
    with pytest.raises(InputError, match=f"names other images than those added, whose SHA-256 is {place.key}"):
        config(images="0" * 64).load(Streams(0))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(InputError, match="6 x 16 numbers need about"):
        config().load(Streams(0))


def test_a_path_that_is_too_long_is_no_longer_there(tmp_path: Path) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets()))
    assert dogs_vs_cats.is_there(place)
    assert not dogs_vs_cats.is_there(dogs_vs_cats.Collection("x" * 5000, place.key, place.names))
    too_long = pytest.raises(InputError, match=r"nor a complete zip archive \(.*File name too long")
    with too_long, open_pictures(tmp_path / ("x" * 5000)):
        pass


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamics_cli.datasets.files.pictures.MAX_FILES", 3)
    for path in (folder_of(tmp_path / "folder", pets()), zip_of(tmp_path / "train.zip", pets())):
        with pytest.raises(InputError, match="holds 6 files, at most 3 are read"), open_pictures(path):
            pass


def test_a_csv_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynamics_cli.datasets.files.tables import read_samples

    path = tmp_path / "d.csv"
    path.write_text("9" * 200_000 + ",1\n")
    with pytest.raises(InputError, match=r"not a table of numbers \(field larger than field limit"):
        read_samples(path)
    path.write_text("1," + "x" * 200 + "\n")
    with pytest.raises(InputError, match=r"column 2 holds 'x{60}'\.\.\., not a number"):
        read_samples(path)
    with pytest.raises(DataMissingError):
        read_samples(tmp_path / ("x" * 5000 + ".csv"))

    def denied(*arguments: Any, **keywords: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(InputError, match=r"not a table of numbers \(Permission denied\)"):
        read_samples(path)
