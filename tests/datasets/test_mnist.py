from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.datasets.files import mnist
from dynamics_cli.datasets.files.mnist import Bytes
from dynamics_cli.datasets.files.store import Original
from dynamics_cli.errors import DataMissingError, InputError

from .build_subset import build_subset, write_subset

# MD5 of the uncompressed files, as published by many that use them
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
PARTS = {part: (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte") for part in ("toy", "toytest")}
SUBSET_SHA256 = "84d1f17eef6cbcbfff07550bad232f71f751c1d474406956cb3686b16a7167b2"


def test_the_pinned_files_are_the_original_ones(shared: Path) -> None:
    assert {file.name for file in mnist.MNIST.files} == set(MD5)
    for file in mnist.MNIST.files:
        content = gzip.decompress((shared / "mnist" / f"{file.name}.gz").read_bytes())
        assert hashlib.md5(content).hexdigest() == MD5[file.name]
        assert hashlib.sha256(content).hexdigest() == file.sha256
        assert len(content) == file.size


def test_the_subset_is_built_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    build_subset(shared / "mnist", tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == mnist.SUBSET.read_bytes()


def test_the_subset_is_what_was_built() -> None:
    assert hashlib.sha256(mnist.SUBSET.read_bytes()).hexdigest() == SUBSET_SHA256
    assert 2.5e6 < mnist.SUBSET.stat().st_size < 3.5e6
    notice = (mnist.SUBSET.parent / "README.md").read_text(encoding="utf-8")
    for word in ("LeCun", "Cortes", "Attribution-ShareAlike 3.0"):
        assert word in notice


def test_the_subset_is_the_beginning_of_each_digit(shared: Path) -> None:
    mnist.MNIST.add(shared / "mnist")
    for part, count in (("train", 1000), ("test", 200)):
        found, full = (mnist.load_mnist(source, part) for source in ("subset", "full"))
        assert list(found) == list(range(10))
        for digit, images in found.items():
            assert images.shape == (count, 28, 28)
            np.testing.assert_array_equal(images, full[digit][:count])


def test_a_subset_written_and_read_is_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    images = {d: rng.integers(0, 3, (5, 28, 28), dtype=np.uint8) for d in (4, 7)}
    for name in ("a.npz", "b.npz"):
        write_subset(tmp_path / name, {"train": images})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = mnist.read_subset("train", [7, 4], tmp_path / "a.npz")
    assert list(again) == [7, 4]
    for digit, found in again.items():
        np.testing.assert_array_equal(found, images[digit])


def test_the_readme_of_the_subset_says_how_it_is_read() -> None:
    with np.load(mnist.SUBSET, allow_pickle=False) as arrays:
        images = np.zeros((1000, 784), np.uint8)
        images[np.unpackbits(arrays["train_3_ink"], axis=1).astype(bool)] = arrays["train_3_values"]
    np.testing.assert_array_equal(images, mnist.load_mnist("subset", "train", [3])[3].reshape(1000, 784))


@pytest.mark.parametrize("cut", [0, 100, 100_000])
def test_a_damaged_subset_is_told(cut: int, tmp_path: Path) -> None:
    (tmp_path / "subset.npz").write_bytes(mnist.SUBSET.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"this MNIST subset is damaged .*; install dyn again"):
        mnist.read_subset("train", [0], tmp_path / "subset.npz")


def test_a_flipped_bit_in_the_subset_is_told(tmp_path: Path) -> None:
    content = bytearray(mnist.SUBSET.read_bytes())
    content[20_000] ^= 1
    (tmp_path / "subset.npz").write_bytes(content)
    with pytest.raises(InputError, match="Bad CRC-32"):
        mnist.read_subset("train", [0], tmp_path / "subset.npz")


def test_the_full_set_that_is_missing_is_told(data_home: Path) -> None:
    assert mnist.MNIST.missing()
    with pytest.raises(DataMissingError) as caught:
        mnist.load_mnist("full", "train")
    assert str(data_home / "mnist") in str(caught.value)
    assert "`dyn data fetch mnist` downloads it" in str(caught.value)
    assert "`dyn data add mnist PATH`" in str(caught.value)


@pytest.mark.parametrize("form", ["{}", "{}.gz", "dotted {}"])
def test_added_files_are_read(
    form: str, tmp_path: Path, data_home: Path, toy_contents: dict[str, bytes], toy_arrays: dict[str, Bytes],
    toy_files: list[Original],
) -> None:  # fmt: skip
    toy = replace(mnist.MNIST, files=toy_files)
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, content in toy_contents.items():
        spelled = name.replace("-idx", ".idx") if "dotted" in form else form.format(name)
        (mine / spelled).write_bytes(gzip.compress(content) if spelled.endswith(".gz") else content)
    assert toy.add(mine) == data_home / "mnist"
    assert not toy.missing()
    assert {path.name: path.read_bytes() for path in (data_home / "mnist").iterdir() if path.name != ".lock"} == (
        toy_contents
    )
    images, labels = toy_arrays["toy-images-idx3-ubyte"], toy_arrays["toy-labels-idx1-ubyte"]
    found = mnist.load_mnist("full", "toy", [8, 3], toy, PARTS)
    assert list(found) == [8, 3]
    np.testing.assert_array_equal(found[3], images[labels == 3])
    assert mnist.load_mnist("full", "toytest", [0], toy, PARTS)[0].shape == (2, 28, 28)


def test_what_is_not_mnist_is_not_added(
    tmp_path: Path, data_home: Path, toy_contents: dict[str, bytes], toy_files: list[Original]
) -> None:
    mine, toy = tmp_path / "mine", replace(mnist.MNIST, files=toy_files)
    with pytest.raises(InputError, match="holds no toy-images-idx3-ubyte or toy-images-idx3-ubyte.gz; needed are all"):
        toy.add(mine)
    mine.mkdir()
    with pytest.raises(InputError, match="holds no toy-images-idx3-ubyte or toy-images-idx3-ubyte.gz"):
        toy.add(mine)
    for name, content in toy_contents.items():
        (mine / name).write_bytes(content)
    wrong = mine / "toytest-labels-idx1-ubyte"  # the last one: nothing of the others may be kept
    labels = toy_contents[wrong.name]
    for content, message in [
        (labels[:-1] + b"\7", "its contents have 28 bytes and SHA-256 .*; those of toytest-labels"),
        (labels[:-1], "its contents have 27 bytes"), (b"", "its contents have 0 bytes"),
        (toy_contents["toy-labels-idx1-ubyte"], "its contents have 29 bytes"),
        (gzip.compress(labels)[:-9], "Compressed file ended"),
        (gzip.compress(labels)[:-8] + bytes(8), "CRC check failed"),
        (b"\x1f\x8b" + labels, "it is a damaged gzip file"),
        (gzip.compress(bytes(2**24)), "its contents have 29 bytes"),
    ]:  # fmt: skip
        wrong.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            toy.add(mine)
        assert str(wrong) in str(caught.value)
        assert not (data_home / "mnist").exists()


def test_a_flipped_bit_in_the_full_set_is_told(
    tmp_path: Path, toy_contents: dict[str, bytes], toy_files: list[Original]
) -> None:
    mine, toy = tmp_path / "mine", replace(mnist.MNIST, files=toy_files)
    mine.mkdir()
    for name, content in toy_contents.items():
        (mine / name).write_bytes(content)
    kept = toy.add(mine) / "toy-images-idx3-ubyte"
    content = bytearray(kept.read_bytes())
    content[1000] ^= 4
    kept.write_bytes(content)
    with pytest.raises(InputError, match=r"toy-images-idx3-ubyte: its contents have 47056 bytes"):
        mnist.load_mnist("full", "toy", [0], toy, PARTS)
