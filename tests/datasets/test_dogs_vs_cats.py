"""Dogs vs. Cats: archives and folders of small pictures are checked, remembered, decoded once and loaded."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from PIL import Image

from dynamics_cli import add_data
from dynamics_cli.datasets.files.dogs_vs_cats import (
    MAX_BYTES,
    add_dogs_vs_cats,
    decode_jpeg,
    directory,
    find_place,
    load_images,
    split_per_class,
)
from dynamics_cli.datasets.images import DogsVsCats
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import Streams


def jpeg(colour: tuple[int, int, int] = (200, 100, 50), size: tuple[int, int] = (40, 30), kind: str = "JPEG") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, kind)
    return content.getvalue()


def pets(cats: int = 3, dogs: int = 3) -> dict[str, bytes]:
    found = {f"cat.{k}.jpg": jpeg((10 * k, 20, 30)) for k in range(cats)}
    return found | {f"dog.{k}.jpg": jpeg((200, 20 * k, 250)) for k in range(dogs)}


def zip_of(path: Path, contents: Mapping[str, bytes], prefix: str = "train/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(prefix + name, content)
    return path


def folder_of(path: Path, contents: Mapping[str, bytes]) -> Path:
    path.mkdir(parents=True)
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path


def test_archives_and_folders_are_checked_and_remembered(tmp_path: Path) -> None:
    contents = pets(cats=12) | {"._cat.0.jpg": b"left by a system", "notes.txt": b""}
    archive, bare = zip_of(tmp_path / "train.zip", contents), zip_of(tmp_path / "bare.zip", contents, "")
    folder = folder_of(tmp_path / "out" / "train", contents)
    seen: list[tuple[int, int]] = []
    place = add_dogs_vs_cats(archive, lambda *news: seen.append(news))
    assert (place, place.path, place.cats, place.dogs) == (find_place(), str(archive), 12, 3)
    assert place.labels.tolist() == [0] * 12 + [1] * 3
    assert seen == [(k, 15) for k in range(1, 16)]
    assert {add_dogs_vs_cats(path).key for path in (bare, folder, folder.parent)} == {place.key}
    images = load_images(place, 8)
    assert (images.shape, images.dtype) == ((15, 8, 8, 3), np.uint8)
    for pixels, name in zip(images, [f"cat.{k}.jpg" for k in range(12)], strict=False):
        np.testing.assert_array_equal(pixels, decode_jpeg(contents[name], 8))
    (folder / "cat.1.jpg").write_bytes(jpeg((1, 2, 3)))
    assert add_dogs_vs_cats(folder).key != place.key


def test_a_jpeg_is_decoded_and_scaled() -> None:
    grey = io.BytesIO()
    Image.new("L", (16, 16), 77).save(grey, "JPEG")
    for content, colour in ((jpeg((200, 100, 50)), [200, 100, 50]), (grey.getvalue(), [77, 77, 77])):
        pixels = decode_jpeg(content, 8)
        assert (pixels.shape, pixels.dtype) == ((8, 8, 3), np.uint8)
        assert np.abs(pixels.astype(int) - colour).max() <= 2  # JPEG keeps colours nearly


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no picture", "is not a JPEG"), (jpeg(kind="PNG"), "is not a JPEG"), (b"", "is not a JPEG"),
        (jpeg()[:-100], "truncated"), (jpeg(size=(3000, 2000)), "3000 x 2000 pixels are too many"),
        (bytes(MAX_BYTES + 1), f"more than {MAX_BYTES} bytes"),
    ],
)  # fmt: skip
def test_a_broken_image_is_named_and_nothing_remembered(content: bytes, told: str, tmp_path: Path) -> None:
    contents = pets() | {"cat.2.jpg": content}
    for path in (zip_of(tmp_path / "train.zip", contents), folder_of(tmp_path / "folder", contents)):
        with pytest.raises(InputError, match=rf"{path}: cat.2.jpg .*(?i:{told})"):
            add_data("dogs-vs-cats", path)
    with pytest.raises(DataMissingError, match="`dyn data add dogs-vs-cats PATH`"):
        find_place()


@pytest.mark.parametrize(
    ("contents", "damage", "told"),
    [
        (pets(), lambda data: data[:-100], "neither a folder nor a complete zip archive"),
        (pets(), lambda data: b"", "neither a folder nor a complete zip archive"),
        (pets(), lambda data: data.replace(data[60:70], bytes(10), 1), "cat.0.jpg cannot be used"),
        (pets(dogs=0), lambda data: data, "of both classes: Kaggle's train.zip does"),
        ({"train.zip": b"", "../cat.0.jpg": jpeg()}, lambda data: data, "of both classes: Kaggle's train.zip does"),
    ],
)
def test_other_archives_are_refused(contents: dict[str, bytes], damage, told: str, tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", contents)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=told):
        add_dogs_vs_cats(path)


GOOD = {"path": "/a", "key": "0" * 64, "cats": 1, "dogs": 1}


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "[" * 100_000, *(json.dumps(GOOD | change) for change in (
        {"path": 3}, {"key": "../../x"}, {"key": None}, {"cats": 0}, {"dogs": "1"}, {"more": 1}))],
)  # fmt: skip
def test_a_damaged_note_of_the_place_is_told(text: str) -> None:
    directory().mkdir(parents=True)
    (directory() / "place.json").write_text(text)
    with pytest.raises(InputError, match=r"is damaged .*; `dyn data add dogs-vs-cats PATH` writes it anew"):
        find_place()


@pytest.mark.parametrize("damage", ["none", "flip", "cut", "other"])
def test_images_are_decoded_once(damage: str, tmp_path: Path) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets()))
    before = load_images(place, 8)
    (cache,) = (directory() / "cache").iterdir()
    content = bytearray(cache.read_bytes())
    if damage == "none":
        (tmp_path / "train.zip").unlink()  # no longer needed at this size
        with pytest.raises(DataMissingError, match="are no longer at .*train.zip; download train.zip"):
            load_images(place, 16)
    elif damage == "other":
        np.savez(cache, images=before.astype(np.int16))
    else:
        content[500] ^= 1
        cache.write_bytes(content if damage == "flip" else content[:-5])
    np.testing.assert_array_equal(load_images(place, 8), before)
    assert zipfile.ZipFile(cache).testzip() is None


def test_images_that_changed_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "train", pets())
    place = add_dogs_vs_cats(folder)
    (folder / "cat.1.jpg").write_bytes(jpeg((9, 9, 9)))
    with pytest.raises(InputError, match="has changed since it was added; `dyn data add dogs-vs-cats PATH`"):
        load_images(place, 8)
    assert not (directory() / "cache").exists()


def test_the_split_is_stratified_and_drawn_from_the_seed() -> None:
    labels = np.repeat([0, 1], [30, 50])
    train, test = split_per_class(labels, 0.2, seed=3)
    assert sorted([*train, *test]) == list(range(80))
    assert np.bincount(labels[test]).tolist() == [6, 10]
    again, other = split_per_class(labels, 0.2, seed=3)[1], split_per_class(labels, 0.2, seed=4)[1]
    assert again.tolist() == test.tolist() != other.tolist()
    with pytest.raises(InputError, match=r"test_fraction 0.01 of 30 images of a class leaves a part empty"):
        split_per_class(labels, 0.01, seed=0)


@pytest.mark.parametrize("light", [False, True])
def test_rows_are_planes_of_colours_from_0_to_1(light: bool, tmp_path: Path) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets(cats=4, dogs=8)))
    resolved = DogsVsCats(size=4, light_effect=light).resolve()
    assert resolved.images == place.key
    data = resolved.load(Streams(0))
    assert (data.x.shape, data.x_test.shape, data.x.dtype) == ((9, 48), (3, 48), np.float32)
    assert (sorted(data.y), sorted(data.y_test)) == ([-1.0] * 6 + [1.0] * 3, [-1.0, -1.0, 1.0])
    if light:
        assert data.x[data.y > 0].max() <= np.float32(127 / 255) < np.float32(128 / 255) <= data.x[data.y < 0].min()
        return
    expected = {tuple((np.moveaxis(image, -1, 0) / np.float32(255)).ravel()) for image in load_images(place, 4)}
    assert {tuple(row) for row in np.concatenate([data.x, data.x_test])} == expected


def test_other_images_and_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets()))
    with pytest.raises(InputError, match=f"names other images than those added, whose SHA-256 is {place.key}"):
        DogsVsCats(images="0" * 64).load(Streams(0))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(InputError, match="6 x 16 numbers need about"):
        DogsVsCats(size=4).load(Streams(0))


def test_kaggles_archive(shared: Path) -> None:
    place = add_dogs_vs_cats(shared / "dogs-vs-cats" / "train.zip")
    assert (place.cats, place.dogs) == (1001, 1001)
    images = load_images(place, 16)
    assert 90 < images.mean() < 140  # photographs of middle brightness
    assert abs(images[:1001].mean() - images[1001:].mean()) < 10  # without the light effect
