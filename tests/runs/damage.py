"""Ways to damage a file: flipped bits, cuts, growth, deletion, a directory or another file in its place."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from dynamics_cli.runs.store.arrays import ArrayWriter
from dynamics_cli.runs.store.sealed import seal, unseal

HEADER_BYTES = 128
BLOCK_BYTES = 4096
EVERY_BYTE_UP_TO = 4096
"""Files of at most this size have a bit of every byte flipped where every case is asked for."""
TWO_BITS_UP_TO = 1024
"""Those of at most this size two bits of every byte, one at a time."""


def damages(path: Path, other: Path, *, full: bool) -> Iterator[tuple[str, bytes | None]]:
    """Yield what may happen to a file: a description that tells all, and the new contents; None to delete it.

    `other` is the file of the same name in another run. Contents that stay what they were are left out.
    """
    data = path.read_bytes()
    rng = random.Random(f"{path.name} {len(data)}")
    for position in _positions(len(data), rng, full=full):
        for bit in rng.sample(range(8), 2 if full and len(data) <= TWO_BITS_UP_TO else 1):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            yield f"bit {bit} of byte {position} flipped", bytes(flipped)
    for size in sorted({len(data) - 1, len(data) // 2, 0}):
        yield f"cut to {size} bytes", data[:size]
    yield "a byte more", data + b"\0"
    yield f"{BLOCK_BYTES} bytes more", data + rng.randbytes(BLOCK_BYTES)
    yield "deleted", None
    if other.exists() and other.read_bytes() != data:
        yield "replaced by that of another run", other.read_bytes()


def _positions(size: int, rng: random.Random, *, full: bool) -> list[int]:
    if full and size <= EVERY_BYTE_UP_TO:
        return list(range(size))
    some = 64 if full else 2
    chosen = {0, size - 1, size // 2, *rng.sample(range(min(size, HEADER_BYTES)), min(size, some))}
    return sorted(chosen | set(rng.sample(range(size), min(size, some))))


@contextmanager
def damaged(path: Path, contents: bytes | None) -> Iterator[None]:
    """Give a file other contents for the time of the context, or none at all."""
    data = path.read_bytes()
    path.unlink() if contents is None else path.write_bytes(contents)
    try:
        yield
    finally:
        path.write_bytes(data)


@contextmanager
def directory_instead(path: Path) -> Iterator[None]:
    """Put a directory with a file in it in the place of a file."""
    data = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / "file").write_bytes(data)
    try:
        yield
    finally:
        if path.is_dir():
            shutil.rmtree(path)
        path.write_bytes(data)


def arrays_of(directory: Path) -> dict[str, bytes]:
    """Return the bytes of all arrays below a directory, by path."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*.npy"))}


def reseal(path: Path, without: Sequence[str] = (), **entries: object) -> None:
    """Change entries of a sealed document, and give it the checksum that fits."""
    content, _ = unseal(path.read_bytes())
    path.write_bytes(seal({key: value for key, value in {**content, **entries}.items() if key not in without}))


def cut(run: Path, array: str, rows: int) -> None:
    """Let an array of a toy run be as if no more rows had ever been appended to it."""
    path, owner = run / f"{array}.npy", f"abc {array}"
    kept = np.load(path)[:rows]
    with closing(ArrayWriter(path, kept.shape[1:], kept.dtype, owner)) as writer:
        writer.append(kept)
