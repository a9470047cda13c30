"""Archives of arrays that NumPy did not write."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from dynamics_cli.datasets.files.archive import MAX_READ, open_archive
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import InputError
from tests.fuzz.arrays import X, Y, archive, npy, of
from tests.fuzz.strategies import encrypted

GOOD = {"x.npy": X, "y.npy": Y}


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_npz(path, required=("x", "y"))
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_reads_what_numpy_writes(tmp_path: Path) -> None:
    arrays = {"x": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "y": np.array([1, 2], ">i2"), "z": np.float32(3)}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_npz(tmp_path / "a.npz", required=("x",), optional=("y", "z", "none"))
        assert list(found) == ["x", "y", "z"]
        for name, array in found.items():
            np.testing.assert_array_equal(array, arrays[name])
            assert array.dtype == arrays[name].dtype
            assert array.flags.writeable or array.ndim == 0


def test_long_headers_and_comments(tmp_path: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" + " " * 100 + "\n"
    content = archive({"x.npy": npy(header, bytes(24), (2, 0)), "y.npy": Y})
    (tmp_path / "a.npz").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as made:
        made.comment = b"by hand"
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz", required=("x",))["x"], np.zeros(3))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"x.npy": X}, "no array 'y'; the file holds x"),
        ({}, "no array 'x'; the file holds nothing"),
        ({f"{k}.npy": b"" for k in range(20)}, "no array 'x'; the file holds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."),
        ({"x.npy": b"", "y.npy": Y}, "plain arrays (EOF: reading magic string, expected 8 bytes got 0)"),
        ({"x.npy": b"text, not an array", "y.npy": Y}, "plain arrays (the magic string is not correct"),
        ({"x.npy": npy("{}", version=(9, 9)), "y.npy": Y}, "plain arrays (we only support format version"),
        ({"x.npy": X[:-8], "y.npy": Y}, "plain arrays (EOF: reading array data, expected 72 bytes got 64)"),
        ({"x.npy": X + b"more", "y.npy": Y}, "plain arrays (x.npy goes on after an array of shape (3, 3))"),
        ({"x.npy": of(np.array(["a"])), "y.npy": Y}, "x holds <U1, numbers are needed"),
        ({"x.npy": of(np.array([1j])), "y.npy": Y}, "x holds complex128, numbers are needed"),
        ({"x.npy": of(np.array([{}]), allow_pickle=True), "y.npy": Y},
         "plain arrays (Object arrays cannot be loaded when allow_pickle=False)"),
    ],
)  # fmt: skip
def test_members_that_are_no_numbers(members: dict[str, bytes], told: str, tmp_path: Path) -> None:
    assert told in refusal(tmp_path / "a.npz", archive(members))


@pytest.mark.parametrize(
    "content",
    [*(archive(GOOD, packing) for packing in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)), encrypted(archive(GOOD))],
)
def test_other_packings(content: bytes, tmp_path: Path) -> None:
    told = refusal(tmp_path / "a.npz", content)
    assert "'x.npy' is encrypted, or packed in a way that is not read here" in told


def test_more_than_fits_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=71))
    told = refusal(tmp_path / "a.npz", archive(GOOD))
    assert told == "x takes 0.0 GiB of memory, this machine has 0.0 GiB free"


def test_tables_of_contents_that_are_too_long(tmp_path: Path) -> None:
    path, long = tmp_path / "a.zip", MAX_READ + 1
    near = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, long, 0, 0)
    far = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, long, 0)
    far += b"PK\x06\x07" + struct.pack("<IQI", 0, long, 1)
    far += b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0, 0, 2**32 - 1, 0, 0)
    for end in (near, far):
        path.write_bytes(bytes(long) + end)
        with (
            pytest.raises(zipfile.BadZipFile, match=f"table of contents takes {long} bytes, at most"),
            open_archive(path),
        ):
            pass
    for content in (b"", b"PK\x05\x06", b"no archive at all, yet longer than an end", b"PK\x05\x06" + b"x" * 3):
        path.write_bytes(content)
        with pytest.raises(zipfile.BadZipFile, match="File is not a zip file"), open_archive(path):
            pass
    for none in (tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(zipfile.BadZipFile, match="there is no such file"), open_archive(none):
            pass
