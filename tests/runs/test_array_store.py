from __future__ import annotations

import contextlib
import errno
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.errors import RunError
from dynamics_cli.runs import CorruptRunError
from dynamics_cli.runs.store.arrays import ArrayWriter, open_for_append, read_array, verify_array

SHAPES = [(), (3,), (4, 2)]


def rows_of(shape: tuple[int, ...], first: int, last: int, dtype: str = "float64") -> np.ndarray:
    size = int(np.prod(shape, dtype=int))
    return (np.arange(first * size, last * size).reshape(last - first, *shape) * 1.5).astype(dtype)


def write(path: Path, shape: tuple[int, ...], ends: list[int], dtype: str = "float64") -> np.ndarray:
    writer = ArrayWriter(path, shape, dtype)
    for first, last in zip([0, *ends], ends, strict=False):
        writer.append(rows_of(shape, first, last, dtype))
    writer.close()
    return rows_of(shape, 0, ends[-1] if ends else 0, dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16"])
def test_numpy_reads_the_file_at_any_moment(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    path = tmp_path / "w.npy"
    writer = ArrayWriter(path, shape, dtype)
    offset = 0
    for n in range(13):
        expected = rows_of(shape, 0, n, dtype)
        loaded = np.load(path, mmap_mode="r" if n else None, allow_pickle=False)
        assert loaded.dtype == np.dtype(dtype)
        assert loaded.shape == (n, *shape)
        np.testing.assert_array_equal(loaded, expected)
        np.testing.assert_array_equal(read_array(path), expected)
        assert verify_array(path, n) == n
        header = path.stat().st_size - expected.nbytes
        assert header % 64 == 0
        assert offset in (0, header)
        offset = header
        writer.append(rows_of(shape, n, n + 1, dtype))
    writer.close()


def test_header_length_does_not_depend_on_the_number_of_rows() -> None:
    from dynamics_cli.runs.store.array_format import Header, decode_header

    header = Header(np.dtype("float32"), (60, 2), 0)
    assert len({len(header.encode(rows)) for rows in (0, 1, 10**9, 10**20 - 1)}) == 1
    found = decode_header(header.encode(10**19))
    assert found is not None
    assert (found.dtype, found.row_shape, found.rows) == (np.dtype("float32"), (60, 2), 10**19)


def test_numpy_can_map_an_empty_array_of_rows_without_mapping(tmp_path: Path) -> None:
    ArrayWriter(tmp_path / "w.npy", (2,), "float32").close()
    assert np.load(tmp_path / "w.npy", mmap_mode="r").shape == (0, 2)


@pytest.mark.parametrize(
    "rows", [np.zeros((2, 3)), np.zeros((2, 2), np.float32), np.zeros(2), np.zeros((1, 2, 1)), np.zeros((2, 2), object)]
)
def test_rows_of_another_shape_or_dtype_are_refused(tmp_path: Path, rows: np.ndarray) -> None:
    writer = ArrayWriter(tmp_path / "w.npy", (2,), "float64")
    with pytest.raises(ValueError, match=r"w\.npy: rows .* instead of \(k, 2\) float64"):
        writer.append(rows)
    writer.append(np.ones((1, 2)))
    assert writer.rows == 1
    writer.close()


@pytest.mark.parametrize(("shape", "dtype"), [((), object), ((0,), "f8"), ((2,), "U4"), ((2,), "c16")])
def test_rows_that_cannot_be_stored_are_refused(tmp_path: Path, shape: tuple[int, ...], dtype: object) -> None:
    with pytest.raises(ValueError, match="cannot store rows"):
        ArrayWriter(tmp_path / "w.npy", shape, dtype)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_non_contiguous_rows_and_empty_blocks(tmp_path: Path) -> None:
    base = np.arange(24.0).reshape(4, 6)
    writer = ArrayWriter(tmp_path / "w.npy", (3,), "float64")
    writer.append(base[:0, :3])
    writer.append(base[::2, ::2])
    writer.append(np.asfortranarray(base[:, 3:]))
    writer.close()
    np.testing.assert_array_equal(read_array(tmp_path / "w.npy"), np.vstack([base[::2, ::2], base[:, 3:]]))
    assert verify_array(tmp_path / "w.npy", 6) == 6


@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_tail_torn_at_every_byte_is_dropped(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """An append of three rows is cut after every byte of its data, and its checksum record after every byte."""
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, ends in ((before, [2, 5]), (after, [2, 5, 8])):
        folder.mkdir()
        write(folder / "w.npy", shape, ends)
    data, old = (after / "w.npy").read_bytes(), (before / "w.npy").read_bytes()
    sums, old_sums = (after / "w.crc").read_bytes(), (before / "w.crc").read_bytes()
    header = len(old) - 5 * 8 * max(1, *shape, 1)
    states = [(data[:cut], old_sums) for cut in range(len(old), len(data) + 1)]
    states += [(data, sums[:cut]) for cut in range(len(old_sums), len(sums) + 1)]
    states += [(data[:-k] + bytes(k), sums) for k in range(1, 9)]  # data lost, its record not (power cut)
    case = tmp_path / "case"
    case.mkdir()
    expected = rows_of(shape, 0, 5)
    for content, record in states:
        (case / "w.npy").write_bytes(old[:header] + content[header:])
        (case / "w.crc").write_bytes(record)
        np.testing.assert_array_equal(np.load(case / "w.npy", mmap_mode="r"), expected)
        np.testing.assert_array_equal(read_array(case / "w.npy"), expected)
        assert verify_array(case / "w.npy") == 5
        writer = open_for_append(case / "w.npy")
        assert writer.rows == 5
        assert (case / "w.npy").read_bytes() == old
        assert (case / "w.crc").read_bytes() == old_sums
        writer.append(rows_of(shape, 5, 8))
        writer.close()
        assert (case / "w.npy").read_bytes() == data
        assert (case / "w.crc").read_bytes() == sums


def test_a_header_torn_at_every_byte_recovers(tmp_path: Path) -> None:
    """Only the 20 characters of the row count are ever rewritten; a mixture of old and new ones is never believed."""
    path = tmp_path / "w.npy"
    write(path, (), [9, 12])
    new = path.read_bytes()
    old = new.replace(b" 12,", b"  9,")
    at = next(i for i in range(len(new)) if new[i] != old[i])
    for cut in range(at, at + 3):
        path.write_bytes(new[:cut] + old[cut:])
        writer = open_for_append(path)
        assert writer.rows in (9, 12)
        writer.close()
        assert verify_array(path) in (9, 12)
        write(path, (), [9, 12])


@pytest.mark.parametrize("ends", [[10], [4, 10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])
def test_truncation_at_every_row(tmp_path: Path, ends: list[int]) -> None:
    for keep in range(11):
        path = tmp_path / "w.npy"
        expected = write(path, (3,), ends)
        writer = open_for_append(path)
        writer.truncate(keep)
        assert writer.rows == keep
        np.testing.assert_array_equal(read_array(path), expected[:keep])
        assert verify_array(path, keep) == keep
        writer.append(expected[keep:])
        writer.close()
        np.testing.assert_array_equal(np.load(path), expected)
        assert verify_array(path, 10) == 10
        writer = open_for_append(path)
        with pytest.raises(ValueError, match="has 10 rows, not 11"):
            writer.truncate(11)
        writer.close()


def test_the_files_of_another_owner_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    with contextlib.closing(ArrayWriter(path, (), "float64", "abc losses")) as writer:
        writer.append(np.arange(4.0))
    assert verify_array(path, 4, owner="abc losses") == verify_array(path, 4) == 4
    for read in (verify_array, open_for_append):
        with pytest.raises(CorruptRunError, match="belongs to another run"):
            read(path, 4, owner="abd losses")


def test_a_row_count_that_hides_rows_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "losses.npy"
    with contextlib.closing(ArrayWriter(path, (), "float64")) as writer:
        for _ in range(17):
            writer.append(np.zeros(2000))
    data = bytearray(path.read_bytes())
    assert data[76] == ord("3")  # of 34000
    data[76] ^= 2
    path.write_bytes(data)
    with pytest.raises(CorruptRunError, match="counts 14000 rows, and 34000 fit their checksums"):
        verify_array(path)
    path.write_bytes(data[: 128 + 8 * 14000])  # what a power cut leaves
    assert verify_array(path) == 14000


def test_open_for_append_keeps_the_asked_rows(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    expected = write(path, (), [4, 10])
    open_for_append(path, 6).close()
    np.testing.assert_array_equal(read_array(path), expected[:6])
    with pytest.raises(CorruptRunError, match=r"7 rows are needed \(only the first 6 rows can be trusted\)"):
        open_for_append(path, 7)
    open_for_append(path, 0).close()
    assert verify_array(path, 0) == 0


def test_damage_behind_the_asked_rows_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    expected = write(path, (), [4, 10])
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptRunError, match="rows from 4 on") as caught:
        verify_array(path)
    assert caught.value.usable == "its first 4 rows are intact"
    writer = open_for_append(path, 4)
    writer.append(expected[4:])
    writer.close()
    assert verify_array(path, 10) == 10


def test_every_flipped_bit_of_a_finished_array_is_found(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    write(path, (2,), [1, 3, 4])
    for file in (path, tmp_path / "w.crc"):
        original = file.read_bytes()
        for position in range(len(original)):
            for bit in range(8):
                changed = bytearray(original)
                changed[position] ^= 1 << bit
                file.write_bytes(changed)
                with pytest.raises(CorruptRunError):
                    verify_array(path, 4)
        for changed in (original[:-1], original + b"\0", original[: len(original) // 2], b""):
            file.write_bytes(changed)
            with pytest.raises(CorruptRunError):
                verify_array(path, 4)
        file.unlink()
        with pytest.raises(CorruptRunError, match="cannot be read"):
            verify_array(path, 4)
        file.write_bytes(original)
    assert verify_array(path, 4) == 4


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


def test_a_half_copied_array_says_so(tmp_path: Path) -> None:
    path = tmp_path / "w.npy"
    write(path, (2,), [5])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptRunError, match=r"ends after 3 of 5 rows \(half copied\?\)"):
        read_array(path)
    path.write_bytes(path.read_bytes()[:130])
    with pytest.raises(CorruptRunError):
        read_array(path)


def test_a_failed_append_leaves_the_array_as_it_was(tmp_path: Path, faults: Any) -> None:
    path = tmp_path / "w.npy"
    writer = ArrayWriter(path, (2,), "float64")
    writer.append(rows_of((2,), 0, 2))
    for at in range(3):
        for when in ("before", "half"):
            faults.plan(at, when, errno.ENOSPC)
            with pytest.raises(RunError, match=r"disk full while writing .*; free space and continue with --resume"):
                writer.append(rows_of((2,), 2, 5))
            assert writer.rows == 2
            faults.plan(-1)
            if (at, when) != (2, "half"):
                np.testing.assert_array_equal(read_array(path), rows_of((2,), 0, 2))
    writer.append(rows_of((2,), 2, 5))
    np.testing.assert_array_equal(read_array(path), rows_of((2,), 0, 5))
    writer.close()
    assert verify_array(path, 5) == 5


@pytest.mark.parametrize("keep", [0, 2, 3, 5, 8])
def test_truncation_killed_at_every_step_reads_as_a_prefix(tmp_path: Path, faults: Any, keep: int) -> None:
    start, case = tmp_path / "start", tmp_path / "case"
    start.mkdir()
    expected = write(start / "w.npy", (2,), [3, 7, 9])
    steps = 0
    for when in ("before", "half", "after"):
        at = 0
        while True:
            shutil.rmtree(case, ignore_errors=True)
            shutil.copytree(start, case)
            faults.plan(at, when)
            if not faults.dies(lambda: open_for_append(case / "w.npy", keep).close()):
                break
            seen = read_array(case / "w.npy") if when != "half" else expected[: verify_or_none(case / "w.npy")]
            assert len(seen) in (keep, 9) or when == "half"
            np.testing.assert_array_equal(seen, expected[: len(seen)])
            open_for_append(case / "w.npy", keep).close()
            np.testing.assert_array_equal(read_array(case / "w.npy"), expected[:keep])
            assert verify_array(case / "w.npy", keep) == keep
            at, steps = at + 1, steps + 1
    assert steps > 12


def verify_or_none(path: Path) -> int | None:
    """Rows that check, `None` when a count torn within its 20 characters is refused."""
    try:
        return verify_array(path)
    except CorruptRunError:
        return None
