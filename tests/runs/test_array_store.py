import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store.arrays import (
    ArrayWriter,
    Header,
    check_array,
    decode_header,
    map_array,
)

SHAPES = [(), (3,), (4, 2)]


def rows_of(shape, first, last, dtype="float64"):
    size = int(np.prod(shape, dtype=int))
    return (np.arange(first * size, last * size).reshape(last - first, *shape) * 1.5).astype(dtype)


def append(writer, rows):
    writer.rows, writer.crc32 = writer.append(rows)
    writer.write_header()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16"])
def test_numpy_reads_the_rows_that_count(tmp_path, shape, dtype):
    path = tmp_path / "w.npy"
    writer = ArrayWriter(path, shape, dtype)
    offsets = set()
    for n in range(5):
        expected = rows_of(shape, 0, n, dtype)
        mapped = map_array(path, check_array(path, n, writer.crc32, ended=True), n)
        offsets.add(path.stat().st_size - expected.nbytes)
        writer.append(rows_of(shape, n, n + 2, dtype))  # flushed, not counted
        for loaded in (np.load(path, allow_pickle=False), np.load(path, mmap_mode="r"), mapped):
            assert (loaded.dtype, loaded.shape) == (np.dtype(dtype), (n, *shape))
            assert_array_equal(loaded, expected)
        append(writer, rows_of(shape, n, n + 1, dtype))
        ArrayWriter.reopen(path, n + 1, writer.crc32)  # cuts what does not count
    assert len(offsets) == 1
    assert offsets.pop() % 64 == 0


@pytest.mark.parametrize("rows", [0, 1, 10**9, 10**20 - 1])
def test_header_length_does_not_depend_on_the_number_of_rows(rows):
    header = Header(np.dtype("float32"), (60, 2), rows)
    assert len(header.encode()) == len(header._replace(rows=0).encode())
    assert decode_header(header.encode()) == header


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((2, 3)),
        np.zeros((2, 2), np.float32),
        np.zeros(2),
        np.zeros((1, 2, 1)),
        np.zeros((2, 2), object),
    ],
)
def test_rows_of_another_shape_or_dtype_are_refused(tmp_path, rows):
    writer = ArrayWriter(tmp_path / "w.npy", (2,), "float64")
    with pytest.raises(ValueError, match=r"w\.npy: rows .* instead of \(k, 2\) float64"):
        writer.append(rows)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((), object), ((0,), "f8"), ((2,), "U4"), ((2,), "c16")]
)
def test_rows_that_cannot_be_stored_are_refused(tmp_path, shape, dtype):
    with pytest.raises(ValueError, match="cannot store rows"):
        ArrayWriter(tmp_path / "w.npy", shape, dtype)
    assert not list(tmp_path.iterdir())


def test_non_contiguous_rows_and_empty_blocks(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    writer = ArrayWriter(tmp_path / "w.npy", (3,), "float64")
    for block in (base[:0, :3], base[::2, ::2], np.asfortranarray(base[:, 3:])):
        append(writer, block)
    assert_array_equal(np.load(tmp_path / "w.npy"), np.vstack([base[::2, ::2], base[:, 3:]]))


def test_reading_refuses_files_that_are_not_ours(tmp_path):
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "plain.npy", np.arange(3))
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "bomb.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\x0f" + b"(" * 4095)
    for name in ("object", "plain", "text", "bomb"):
        with pytest.raises(CorruptRunError, match="not one that dyn writes"):
            check_array(tmp_path / f"{name}.npy", 0, 0)
