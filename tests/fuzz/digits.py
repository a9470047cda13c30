"""IDX files, gzipped or not."""

from __future__ import annotations

import gzip
import hashlib
import random
import zlib
from pathlib import Path

import numpy as np

from dynamics_cli.datasets.files.mnist import IdxFile, add_mnist, header, read_idx
from dynamics_cli.errors import DynError
from tests.fuzz.mutate import BYTES, damage
from tests.fuzz.rooms import refused

IMAGES = header((2, 3, 4)) + bytes(range(24))
LABELS = header((5,)) + bytes(range(5))
GOOD = [IMAGES, LABELS, gzip.compress(IMAGES, mtime=0), gzip.compress(LABELS, mtime=0), header((0,)), header((3, 0, 2))]
SHAPES = [None, (2, 3, 4), (5,)]


def _bomb() -> bytes:
    """Return a stream whose header is true, followed by 64 MiB that nobody asked for."""
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    return stream.compress(LABELS) + b"".join(stream.compress(bytes(2**20)) for _ in range(64)) + stream.flush()


FIXED = [
    b"", b"\0", b"\0\0\x08", b"\0\0\x08\x03", bytes([0, 0, 8, 3]) + b"\xff" * 12,
    bytes([0, 0, 8, 1]) + b"\x0f\xff\xff\xff", bytes([0, 0, 8, 255]) + b"\0" * 1020, bytes([0, 0, 8, 0]),
    bytes([0, 0, 13, 1, 0, 0, 0, 1]) + bytes(4), _bomb(), b"\x1f\x8b", b"\x1f\x8b\x08\x1c" + b"\xff" * 100,
    gzip.compress(gzip.compress(IMAGES)), gzip.compress(IMAGES) + gzip.compress(IMAGES),
    gzip.compress(IMAGES) + b"rest",
    gzip.compress(bytes([0, 0, 8, 2]) + b"\0\0\x40\0\0\0\x40\0" + bytes(1000)),
    IMAGES * 2,
    b"\x1f\x8b" + IMAGES,
]  # fmt: skip


class Room:
    """Small IDX files, well-formed and damaged, and the directory of files that `dyn data add mnist` takes."""

    memory = 500 * 10**6
    seconds = 2.0

    def prepare(self, place: Path) -> None:
        self.folder = place / "idx"
        self.folder.mkdir(exist_ok=True)
        self.file = self.folder / "images"
        np.zeros(1)

    def case(self, seed: int, i: int) -> bytes:
        if i < len(FIXED):
            return FIXED[i]
        rng = random.Random(f"{seed}-{i}")
        data = damage(rng, rng.choice(GOOD), BYTES)
        return gzip.compress(data, mtime=0) if rng.random() < 0.2 else data

    def run(self, case: bytes) -> str:
        self.file.write_bytes(case)
        outcomes = set()
        for shape in SHAPES:
            try:
                values = read_idx(self.file, shape=shape)
            except DynError as error:
                outcomes.add(refused(error))
            else:
                assert values.dtype == np.uint8
                assert shape is None or values.shape == shape
                outcomes.add("accepted")
        wanted = IdxFile("images", (2, 3, 4), hashlib.sha256(IMAGES).hexdigest())
        try:
            add_mnist(self.folder, files=[wanted])
            outcomes.add("accepted as pinned")
        except DynError as error:
            refused(error)
        return ", ".join(sorted(outcomes))

    def describe(self, case: bytes) -> str:
        return repr(case[:2000])
