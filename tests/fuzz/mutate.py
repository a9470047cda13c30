"""Changing bytes and text that were well-formed."""

from __future__ import annotations

import random

BYTES = [
    b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\t", b"\x1b", b"\x85",
    b"\x7f",
]  # fmt: skip
"""Bytes that readers stumble over."""


def damage(rng: random.Random, data: bytes, snippets: list[bytes] | None = None, most: int = 4) -> bytes:
    """Return `data` with one to `most` changes: bits, bytes, pieces lost, moved, doubled, cut off, or put in."""
    for _ in range(rng.randint(1, most)):
        data = _change(rng, data, snippets or BYTES)
    return data


def _change(rng: random.Random, data: bytes, snippets: list[bytes]) -> bytes:
    """Replace a piece, which may be empty, by another one."""
    if not data:
        return rng.choice(snippets)
    i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    j = min(j, i + rng.choice([1, 2, 4, 8, 64, 4096]))
    piece, k = data[i:j], rng.randrange(len(data))
    match rng.randrange(9):
        case 0:  # flip a bit
            i, j, piece = k, k + 1, bytes([data[k] ^ 1 << rng.randrange(8)])
        case 1:  # another byte
            i, j, piece = k, k + 1, bytes([rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])])
        case 2:  # lose a piece
            piece = b""
        case 3:  # double a piece
            piece += piece
        case 4:  # copy a piece to elsewhere
            i = j = k
        case 5:  # cut short, or go on
            j, piece = len(data), b"" if rng.random() < 0.7 else data[i:] + rng.randbytes(rng.choice([1, 16, 1000]))
        case 6:  # an integer that counts or measures something becomes another one
            width = rng.choice([1, 2, 4, 8])
            number = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]) % 256**width
            i, j, piece = k, k + width, number.to_bytes(width, rng.choice(["little", "big"]))
        case _:
            i, j, piece = k, k, rng.choice(snippets)
    return data[:i] + piece + data[j:]


def encrypted(data: bytes) -> bytes:
    """Return a zip archive whose first member says that it is encrypted."""
    changed = bytearray(data)
    for sign, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        changed[data.index(sign) + place] |= 1
    return bytes(changed)
