from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.datasets.files.mnist import header, read_idx
from dynamics_cli.errors import InputError

VALUES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
IMAGES = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + VALUES.tobytes()  # the format, written by hand
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])


def test_reads_images_and_labels(tmp_path: Path) -> None:
    (tmp_path / "images").write_bytes(IMAGES)
    (tmp_path / "labels").write_bytes(LABELS)
    np.testing.assert_array_equal(read_idx(tmp_path / "images"), VALUES)
    np.testing.assert_array_equal(read_idx(tmp_path / "images", shape=(2, 3, 4)), VALUES)
    np.testing.assert_array_equal(read_idx(tmp_path / "labels"), [7, 9])
    assert header((2, 3, 4)) == IMAGES[:16]


@pytest.mark.parametrize("name", ["images.gz", "images"])
def test_gzip_is_recognised_by_content(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(IMAGES, mtime=0))
    np.testing.assert_array_equal(read_idx(tmp_path / name), VALUES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is cut short: 0 bytes are no IDX file"),
        (b"\0\0\x08", "is cut short: 3 bytes are no IDX file"),
        (IMAGES[:10], "is cut short in its header"),
        (IMAGES[:-1], "is cut short: its header claims 24 values, there are 23"),
        (IMAGES + b"x", "goes on after the 24 values that its header claims"),
        (b"\x89PNG" + IMAGES, "wrong magic number 2303741511, 2049 or 2050 or 2051 is needed"),
        (b"\0\0\x0d" + IMAGES[3:], "wrong magic number 3331, 2049 or 2050 or 2051 is needed"),  # floats
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "claims 4294967295 x 4294967295 x 4294967295 values, too many"),
        (gzip.compress(IMAGES, mtime=0)[:-9], "cannot be read as an IDX file (Compressed file ended"),
        (gzip.compress(IMAGES, mtime=0)[:-8] + bytes(8), "cannot be read as an IDX file (CRC check failed"),
        (gzip.compress(IMAGES, mtime=0)[:10] + b"\xff" * 30, "cannot be read as an IDX file (Error -3"),
    ],
)
def test_damaged_files_are_told(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_idx(tmp_path / "file")
    assert str(caught.value).startswith(f"{tmp_path / 'file'}: ")
    assert message in str(caught.value)


def test_another_shape_is_told(tmp_path: Path) -> None:
    (tmp_path / "images").write_bytes(IMAGES)
    (tmp_path / "labels").write_bytes(LABELS)
    with pytest.raises(InputError, match="holds 2 x 3 x 4 values, not 5 x 3 x 4"):
        read_idx(tmp_path / "images", shape=(5, 3, 4))
    with pytest.raises(InputError, match="wrong magic number 2049, 2051 is needed"):
        read_idx(tmp_path / "labels", shape=(2, 3, 4))
    with pytest.raises(InputError, match=r"cannot be read as an IDX file \(No such file"):
        read_idx(tmp_path / "none")
    with pytest.raises(InputError, match=r"cannot be read as an IDX file \(Is a directory"):
        read_idx(tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A stream that never ends is read no further than what the header claims."""
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = stream.compress(LABELS) + b"".join(stream.compress(bytes(2**20)) for _ in range(64)) + stream.flush()
    assert len(bomb) < 100_000
    (tmp_path / "bomb").write_bytes(bomb)
    with pytest.raises(InputError, match="goes on after the 2 values"):
        read_idx(tmp_path / "bomb")
