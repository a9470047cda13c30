"""Archives of arrays, as NumPy writes them and as it does not."""

import io
import struct
import warnings
import zipfile

import numpy as np


def npy(header, data=b"", version=(1, 0)):
    """Return a `.npy` file with any text as its header."""
    text = header.encode("latin-1", "replace")
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(text))
        + text
        + data
    )


def of(array, **more):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **more)
    return stream.getvalue()


def archive(contents, packing=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packing) as made:
        warnings.simplefilter("ignore")
        for name, content in contents.items():
            made.writestr(name, content)
    return stream.getvalue()


def bomb(factor=64):
    """Return an archive of some hundred kB whose array takes `factor` MiB."""
    header = npy(
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({factor * 2**17 // 4}, 4), }}\n"
    )
    return archive({"x.npy": header + bytes(factor * 2**20), "y.npy": Y}, zipfile.ZIP_DEFLATED)


X = of(np.eye(3))
Y = of(np.arange(3.0))
GOOD = [
    archive({"x.npy": X, "y.npy": Y}),
    archive({"x.npy": X, "y.npy": Y}, zipfile.ZIP_DEFLATED),
    archive(
        {
            "x.npy": of(np.asfortranarray(np.ones((2, 3), ">f4"))),
            "y.npy": of(np.array([1, 2], "u1")),
        }
    ),
]
SHAPES = [
    "[3, 3]",
    "(-3, 3)",
    "(True, 9)",
    "(9223372036854775807, 9)",
    "(0, 10**9)",
    f"({'9' * 5000},)",
    "(3L, 3L)",
]
DTYPES = [
    "'|O'",
    "'f99'",
    "[('a', '<f8')]",
    "('<f8', (2**30,))",
    "[]",
    "'<M8[ns]'",
    "'<U100000000'",
    "'|V0'",
    "3",
]
HEADERS = [
    "",
    "{",
    "[]",
    "x" * 9000,
    "(" * 9000,
    "{'descr': '<f8', 'fortran_order': 1, 'shape': (3, 3)}",
    "'\\N{",
    "\t\n {1:",
    *(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}" for shape in SHAPES),
    *(f"{{'descr': {dtype}, 'fortran_order': False, 'shape': (3, 3)}}" for dtype in DTYPES),
]
"""Headers of arrays that NumPy did not write."""
ODD = [
    b"",
    b"PK",
    b"PK\5\6" + bytes(18),
    X,
    archive({}),
    archive({"x.npy": b"no array", "y.npy": Y}),
    archive({"x.npy": of(np.array([[{}]], dtype=object), allow_pickle=True), "y.npy": Y}),
    archive({"x.npy": X, "y.npy": Y}, zipfile.ZIP_LZMA),
    archive({"x.npy": X[:-1], "y.npy": Y}),
    archive({f"{k}.npy": b"" for k in range(5000)}),
    bomb(),
    *(archive({"x.npy": npy(header, bytes(72)), "y.npy": Y}) for header in HEADERS),
]
