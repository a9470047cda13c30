"""NPZ files as data and as initial weights."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import strategies as st

from dynamics_cli.datasets.files.mnist import read_subset
from dynamics_cli.datasets.points import File
from dynamics_cli.errors import DynError, InputError
from dynamics_cli.kinds import Streams
from tests.fuzz.rooms import Room, refused
from tests.fuzz.strategies import damaged, encrypted

MACHINE = 64 * 2**20
"""Bytes of memory that the program is told the machine has."""


def npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return a `.npy` file with any text as its header."""
    text = header.encode("latin-1", "replace")
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + data


def of(array: np.ndarray, **more: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **more)
    return stream.getvalue()


def archive(contents: dict[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packing) as made:
        warnings.simplefilter("ignore")
        for name, content in contents.items():
            made.writestr(name, content)
    return stream.getvalue()


X, Y = of(np.eye(3)), of(np.arange(3.0))
GOOD = [
    archive({"x.npy": X, "y.npy": Y}),
    archive({"x.npy": X, "y.npy": Y}, zipfile.ZIP_DEFLATED),
    archive({"x.npy": of(np.asfortranarray(np.ones((2, 3), ">f4"))), "y.npy": of(np.array([1, 2], "u1"))}),
    archive({"x.npy": X, "y.npy": Y, "x_test.npy": of(np.ones((1, 3))), "y_test.npy": of(np.ones((1, 1)))}),
]
SHAPES = [
    "[3, 3]", "(-3, 3)", "(3, -3)", "(-3, -3)", "(True, 9)", "(9223372036854775807, 9223372036854775807)",
    "(1000000000000,)", "(0, 10**9)", "(0, 9223372036854775807, 9)", f"({'1,' * 200})", f"({'9' * 5000},)", "(3L, 3L)",
]  # fmt: skip
DTYPES = [
    "'|O'", "'f99'", "[('a', '<f8')]", "[('a', '|O')]", "('<f8', (2**30,))", "('<f8', (1073741824, 4))", "[]",
    "'<M8[ns]'", "'<U100000000'", "'|V0'", "'|S0'", "'<c16'", "'<f2'", "3", "{}",
]  # fmt: skip
HEADERS = [
    "", "{", "{}", "[]", "1", "None", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
    "x" * 9000, "(" * 9000,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), 'more': 1}",
    "{'descr': '<f8', 'fortran_order': 1, 'shape': (3, 3)}",
    *(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}" for shape in SHAPES),
    *(f"{{'descr': {dtype}, 'fortran_order': False, 'shape': (3, 3)}}" for dtype in DTYPES),
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3)}\0", "__import__('os').system('touch pwned')", "'\\N{",
    "\t\n {1:", "{'descr': '''",
]  # fmt: skip
"""Headers of arrays that NumPy did not write."""


def bomb(factor: int = 64) -> bytes:
    """Return an archive of some hundred kB whose array takes `factor` MiB."""
    header = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({factor * 2**17 // 4}, 4), }}\n")
    return archive({"x.npy": header + bytes(factor * 2**20), "y.npy": Y}, zipfile.ZIP_DEFLATED)


FIXED = [
    b"", b"PK", b"PK\5\6" + bytes(18), X, b"\x80\x04N.", b"\x93NUMPY", archive({}), archive({"x": b"", "y": b""}),
    archive({"x": X, "y": Y}), archive({"x.npy": b"no array", "y.npy": Y}),
    archive({"x.npy": of(np.array([[{}]], dtype=object), allow_pickle=True), "y.npy": Y}),
    archive({"x.npy": X, "y.npy": Y}, zipfile.ZIP_LZMA), archive({"x.npy": X, "y.npy": Y}, zipfile.ZIP_BZIP2),
    encrypted(GOOD[0]), archive({"x.npy": X + b"more", "y.npy": Y}), archive({"x.npy": X[:-1], "y.npy": Y}),
    archive({"x.npy": npy("{}", version=(9, 9)), "y.npy": Y}), archive({"x.npy": X, "x": X, "y.npy": Y}),
    archive({"../x.npy": X, "/y.npy": Y}), archive({"x.npy": GOOD[0], "y.npy": Y}),
    archive({f"{k}.npy": b"" for k in range(5000)}), bomb(), GOOD[0] + b"\0" * 100, b"#!/bin/sh\n" + GOOD[0],
    GOOD[0][:-22] + b"PK\5\6" + b"\xff" * 18,
    *(archive({"x.npy": npy(header, bytes(72)), "y.npy": Y}) for header in HEADERS),
    *(archive({"x.npy": npy(header, bytes(72), (2, 0)), "y.npy": Y}) for header in HEADERS),
    *(archive({"x.npy": npy(header + " " * 10 + "\n", bytes(72)), "y.npy": Y}) for header in HEADERS),
]  # fmt: skip


@st.composite
def inside(draw: st.DrawFn) -> bytes:
    """Draw an archive that is well and holds arrays that are damaged."""
    y = draw(st.just(Y) | damaged([Y]))
    return archive(
        {"x.npy": draw(damaged([X])), "y.npy": y}, draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    )


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """Small archives of arrays, well-formed and damaged, and arrays damaged inside archives that are well."""
    file = place / "data.npz"
    patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=MACHINE, available=MACHINE))

    def look(case: bytes) -> str:
        file.write_bytes(case)
        with contextlib.suppress(InputError):
            read_subset("train", [0], file)
        try:
            data = File(path=str(file)).load(Streams(0))
        except DynError as error:
            return refused(error)
        assert (data.x.ndim, data.x.dtype) == (2, np.float64)
        assert np.isfinite(data.x).all()
        return "accepted"

    return Room(damaged(GOOD) | inside(), look, FIXED)
