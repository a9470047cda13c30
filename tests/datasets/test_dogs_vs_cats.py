"""Dogs vs. Cats: archives and folders of small pictures are checked, remembered and loaded."""

import io
import zipfile
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from dynamics_cli import add_data
from dynamics_cli.datasets.files.dogs_vs_cats import (
    MAX_BYTES,
    add_dogs_vs_cats,
    find_images,
    read_images,
)
from dynamics_cli.datasets.files.store import data_root
from dynamics_cli.datasets.images import DogsVsCats
from dynamics_cli.errors import DataMissingError, InputError, UsageError
from dynamics_cli.kinds import Streams


def jpeg(
    colour=(200, 100, 50),
    size=(40, 30),
    kind="JPEG",
):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, kind)
    return content.getvalue()


def pets(cats=3, dogs=3):
    found = {f"cat.{k}.jpg": jpeg((10 * k, 20, 30)) for k in range(cats)}
    return found | {f"dog.{k}.jpg": jpeg((200, 20 * k, 250)) for k in range(dogs)}


def zip_of(path, contents, prefix="train/"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(prefix + name, content)
    return path


def folder_of(path, contents):
    path.mkdir(parents=True)
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path


def test_archives_and_folders_are_checked_remembered_and_read(tmp_path):
    contents = pets(cats=12) | {"._cat.0.jpg": b"left by a system", "notes.txt": b""}
    archive = zip_of(tmp_path / "train.zip", contents)
    bare = zip_of(tmp_path / "bare.zip", contents, "")
    folder = folder_of(tmp_path / "out" / "train", contents)
    seen = []
    assert add_dogs_vs_cats(archive, lambda *news: seen.append(news)) == archive
    key, images, dogs = read_images(archive, 8)
    assert find_images() == (archive, key)
    note = data_root() / "dogs-vs-cats" / "place.json"
    note.rename(tmp_path / "kept.json")
    note.write_text("mine")
    with pytest.raises(UsageError, match="dyn did not write it: move it away"):
        add_dogs_vs_cats(archive)
    assert note.read_text() == "mine"
    (tmp_path / "kept.json").replace(note)
    assert seen == [(k, 15) for k in range(1, 16)]
    assert {read_images(path, 8)[0] for path in (bare, folder, folder.parent)} == {key}
    assert dogs.tolist() == [False] * 12 + [True] * 3
    assert (images.shape, images.dtype) == ((15, 8, 8, 3), np.uint8)
    for k in range(12):  # JPEG keeps colours nearly
        assert np.abs(images[k].astype(int) - (10 * k, 20, 30)).max() <= 2
    (folder / "cat.1.jpg").write_bytes(jpeg((1, 2, 3)))
    assert read_images(folder, 8)[0] != key


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no picture", "is not a JPEG"),
        (jpeg(kind="PNG"), "is not a JPEG"),
        (b"", "is not a JPEG"),
        (jpeg()[:-100], "truncated"),
        (jpeg(size=(3000, 2000)), "3000 x 2000 pixels are too many"),
        (bytes(MAX_BYTES + 1), f"more than {MAX_BYTES} bytes"),
    ],
)
def test_a_broken_image_is_named_and_nothing_remembered(content, told, tmp_path):
    contents = pets() | {"cat.2.jpg": content}
    for path in (
        zip_of(tmp_path / "train.zip", contents),
        folder_of(tmp_path / "folder", contents),
    ):
        with pytest.raises(InputError, match=rf"{path}: cat.2.jpg .*(?i:{told})"):
            add_data("dogs-vs-cats", path)
    with pytest.raises(DataMissingError, match="`dyn data add dogs-vs-cats PATH`"):
        find_images()


@pytest.mark.parametrize(
    ("contents", "damage", "told"),
    [
        (pets(), lambda data: data[:-100], "neither a folder nor a complete zip archive"),
        (pets(), lambda data: data.replace(data[60:70], bytes(10), 1), "cat.0.jpg cannot be used"),
        (pets(dogs=0), lambda data: data, "of both classes: Kaggle's train.zip does"),
        (
            {"train.zip": b"", "../cat.0.jpg": jpeg()},
            lambda data: data,
            "of both classes: Kaggle's train.zip does",
        ),
    ],
)
def test_other_archives_are_refused(contents, damage, told, tmp_path):
    path = zip_of(tmp_path / "train.zip", contents)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=told):
        add_dogs_vs_cats(path)


def test_images_that_changed_or_are_gone_or_others_or_too_many_are_told(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "train", pets())
    add_dogs_vs_cats(folder)
    key = find_images()[1]
    with pytest.raises(
        InputError, match=f"names other images than those added, whose SHA-256 is {key}"
    ):
        DogsVsCats(images="0" * 64).load(Streams(0))
    with pytest.raises(
        InputError, match=r"test_fraction 0.01 of 3 images of a class leaves a part empty"
    ):
        DogsVsCats(size=4, test_fraction=0.01).load(Streams(0))
    with monkeypatch.context() as patch:
        patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
        with pytest.raises(InputError, match="6 x 16 numbers need about"):
            DogsVsCats(size=4).load(Streams(0))
    (folder / "cat.1.jpg").write_bytes(jpeg((9, 9, 9)))
    with pytest.raises(
        InputError, match="has changed since it was added; `dyn data add dogs-vs-cats PATH`"
    ):
        DogsVsCats(images=key).load(Streams(0))
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(DataMissingError, match="are no longer at .*train; download train.zip"):
        DogsVsCats(images=key).load(Streams(0))


@pytest.mark.parametrize("light", [False, True])
def test_rows_are_planes_of_colours_from_0_to_1_split_by_class(light, tmp_path):
    archive = zip_of(tmp_path / "train.zip", pets(cats=4, dogs=8))
    add_dogs_vs_cats(archive)
    key, images, _ = read_images(archive, 4)
    resolved = DogsVsCats(size=4, light_effect=light).resolve()
    assert resolved.images == key
    data = resolved.load(Streams(0))
    assert (data.x.shape, data.x_test.shape, data.x.dtype) == ((9, 48), (3, 48), np.float32)
    assert (sorted(data.y), sorted(data.y_test)) == ([-1.0] * 6 + [1.0] * 3, [-1.0, -1.0, 1.0])
    assert_array_equal(resolved.load(Streams(0)).x_test, data.x_test)
    assert any(
        not np.array_equal(resolved.load(Streams(seed)).x_test, data.x_test) for seed in (1, 2, 3)
    )
    if light:
        assert (
            data.x[data.y > 0].max()
            <= np.float32(127 / 255)
            < np.float32(128 / 255)
            <= data.x[data.y < 0].min()
        )
        return
    expected = {tuple((np.moveaxis(image, -1, 0) / np.float32(255)).ravel()) for image in images}
    assert {tuple(row) for row in np.concatenate([data.x, data.x_test])} == expected
