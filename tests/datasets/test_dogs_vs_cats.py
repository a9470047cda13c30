from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.datasets.files import dogs_vs_cats
from dynamics_cli.datasets.files.dogs_vs_cats import (
    add_dogs_vs_cats,
    find_place,
    load_images,
    remembered,
    split_per_class,
)
from dynamics_cli.datasets.files.pictures import PictureError, decode_jpeg
from dynamics_cli.errors import DataMissingError, InputError

from .conftest import folder_of, jpeg, pets, zip_of

ROOT = Path(__file__).parents[2]


def test_a_jpeg_is_decoded_and_scaled() -> None:
    pixels = decode_jpeg(jpeg((200, 100, 50), size=(40, 30)), 8)
    assert (pixels.shape, pixels.dtype) == ((8, 8, 3), np.uint8)
    assert np.abs(pixels.astype(int) - [200, 100, 50]).max() <= 2  # JPEG keeps colours nearly


def test_grey_pictures_become_colour(tmp_path: Path) -> None:
    Image.new("L", (16, 16), 77).save(tmp_path / "grey.jpg")
    pixels = decode_jpeg((tmp_path / "grey.jpg").read_bytes(), 4)
    assert pixels.shape == (4, 4, 3)
    assert np.abs(pixels.astype(int) - 77).max() <= 2


def test_what_is_no_jpeg(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.png")
    for content in (b"", b"GIF89a", (tmp_path / "picture.png").read_bytes()):
        with pytest.raises(PictureError, match="not a JPEG"):
            decode_jpeg(content, 1)
    noisy = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noisy).save(tmp_path / "noisy.jpg")
    content = (tmp_path / "noisy.jpg").read_bytes()
    decode_jpeg(content, 1)
    with pytest.raises(PictureError, match="truncated"):
        decode_jpeg(content[: len(content) // 2], 1)
    with pytest.raises(PictureError, match="3000 x 2000 pixels are too many"):
        decode_jpeg(jpeg(size=(3000, 2000)), 1)


def test_an_archive_is_checked_and_remembered(tmp_path: Path, data_home: Path) -> None:
    assert remembered() is None
    with pytest.raises(DataMissingError, match="`dyn data add dogs-vs-cats PATH`"):
        find_place()
    seen: list[tuple[int, int]] = []
    archive = zip_of(tmp_path / "train.zip", pets(cats=12, dogs=3))
    place = add_dogs_vs_cats(archive, progress=lambda *news: seen.append(news))
    assert place.path == str(archive)
    assert place.labels.tolist() == [0] * 12 + [1] * 3
    assert place.names[:3] == ["cat.0.jpg", "cat.1.jpg", "cat.2.jpg"]
    assert place.names[10:13] == ["cat.10.jpg", "cat.11.jpg", "dog.0.jpg"]
    assert seen == [(k, 15) for k in range(1, 16)]
    assert remembered() == find_place() == place
    assert {path.name for path in (data_home / "dogs-vs-cats").iterdir()} <= {
        "place.json",
        ".lock",
    }  # nothing is copied


def test_the_folder_has_the_same_key_as_the_archive(tmp_path: Path) -> None:
    archive, folder = zip_of(tmp_path / "train.zip", pets()), folder_of(tmp_path / "out" / "train", pets())
    keys = {add_dogs_vs_cats(path).key for path in (archive, folder, folder.parent)}
    assert len(keys) == 1
    (folder / "cat.1.jpg").write_bytes(jpeg((1, 2, 3)))
    assert add_dogs_vs_cats(folder).key not in keys


def test_broken_images_are_named_and_nothing_is_remembered(tmp_path: Path) -> None:
    contents = pets(cats=30) | {"dog.1.jpg": b"not a JPEG at all", "cat.2.jpg": jpeg()[:-200]}
    with pytest.raises(InputError) as caught:
        add_dogs_vs_cats(zip_of(tmp_path / "train.zip", contents))
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path / 'train.zip'}: 2 of 33 images cannot be used:"
    assert lines[1].startswith("  train/cat.2.jpg: ")
    assert lines[2] == "  train/dog.1.jpg: not a JPEG"
    assert remembered() is None
    contents |= {f"cat.{k}.jpg": b"" for k in range(30)}
    with pytest.raises(InputError, match=r"31 of 33 images cannot be used:(\n  .*){20}\n  and 11 more$"):
        add_dogs_vs_cats(folder_of(tmp_path / "folder", contents))


def test_a_truncated_archive_is_told(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "train.zip", pets())
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(InputError, match="nor a complete zip archive .*; download it again"):
        add_dogs_vs_cats(archive)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (pets(dogs=0), r"holds no image of a dog \(dog.0.jpg ...\); both classes are needed"),
        (pets(cats=0), "holds no image of a cat"),
        (pets() | {"bird.0.jpg": jpeg()}, r"images are called cat.0.jpg or dog.0.jpg .* there is 'train/bird.0.jpg'"),
        (pets() | {"cat.0.png": b"", "cat.01.jpg": b""}, "'train/cat.0.png', 'train/cat.01.jpg'"),
        ({}, "holds no image of a cat"),
    ],
)
def test_names_and_counts_are_checked(contents: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        add_dogs_vs_cats(zip_of(tmp_path / "train.zip", contents))


def test_kaggles_outer_archive_is_recognised(tmp_path: Path) -> None:
    outer = {"train.zip": bytes(100), "test1.zip": bytes(100), "sampleSubmission.csv": b""}
    with pytest.raises(InputError, match="holds Kaggle's train.zip among others; unpack it and give train.zip"):
        add_dogs_vs_cats(zip_of(tmp_path / "dogs-vs-cats.zip", outer, prefix=""))


def test_the_same_image_twice(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "train.zip", pets() | {"../cat.0.jpg"[3:]: jpeg()}, prefix="")
    assert add_dogs_vs_cats(archive).labels.tolist() == [0, 0, 0, 1, 1, 1]
    both = {f"train/{name}": content for name, content in pets().items()} | pets()
    with pytest.raises(InputError, match="cat.0.jpg is there twice"):
        add_dogs_vs_cats(zip_of(tmp_path / "both.zip", both, prefix=""))


GOOD = {"path": "/a", "key": "0" * 64, "names": ["cat.0.jpg"]}
CHANGES: list[dict[str, object]] = [
    {"path": 3}, {"key": "../../x"}, {"key": "A" * 64}, {"key": None}, {"names": "cat.0.jpg"}, {"names": []},
    {"names": ["../cat.0.jpg"]}, {"names": [1]}, {"names": None}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"path": 3}', "\xff", "[" * 100_000, *(json.dumps(GOOD | change) for change in CHANGES)]
)
def test_a_damaged_record_is_told(text: str, data_home: Path) -> None:
    place = data_home / "dogs-vs-cats" / "place.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(GOOD))
    assert remembered() == dogs_vs_cats.Collection(**GOOD)  # type: ignore[arg-type]
    place.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"is damaged .*; `dyn data add dogs-vs-cats PATH` writes it anew"):
        remembered()


