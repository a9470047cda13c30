"""Archives of arrays that NumPy did not write, and tables that are none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from dynamics_cli.datasets.files.tables import read_npz, read_samples
from dynamics_cli.errors import DataMissingError, InputError


def test_reads_what_numpy_writes(tmp_path: Path) -> None:
    arrays = {"x": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "y": np.array([1, 2], ">i2"), "z": np.float32(3)}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_npz(tmp_path / "a.npz", required=("x",), optional=("y", "z", "none"))
        assert list(found) == ["x", "y", "z"]
        for name, array in found.items():
            np.testing.assert_array_equal(array, arrays[name])
            assert array.dtype == arrays[name].dtype


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"x": 1.0}, "no array 'y'; the file holds x"), ({}, "no array 'x'; the file holds nothing"),
        ({f"a{k}": k for k in range(20)}, "the file holds a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, ..."),
        ({"x": "a", "y": 1}, "x holds <U1, numbers are needed"), ({"x": 1j, "y": 1}, "x holds complex128, numbers"),
        ({"x": np.array([{}]), "y": 1}, "Object arrays cannot be loaded when allow_pickle=False"),
        ({"x": np.zeros(2**20), "y": 1}, "x takes 0.0 GiB of memory, this machine has 0.0 GiB free"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_samples(
    arrays: dict[str, object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**20))
    with pytest.raises(InputError) as caught:
        read_npz(tmp_path / "a.npz", required=("x", "y"))
    assert told in str(caught.value)


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-30], lambda d: d[:200] + b"xxxx" + d[204:]])
def test_damaged_archives(damage, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(50.0), y=np.arange(50.0))
    (tmp_path / "a.npz").write_bytes(damage((tmp_path / "a.npz").read_bytes()))
    with pytest.raises(InputError, match="not a readable .npz file of plain arrays"):
        read_npz(tmp_path / "a.npz", required=("x", "y"))


def test_a_csv_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for text, told in (
        ("9" * 200_000 + ",1\n", r"not a table of numbers \(field larger than field limit"),
        ("1," + "x" * 200 + "\n", r"column 2 holds 'x{60}'\.\.\., not a number"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=told):
            read_samples(path)
    with pytest.raises(DataMissingError):
        read_samples(tmp_path / ("x" * 5000 + ".csv"))
