"""CIFAR-10 from an archive of the published form with two images a class: downloaded, added, damaged, trained on."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.datasets import images
from dynamics_cli.datasets.files import cifar10
from dynamics_cli.datasets.files.catalogue import PUBLISHED, list_data, remove_data
from dynamics_cli.datasets.files.fetch import fetch
from dynamics_cli.datasets.files.store import Original
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import Streams

from .test_fetch import Mirror

RNG = np.random.default_rng(0)
BATCHES = {
    name: np.column_stack([np.repeat(np.arange(10)[::-1], 2), RNG.integers(0, 256, (20, 3072))]).astype(np.uint8)
    for names in cifar10.MEMBERS.values() for name in names
}  # fmt: skip


def packed() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, batch in BATCHES.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = batch.size
            archive.addfile(member, io.BytesIO(batch.tobytes()))
    return stream.getvalue()


DATA = packed()
TOY = Original(cifar10.CIFAR10.files[0].name, hashlib.sha256(DATA).hexdigest(), len(DATA))
SET = replace(cifar10.CIFAR10, files=(TOY,))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, data_home: Path) -> Path:
    monkeypatch.setattr(images, "load_cifar10", lambda part: cifar10.load_cifar10(part, SET))
    return data_home / "cifar10"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    found = Mirror({TOY.name: DATA})
    yield found
    found.close()


def test_it_is_downloaded_once_and_trained_on(mirror: Mirror, toy: Path) -> None:
    source = replace(SET, mirrors=[mirror.address])
    assert [fetch(source, scheme="http") for _ in range(2)] == [toy, toy]
    assert mirror.asked == [TOY.name]
    data = images.Cifar10(per_class=3, test_per_class=1).samples(Streams(0))
    assert (data.x.shape, data.x_test.shape) == ((30, 3072), (10, 3072))
    assert data.y.tolist() == [k for k in range(10) for _ in range(3)]
    batch = BATCHES["data_batch_1.bin"]
    np.testing.assert_array_equal(data.x[:2] * 255, batch[batch[:, 0] == 0, 1:])
    centred = images.Cifar10(center=True, test=False, scale="raw").samples(Streams(0))
    assert centred.n == 100
    np.testing.assert_allclose(centred.x.mean(0), 0, atol=1e-10)


def test_another_file_is_refused_however_it_comes(mirror: Mirror, toy: Path, tmp_path: Path) -> None:
    mirror.pages[TOY.name] = DATA[:-1] + b"x"
    with pytest.raises(DataMissingError, match=r"CIFAR-10's .* could not be downloaded:\n.*SHA-256"):
        fetch(replace(SET, mirrors=[mirror.address]), scheme="http")
    (tmp_path / TOY.name).write_bytes(mirror.pages[TOY.name])
    for path in (tmp_path, tmp_path / TOY.name, tmp_path / "nothing"):
        with pytest.raises(InputError, match=r"SHA-256|No such file"):
            SET.add(path)
    assert not (toy / TOY.name).exists()
    with pytest.raises(DataMissingError, match="dyn data fetch cifar10"):
        images.Cifar10().samples(Streams(0))


def test_an_archive_is_added_and_removed(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / TOY.name).write_bytes(DATA)
    assert SET.add(tmp_path) == SET.add(tmp_path / TOY.name) == toy
    with pytest.raises(InputError, match="per_class is 11, there are 10 such images of class 0"):
        images.Cifar10(per_class=11).samples(Streams(0))
    monkeypatch.setitem(PUBLISHED, "cifar10", SET)
    assert {one["name"]: one["state"] for one in list_data()}["cifar10"] == "here"
    assert remove_data("cifar10") == len(DATA)
    assert {one["name"]: one["state"] for one in list_data()}["cifar10"] == "missing"


@pytest.mark.parametrize(
    ("loss", "outputs", "place"), [("logistic", 1, "dataset.kind"), ("cross_entropy", 9, "architecture.outputs")]
)
def test_another_number_of_classes(loss: str, outputs: int, place: str) -> None:
    config = {
        "name": "c", "dataset": {"kind": "cifar10"}, "loss": {"kind": loss},
        "architecture": {"kind": "fully_connected", "widths": [3], "outputs": outputs},
        "initialization": {"kind": "default_scaled"}, "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 1},
    }  # fmt: skip
    with pytest.raises(ConfigError) as error:
        load_config(config)
    assert [problem.key for problem in error.value.problems] == [place]
