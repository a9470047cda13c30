"""CSV files as data."""

from __future__ import annotations

import random
from pathlib import Path

from dynamics_cli.datasets.points import File
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Streams
from tests.fuzz.mutate import BYTES, damage
from tests.fuzz.nasty import SCALARS
from tests.fuzz.rooms import refused

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


class Room:
    """Small tables, well-formed and damaged."""

    memory = 500 * 10**6
    seconds = 2.0

    def prepare(self, place: Path) -> None:
        self.file = place / "data.csv"
        self.snippets = [
            *BYTES, b",", b"\n", b'"', b"'", b";", b"\t", b"nan",
            *(f",{text},".encode(errors="replace") for text in SCALARS),
        ]  # fmt: skip

    def case(self, seed: int, i: int) -> bytes:
        if i < len(FIXED):
            return FIXED[i]
        rng = random.Random(f"{seed}-{i}")
        if rng.random() < 0.5:
            return damage(rng, rng.choice(GOOD), self.snippets)
        columns = rng.randint(1, 4)
        cells = [
            str(rng.choice([0, 1, -1, 0.5, 1e-9, rng.random(), rng.gauss(0, 1e3)]))
            for _ in range(columns * rng.randint(0, 6))
        ]
        for _ in range(rng.choice([0, 0, 1, 2])):
            cells.insert(rng.randrange(len(cells) + 1), rng.choice(SCALARS))
        lines = [",".join(cells[k : k + columns]) for k in range(0, len(cells), columns)]
        return rng.choice(["\n", "\r\n", "\r"]).join(lines).encode("utf-8", "surrogatepass")

    def run(self, case: bytes) -> str:
        self.file.write_bytes(case)
        try:
            data = File(path=str(self.file)).load(Streams(0))
        except DynError as error:
            return refused(error)
        assert data.x.ndim == 2
        assert data.y.shape == (data.n,)
        return "accepted"

    def describe(self, case: bytes) -> str:
        return repr(case[:2000])
