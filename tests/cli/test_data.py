from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.cli.data import NAMES
from dynamics_cli.datasets.files.catalogue import list_data

from .conftest import ROOT, Dyn

SHARED = Path(os.environ.get("DYN_SHARED", ROOT.parent / "shared")) / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DYN_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("DYN_OFFLINE", raising=False)
    return tmp_path / "home"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A folder of two cats and two dogs."""
    folder = tmp_path / "train"
    folder.mkdir()
    for k, kind in enumerate(("cat", "dog", "cat", "dog")):
        Image.new("RGB", (20, 20), (60 * k, 10, 10)).save(folder / f"{kind}.{k // 2}.jpg")
    return folder


def entry(dyn: Dyn, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = dyn("data", "list", "--json").json
    return next(item for item in found if item["name"] == name)


def test_names_are_those_of_the_catalogue() -> None:
    assert tuple(item["name"] for item in list_data()) == NAMES


def test_list_says_what_is_missing_and_how_to_get_it(dyn: Dyn, data_home: Path) -> None:
    answer = dyn("data", "list")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [
        ["mnist-subset", "embedded"],
        ["mnist", "missing"],
        ["cifar10", "missing"],
        ["dogs-vs-cats", "missing"],
    ]
    assert "CC BY-SA 3.0" in answer.out
    assert "LeCun" in answer.out
    assert "mnist is missing: `dyn data fetch mnist` downloads it" in answer.err
    assert "dogs-vs-cats is missing: download train.zip from https://www.kaggle.com/c/dogs-vs-cats/data" in answer.err
    answer = dyn("data", "list", "--json")
    assert answer.err == ""
    assert [item["state"] for item in answer.json] == ["embedded", "missing", "missing", "missing"]
    assert answer.json[1]["path"] == str(data_home / "mnist")
    assert not data_home.exists()  # looking makes nothing


def test_path(dyn: Dyn) -> None:
    answer = dyn("data", "path", "mnist-subset")
    assert (answer.code, answer.err) == (0, "")
    assert Path(answer.out.strip()).name == "mnist_subset.npz"
    assert dyn("data", "path", "mnist-subset", "--json").json == {"name": "mnist-subset", "path": answer.out.strip()}


def test_offline_is_respected(dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    first = dyn("data", "fetch", "mnist", "--offline")
    monkeypatch.setenv("DYN_OFFLINE", "1")
    assert dyn("data", "fetch", "mnist") == first
    assert first.code == 4


def test_pets_are_added_listed_and_forgotten(dyn: Dyn, pets: Path, data_home: Path) -> None:
    answer = dyn("data", "add", "dogs-vs-cats", pets)
    assert (answer.code, answer.out) == (0, f"{pets}\n")
    assert "2 cats and 2 dogs of 12500 each, all readable" in answer.err
    assert dyn("data", "path", "dogs-vs-cats").out == f"{pets}\n"
    found = entry(dyn, "dogs-vs-cats")
    assert (found["state"], found["path"]) == ("here", str(pets))
    assert found["size"] > 0
    assert "2 cats and 2 dogs" in dyn("data", "list").out
    pets.rename(pets.with_name("elsewhere"))
    assert entry(dyn, "dogs-vs-cats")["state"] == "moved"
    answer = dyn("data", "path", "dogs-vs-cats")
    assert answer.code == 4
    assert f"dogs-vs-cats is no longer at {pets}" in answer.err
    answer = dyn("data", "remove", "dogs-vs-cats")
    assert answer.code == 0
    assert " freed" in answer.err
    assert len(list(pets.with_name("elsewhere").iterdir())) == 4
    assert entry(dyn, "dogs-vs-cats")["state"] == "missing"
    assert dyn("data", "remove", "dogs-vs-cats").err == "dogs-vs-cats: there was nothing to remove\n"


def test_quiet_says_nothing(dyn: Dyn, pets: Path) -> None:
    assert dyn("data", "add", "dogs-vs-cats", pets, "--quiet").err == ""
    assert dyn("data", "remove", "dogs-vs-cats", "-q").err == ""


def test_broken_pets_are_named(dyn: Dyn, pets: Path, data_home: Path) -> None:
    (pets / "dog.1.jpg").write_bytes(b"no picture")
    answer = dyn("data", "add", "dogs-vs-cats", pets)
    assert answer.code == 3
    assert "1 of 4 images cannot be used:\n  dog.1.jpg: not a JPEG\n" in answer.err
    assert entry(dyn, "dogs-vs-cats")["state"] == "missing"


@pytest.mark.parametrize(
    ("file", "content", "state", "code", "told"),
    [
        ("dogs-vs-cats/place.json", b"{", "damaged", 3, "place.json: is damaged"),
        ("mnist/train-labels-idx1-ubyte", bytes(60008), "incomplete", 4, "mnist is incomplete in"),
    ],
)
def test_sets_that_are_damaged_or_incomplete_are_shown(
    file: str, content: bytes, state: str, code: int, told: str, dyn: Dyn, data_home: Path
) -> None:
    (data_home / file).parent.mkdir(parents=True)
    (data_home / file).write_bytes(content)
    name = file.partition("/")[0]
    answer = dyn("data", "path", name)
    assert (entry(dyn, name)["state"], answer.code, told in answer.err) == (state, code, True)


def test_a_place_that_cannot_be_written(dyn: Dyn, pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYN_DATA", str(pets / "cat.0.jpg" / "below a file"))
    answer = dyn("data", "add", "dogs-vs-cats", pets)
    assert answer.code == 7
    assert "set DYN_DATA to a directory that can be written" in answer.err


@needs_shared
def test_mnist_is_added_and_used(dyn: Dyn) -> None:
    digits = "dataset={kind: mnist_pair, digits: [3, 8], per_class: 20, source: full, test_per_class: 5}"
    train = ["train", "toy.yaml", "--set", digits, "--set", "loss.kind=logistic"]
    answer = dyn(*train)
    assert answer.code == 4
    assert "MNIST is not in" in answer.err
    assert dyn("data", "add", "mnist", SHARED / "mnist").code == 0
    assert entry(dyn, "mnist")["state"] == "here"
    assert dyn("data", "fetch", "mnist", "--offline").out == dyn("data", "path", "mnist").out
    assert dyn(*train).code == 0
    assert dyn("data", "remove", "mnist").err == "mnist: 52.4 MiB freed\n"


@needs_shared
def test_real_pets_are_added(dyn: Dyn) -> None:
    answer = dyn("data", "add", "dogs-vs-cats", SHARED / "dogs-vs-cats" / "train.zip")
    assert answer.code == 0
    assert "1001 cats and 1001 dogs of 12500 each, all readable" in answer.err


def test_runs_record_which_mnist_was_used(dyn: Dyn, tmp_path: Path) -> None:
    digits = "dataset={kind: mnist_pair, digits: [1, 0], per_class: 10, test_per_class: 5, center: true}"
    train = ["train", "toy.yaml", "--set", digits, "--set", "loss.kind=exponential", "--set", "optimizer.lr=1e-4"]
    assert dyn(*train, "--out", tmp_path / "run").code == 0
    assert "source: subset" in (tmp_path / "run" / "config.yaml").read_text()
    losses = np.load(tmp_path / "run" / "losses.npy")
    assert np.isfinite(losses).all()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("mnist", "t10k-images-idx3-ubyte"),
        *(
            ("dogs-vs-cats", name)
            for name in ("place.json", "cache/0-64-v1/images.npy", "cache/0-64-v1.npz", "cache/.lock")
        ),
    ],
)
def test_remove_deletes_no_file_of_others(name: str, ours: str, dyn: Dyn, data_home: Path) -> None:
    kept, own = data_home / name / ours, data_home / name / "notes" / "mine.txt"
    for file in (kept, own):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    answer = dyn("data", "remove", name)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"Error: {own} is not of dyn, and would be deleted: move it away")
    assert (kept.exists(), own.exists()) == (True, True)
    own.unlink()
    assert dyn("data", "remove", name).code == 0
    assert not kept.exists()
