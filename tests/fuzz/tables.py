"""CSV files as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from dynamics_cli.datasets.points import File
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Streams
from tests.fuzz.nasty import SCALARS
from tests.fuzz.rooms import Room, refused
from tests.fuzz.strategies import BYTES, damaged

GOOD = [
    b"a,b,y\n1,2,3\n4,5,6\n", b"1,2,3\r\n4,5,6", "\ufeff1, 2,3\n\n4,5 ,6\n".encode(), b'"1","2"\n"3","4"\n',
    b"x;y\n1;2\n", b"1e-3\t2\n",
]  # fmt: skip
FIXED = [
    b"", b"\n", b",", b",,\n,,\n", b"\0", b"1,2\0\n", b'"', b'1,"2', b"'1','2'\n", b"1,2\n" * 20_000, b"x" * 200_000,
    b"1," * 100_000 + b"1\n", b'"' + b"9" * 200_000 + b'",1\n', b"9" * 100_000 + b",1\n", b"1,2\n" + b",\n" * 1000,
    "1\u2028,2\n3,4\n".encode(), "\u0661,\u0662\n".encode(), b"1_0,2\n", b"0x1,2\n", b"nan,1\n", b"1,-inf\n",
    b"1e999,1\n", b"\xff\xfe1\0,\x002\0", "1,2".encode("utf-16"), b"1,2\r3,4\r", b"1,2\x0b3,4\n", b"1,2\x1c3,4",
    b"x,y\nx,y\n", b"=1+1,@x\n", b"1 2,3\n", b"1,2\n3\n", b"1\n2\n",
]  # fmt: skip


SNIPPETS = [
    *BYTES,
    *(f",{text},".encode(errors="replace") for text in [*SCALARS, "", "\n", '"', "'", ";", "\t", "nan"]),
]


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """Draw a small table of numbers, now and then with something else among them."""
    number = st.floats(width=32).map(str) | st.integers(-9, 9).map(str)
    cells = draw(st.lists(number, max_size=24))
    for text in draw(st.lists(st.sampled_from(SCALARS), max_size=2)):
        cells.insert(draw(st.integers(0, len(cells))), text)
    columns = draw(st.integers(1, 4))
    lines = [",".join(cells[k : k + columns]) for k in range(0, len(cells), columns)]
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines).encode("utf-8", "surrogatepass")


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """Small tables, well-formed and damaged."""
    file = place / "data.csv"

    def look(case: bytes) -> str:
        file.write_bytes(case)
        try:
            data = File(path=str(file)).load(Streams(0))
        except DynError as error:
            return refused(error)
        assert data.x.ndim == 2
        assert data.y.shape == (data.n,)
        return "accepted"

    return Room(damaged(GOOD, SNIPPETS) | written(), look, FIXED)