def test_images_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = pets(cats=3, dogs=2)
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", contents))
    seen: list[tuple[int, int]] = []
    found = load_images(place, 8, progress=lambda *news: seen.append(news))
    assert (found.shape, found.dtype) == ((5, 8, 8, 3), np.uint8)
    for pixels, name in zip(found, place.names, strict=True):
        np.testing.assert_array_equal(pixels, decode_jpeg(contents[name], 8))
    assert seen == [(k, 5) for k in range(1, 6)]
    (tmp_path / "train.zip").unlink()  # no longer needed at this size
    np.testing.assert_array_equal(load_images(place, 8), found)
    with pytest.raises(DataMissingError, match="are no longer at .*train.zip; download train.zip"):
        load_images(place, 16)
    for size in (0, 5000):
        with pytest.raises(InputError, match="can be scaled to 1 to 1024 pixels"):
            load_images(place, size)


def test_images_that_changed_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "train", pets())
    place = add_dogs_vs_cats(folder)
    (folder / "cat.1.jpg").write_bytes(jpeg((9, 9, 9)))
    with pytest.raises(InputError, match="has changed since it was added; `dyn data add dogs-vs-cats PATH`"):
        load_images(place, 8)
    (folder / "cat.1.jpg").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"cat.1.jpg: not a JPEG"):
        load_images(place, 8)
    (folder / "cat.1.jpg").unlink()
    with pytest.raises(InputError, match="has changed since it was added"):
        load_images(place, 8)
    assert [path.name for path in (dogs_vs_cats.directory() / "cache").iterdir()] == [".lock"]  # nothing torn is left


@pytest.mark.parametrize("damage", ["flip", "cut", "other", "lost"])
def test_a_damaged_cache_is_decoded_again(damage: str, tmp_path: Path) -> None:
    place = add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets()))
    before = load_images(place, 8)
    (cache,) = (dogs_vs_cats.directory() / "cache").glob("*-8-*")
    content = bytearray(cache.read_bytes())
    content[500] ^= 1
    cache.write_bytes({"flip": content, "cut": content[:-5]}.get(damage, b""))
    if damage == "other":
        np.savez(cache, images=before.astype(np.int16))
    if damage == "lost":
        cache.unlink()
    np.testing.assert_array_equal(load_images(place, 8), before)
    assert zipfile.ZipFile(cache).testzip() is None


def test_two_processes_decode_once(tmp_path: Path) -> None:
    add_dogs_vs_cats(zip_of(tmp_path / "train.zip", pets(cats=40, dogs=40)))
    code = "import dynamics_cli.datasets.files.dogs_vs_cats as i; n = []; "
    code += "s = i.load_images(i.find_place(), 32, progress=lambda *a: n.append(a)); "
    code += "print(len(n), int(s.sum()))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=-1, text=True) for _ in range(2)]
    said = sorted(process.communicate(timeout=60)[0].split() for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(int(decoded) for decoded, _ in said) == [0, 80]
    assert said[0][1] == said[1][1]


def test_the_split_is_stratified_and_drawn_from_the_seed() -> None:
    labels = np.repeat([0, 1], [30, 50])
    train, test = split_per_class(labels, 0.2, seed=3)
    assert sorted([*train, *test]) == list(range(80))
    assert np.bincount(labels[test]).tolist() == [6, 10]
    again, other = split_per_class(labels, 0.2, seed=3)[1], split_per_class(labels, 0.2, seed=4)[1]
    assert again.tolist() == test.tolist() != other.tolist()
    with pytest.raises(InputError, match=r"test_fraction 0.01 of 30 images of a class leaves a part empty"):
        split_per_class(labels, 0.01, seed=0)


def test_the_real_images(shared: Path, tmp_path: Path) -> None:
    place = add_dogs_vs_cats(shared / "dogs-vs-cats" / "train.zip")
    assert np.bincount(place.labels).tolist() == [1001, 1001]
    assert place.names[1000:1002] == ["cat.1000.jpg", "dog.0.jpg"]
    images = load_images(place, 16)
    assert images.shape == (2002, 16, 16, 3)
    assert 90 < images.mean() < 140  # photographs of middle brightness
    assert abs(images[:1001].mean() - images[1001:].mean()) < 10  # without the light effect
