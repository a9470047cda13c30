"""Whatever is read is taken or refused in one message, never a traceback; `-m long` draws more."""

import zipfile
from collections import Counter
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli.arguments import read_config
from dynamics_cli.config import to_yaml
from dynamics_cli.datasets.points import File
from dynamics_cli.datasets.sequences import Series, Text
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Streams
from tests.cli.conftest import CONFIG
from tests.fuzz import arrays
from tests.fuzz.strategies import BYTES, SCALARS, damaged, written

counts = pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=pytest.mark.long)])


def attack(cases, odd, count, look):
    """Look at the odd cases and at so many that are drawn; some are accepted, and some are
    refused in one message.
    """
    answers = Counter()

    def answered(case):
        refusal = None
        try:
            look(case)
        except DynError as error:
            refusal = error
        if refusal is not None:
            told = str(refusal)
            assert refusal.exit_code in (3, 4), told
            assert told.strip()
            assert len(told) < 100_000
            assert "Traceback" not in told
        answers[refusal is None] += 1

    for case in odd:
        answered(case)
    many = settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    many(given(cases)(answered))()
    assert min(answers[True], answers[False]) >= 5, answers


@counts
def test_configs(count, tmp_path):
    file = tmp_path / "config.yaml"

    def look(case):
        file.write_bytes(case)
        config = read_config(str(file))
        file.write_text(to_yaml(config))  # what a run writes of it reads back as the same
        assert read_config(str(file)) == config

    scalars = [f" {text} ".encode(errors="surrogatepass") for text in SCALARS]
    whole = [CONFIG.encode(), *(path.read_bytes() for path in bundled_configs().values())]
    data = (
        damaged(whole, [*BYTES, *scalars, b"\n- ", b"{", b": ", b"---\n"])
        | written()
        | damaged(written(), most=2)
    )
    odd = [CONFIG.replace("0.01", text).encode(errors="surrogatepass") for text in SCALARS]
    odd += [
        CONFIG.encode() * 2,
        b"extends: config.yaml\n" + whole[0],
        b"a: " + b"[" * 10_000,
        b"? " * 9000,
        *whole[:6],
    ]
    attack(data, [*odd, CONFIG.encode("utf-16"), bytes(10**6)], count, look)


def samples_in(file):
    """Return what reads a file of the given bytes as data."""

    def look(case):
        file.write_bytes(case)
        data = File(path=str(file)).load(Streams(0))
        assert (data.x.ndim, data.x.dtype) == (2, np.float64)
        assert np.isfinite(data.x).all()
        assert len(data.y) == data.n

    return look


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional")
@counts
def test_archives_of_arrays(count, tmp_path, monkeypatch):
    machine = SimpleNamespace(total=2**26, available=2**26)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    packings = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    inside = st.builds(
        lambda x, packing: arrays.archive({"x.npy": x, "y.npy": arrays.Y}, packing),
        damaged([arrays.X]),
        packings,
    )
    attack(
        damaged(arrays.GOOD) | inside,
        [*arrays.GOOD, *arrays.GOOD, *arrays.ODD],
        count,
        samples_in(tmp_path / "data.npz"),
    )


TABLES = [
    b"a,b,y\n1,2,3\n4,5,6\n",
    b"1,2,3\r\n4,5,6",
    "\ufeff1, 2,3\n\n4,5 ,6\n".encode(),
    b'"1","2"\n"3","4"\n',
    b"x;y\n1;2\n",
    b"1e-3\t2\n",
]
ODD_TABLES = [
    b"",
    b"\n",
    b",,\n,,\n",
    b"1,2\0\n",
    b'1,"2',
    b"x" * 200_000,
    b"1," * 100_000 + b"1\n",
    b"9" * 100_000 + b",1\n",
    "1\u2028,2\n3,4\n".encode(),
    b"0x1,2\n",
    b"nan,1\n",
    b"1e999,1\n",
    "1,2".encode("utf-16"),
    b"x,y\nx,y\n",
    b"=1+1,@x\n",
    b"1,2\n3\n",
]


@counts
def test_tables(count, tmp_path):
    snippets = [
        *BYTES,
        *(
            f",{text},".encode(errors="replace")
            for text in [*SCALARS, "", "\n", '"', ";", "\t", "nan"]
        ),
    ]
    attack(
        damaged(TABLES, snippets), [*TABLES, *ODD_TABLES], count, samples_in(tmp_path / "data.csv")
    )


@counts
def test_series(count, tmp_path):
    file = tmp_path / "series.csv"
    dataset = Series(path=str(file), columns=["1", "2"], length=1, standardize=True)

    def look(case):
        file.write_bytes(case)
        data = dataset.load(Streams(0))
        assert np.array_equal(data.x[1:], data.y[:-1])

    attack(damaged(TABLES, BYTES), [*TABLES, *ODD_TABLES], count, look)


BOOKS = [b"the cat sat on the mat\n", "\ufeffzwölf 日本語 \U0001f600 e\u0301\r\n".encode()]


@counts
@pytest.mark.parametrize("by", ["characters", "bytes"])
def test_texts(count, by, tmp_path):
    file = tmp_path / "book.txt"
    dataset = Text(path=str(file), length=4, by=by, held_out=0.3, n_test=2)

    def look(case):
        file.write_bytes(case)
        data = dataset.load(Streams(0))
        numbers, names = dataset.symbols()
        if by == "bytes":
            assert bytes(numbers.tolist()) == case
        else:
            assert "".join(names[k] for k in numbers) == case.decode("utf-8-sig")
            assert sorted(set(names)) == names
        assert data.y.shape == (data.n, 4)
        symbols = data.x.reshape(data.n, 4, len(names)).argmax(-1)
        assert np.array_equal(symbols[:, 1:], data.y[:, :-1])
        assert data.y[0].tolist() == numbers[1:5].tolist()

    odd = [*BOOKS, *(book * 3 for book in BOOKS), b"", b"\xef\xbb\xbf", b"\xff\xfe", bytes(50)]
    attack(damaged(BOOKS, BYTES), [*odd, b"abc", b"\xed\xa0\x80" * 9, b"\xc3"], count, look)
