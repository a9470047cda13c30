from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.datasets.files.mnist import Bytes
from dynamics_cli.datasets.files.store import Original


def header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an IDX file of unsigned bytes."""
    return bytes([0, 0, 8, len(shape)]) + b"".join(length.to_bytes(4, "big") for length in shape)


@pytest.fixture
def shared() -> Path:
    """The directory of real data; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("DYN_SHARED", Path(__file__).parents[3] / "shared"))
    if not (root / "data").is_dir():
        pytest.skip("the shared data are not here")
    return root / "data"


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for data files."""
    home = tmp_path / "data-home"
    monkeypatch.setenv("DYN_DATA", str(home))
    monkeypatch.delenv("DYN_OFFLINE", raising=False)
    return home


@pytest.fixture
def toy_arrays() -> dict[str, Bytes]:
    """Contents of four small files of MNIST's form: 60 images of 10 digits to train, 20 to test."""
    rng = np.random.default_rng(0)
    return {
        "toy-images-idx3-ubyte": rng.integers(0, 256, (60, 28, 28), dtype=np.uint8),
        "toy-labels-idx1-ubyte": np.arange(60, dtype=np.uint8) % 10,
        "toytest-images-idx3-ubyte": rng.integers(0, 256, (20, 28, 28), dtype=np.uint8),
        "toytest-labels-idx1-ubyte": np.arange(20, dtype=np.uint8) % 10,
    }


@pytest.fixture
def toy_contents(toy_arrays: dict[str, Bytes]) -> dict[str, bytes]:
    return {name: header(array.shape) + array.tobytes() for name, array in toy_arrays.items()}


@pytest.fixture
def toy_files(toy_contents: dict[str, bytes]) -> list[Original]:
    return [
        Original(name, hashlib.sha256(content).hexdigest(), len(content), zipped=True)
        for name, content in toy_contents.items()
    ]


def jpeg(colour: tuple[int, int, int] = (200, 100, 50), size: tuple[int, int] = (40, 30)) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "JPEG", quality=90)
    return content.getvalue()


def pets(cats: int = 3, dogs: int = 3) -> dict[str, bytes]:
    """Names and contents of a small Dogs vs. Cats; every image is different."""
    found = {f"cat.{k}.jpg": jpeg((10 * k, 20, 30)) for k in range(cats)}
    return found | {f"dog.{k}.jpg": jpeg((200, 20 * k, 250)) for k in range(dogs)}


def zip_of(path: Path, contents: Mapping[str, bytes], prefix: str = "train/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            archive.writestr(prefix + name, content)
    return path


def folder_of(path: Path, contents: Mapping[str, bytes]) -> Path:
    path.mkdir(parents=True)
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path
