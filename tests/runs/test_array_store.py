from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.runs import CorruptRunError
from dynamics_cli.runs.store.arrays import ArrayWriter, Header, check_array, decode_header, read_array

SHAPES = [(), (3,), (4, 2)]


def rows_of(shape: tuple[int, ...], first: int, last: int, dtype: str = "float64") -> np.ndarray:
    size = int(np.prod(shape, dtype=int))
    return (np.arange(first * size, last * size).reshape(last - first, *shape) * 1.5).astype(dtype)


def write(path: Path, shape: tuple[int, ...], ends: list[int]) -> list[int]:
    """Append blocks of rows; return the checksum after each number of rows that the array has had."""
    with closing(ArrayWriter(path, shape, "float64")) as writer:
        checksums = [writer.checksum]
        for first, last in zip([0, *ends], ends, strict=False):
            writer.append(rows_of(shape, first, last))
            checksums.append(writer.checksum)
    return checksums


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16"])
def test_numpy_reads_the_file_at_any_moment(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    path = tmp_path / "w.npy"
    offsets = set()
    with closing(ArrayWriter(path, shape, dtype)) as writer:
        for n in range(13):
            expected = rows_of(shape, 0, n, dtype)
            for loaded in (np.load(path, allow_pickle=False), np.load(path, mmap_mode="r"), read_array(path)):
                assert loaded.dtype == np.dtype(dtype)
                assert loaded.shape == (n, *shape)
                np.testing.assert_array_equal(loaded, expected)
            assert check_array(path, "", n, writer.checksum) == n
            offsets.add(path.stat().st_size - expected.nbytes)
            writer.append(rows_of(shape, n, n + 1, dtype))
    assert len(offsets) == 1
    assert offsets.pop() % 64 == 0


@pytest.mark.parametrize("rows", [0, 1, 10**9, 10**20 - 1])
def test_header_length_does_not_depend_on_the_number_of_rows(rows: int) -> None:
    header = Header(np.dtype("float32"), (60, 2), rows, 1, 2**32 - 1)
    assert len(header.encode()) == len(header._replace(rows=0, checksum=0).encode())
    assert decode_header(header.encode()) == header


@pytest.mark.parametrize(
    "rows", [np.zeros((2, 3)), np.zeros((2, 2), np.float32), np.zeros(2), np.zeros((1, 2, 1)), np.zeros((2, 2), object)]
)
def test_rows_of_another_shape_or_dtype_are_refused(tmp_path: Path, rows: np.ndarray) -> None:
    with closing(ArrayWriter(tmp_path / "w.npy", (2,), "float64")) as writer:
        with pytest.raises(ValueError, match=r"w\.npy: rows .* instead of \(k, 2\) float64"):
            writer.append(rows)
        writer.append(np.ones((1, 2)))
        assert writer.rows == 1


@pytest.mark.parametrize(("shape", "dtype"), [((), object), ((0,), "f8"), ((2,), "U4"), ((2,), "c16")])
def test_rows_that_cannot_be_stored_are_refused(tmp_path: Path, shape: tuple[int, ...], dtype: object) -> None:
    with pytest.raises(ValueError, match="cannot store rows"):
        ArrayWriter(tmp_path / "w.npy", shape, dtype)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_non_contiguous_rows_and_empty_blocks(tmp_path: Path) -> None:
    base = np.arange(24.0).reshape(4, 6)
    with closing(ArrayWriter(tmp_path / "w.npy", (3,), "float64")) as writer:
        for block in (base[:0, :3], base[::2, ::2], np.asfortranarray(base[:, 3:])):
            writer.append(block)
    np.testing.assert_array_equal(read_array(tmp_path / "w.npy"), np.vstack([base[::2, ::2], base[:, 3:]]))
    assert check_array(tmp_path / "w.npy", "", 6) == 6


@pytest.mark.parametrize("shape", [(), (2,)])
def test_an_append_torn_at_every_byte_is_dropped(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Rows are torn before the header is written, the header after them: what is torn is never believed."""
    path = tmp_path / "w.npy"
    checksum = write(path, shape, [7, 9])[-1]
    old = path.read_bytes()
    write(path, shape, [7, 9, 12])
    new, header = path.read_bytes(), len(old) - rows_of(shape, 0, 9).nbytes
    torn = [old[:header] + new[header:cut] for cut in range(len(old), len(new) + 1)]
    torn += [new[:cut] + old[cut:header] + new[header:] for cut in range(1, header)]
    read = {"all": 0, "before": 0, "refused": 0}
    for content in torn:
        path.write_bytes(content)
        with suppress(CorruptRunError):
            rows = check_array(path, "")
            np.testing.assert_array_equal(read_array(path), rows_of(shape, 0, rows))
            np.testing.assert_array_equal(np.load(path), rows_of(shape, 0, rows))
            read[{9: "before", 12: "all"}[rows]] += 1
        with closing(ArrayWriter.reopen(path, 9, checksum)) as writer:
            assert path.read_bytes() == old
            writer.append(rows_of(shape, 9, 12))
        assert path.read_bytes() == new
    assert read["before"] > 24
    assert read["all"] > 0
    assert sum(read.values()) < len(torn)  # the others are refused


def test_the_array_of_another_owner_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    with closing(ArrayWriter(path, (), "float64", "abc losses")) as writer:
        writer.append(np.arange(4.0))
    assert check_array(path, "abc losses", 4) == check_array(path, None, 4) == 4
    for read in (lambda: check_array(path, "abd losses"), lambda: ArrayWriter.reopen(path, 4, None, "abd losses")):
        with pytest.raises(CorruptRunError, match="belongs to another run"):
            read()


def test_reopening_keeps_the_rows_of_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    checksums = write(path, (), [4, 10])
    whole = path.read_bytes()
    for content, rows, checksum, fits in (
        (whole[:-1] + b"x", 4, checksums[1], True),  # damage behind does not matter
        (whole[:-1] + b"x", 4, None, False),
        (whole[:-1] + b"x", 10, checksums[2], False),
        (whole[:140] + b"x" + whole[141:], 4, checksums[1], False),
        (whole[:140], 4, checksums[1], False),
        (whole, 4, None, True),
        (whole, 4, checksums[2], False),
        (whole, 11, None, False),
        (whole, 0, checksums[0], True),
    ):
        path.write_bytes(content)
        if not fits:
            with pytest.raises(CorruptRunError, match=rf"its first {rows} rows, which are needed, do not fit"):
                ArrayWriter.reopen(path, rows, checksum)
            continue
        with closing(ArrayWriter.reopen(path, rows, checksum)) as writer:
            assert check_array(path, "", rows) == rows
            writer.append(rows_of((), rows, 10))
        assert check_array(path, "", 10, checksums[2]) == 10


def test_reading_refuses_files_that_are_not_ours(tmp_path: Path) -> None:
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "plain.npy", np.arange(3))
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "bomb.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\x0f" + b"(" * 4095)
    for name in ("object", "plain", "text", "bomb"):
        with pytest.raises(CorruptRunError, match="not one that dyn writes"):
            read_array(tmp_path / f"{name}.npy")
    with pytest.raises(CorruptRunError, match="cannot be read"):
        read_array(tmp_path / "missing.npy")
