"""Data sets: points, files good and bad, independent streams, labels drawn anew."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.datasets.algorithmic import ModularArithmetic
from dynamics_cli.datasets.points import File, GivenPoints
from dynamics_cli.datasets.sequences import Series
from dynamics_cli.errors import DataMissingError, InputError, RunWarning
from dynamics_cli.kinds import Streams, stream


def file_dataset(path, **settings):
    return File(path=str(path), **settings).load(Streams(0))


def test_points_with_bias():
    config = GivenPoints(
        x=[[-0.5], [2.0]], y=[-1.0, 1.0], x_test=[[3.0]], y_test=[2.0], append_bias=True
    )
    data = config.load(Streams(0))
    assert_array_equal(data.x, [[-0.5, 1], [2, 1]])
    assert_array_equal(data.x_test, [[3, 1]])
    assert (data.n, data.d, data.input_dim) == (2, 2, 1)


def test_npz_with_held_out_part(tmp_path):
    np.savez(
        tmp_path / "d.npz",
        x=np.eye(3),
        y=np.arange(3),
        x_test=np.ones((1, 3)),
        y_test=np.array([[5.0]]),
    )
    data = file_dataset(tmp_path / "d.npz")
    assert_array_equal(data.x, np.eye(3))
    assert_array_equal(data.y_test, [5.0])


@pytest.mark.parametrize(
    "text", ["row,b,y\n1,2,3\n4,5,6\n", "1,2,3\r\n4,5,6", "\ufeff1, 2,3\n\n4,5 ,6\n"]
)
def test_csv(tmp_path, text):
    (tmp_path / "d.csv").write_text(text, encoding="utf-8")
    data = file_dataset(tmp_path / "d.csv", append_bias=True)
    assert_array_equal(data.x, [[1, 2, 1], [4, 5, 1]])
    assert_array_equal(data.y, [3, 6])


def test_held_out_fractions_and_vector_labels(tmp_path):
    np.savetxt(tmp_path / "train.csv", np.arange(20.0).reshape(10, 2), delimiter=",")
    split = file_dataset(tmp_path / "train.csv", test_fraction=0.3)
    assert (split.n, len(split.y_test)) == (7, 3)
    assert sorted([*split.y, *split.y_test]) == list(range(1, 20, 2))
    other = File(path=str(tmp_path / "train.csv"), test_fraction=0.3).load(Streams(1))
    assert not np.array_equal(split.y_test, other.y_test)
    (tmp_path / "v.csv").write_text("1,2,3,4\n5,6,7,8\n")
    assert_array_equal(file_dataset(tmp_path / "v.csv", outputs=2).y, [[3, 4], [7, 8]])
    np.savez(
        tmp_path / "v.npz", x=np.eye(3), y=np.eye(3), x_test=np.ones((1, 3)), y_test=np.ones((1, 3))
    )
    assert file_dataset(tmp_path / "v.npz").y_test.shape == (1, 3)
    with pytest.raises(
        InputError, match=r"holds x_test and y_test: leave dataset\.test_fraction out"
    ):
        file_dataset(tmp_path / "v.npz", test_fraction=0.5)


R_FRAME = '"a","y"\n"1",0.5,1\n"2",0.25,0\n'
"""`write.table(frame, sep = ",")` of R: the header is one cell short."""
UNREADABLE = {
    "nothing": ("", "it has 0; needed are at least 2 columns"),
    "a header": ("x,y\n", "it has 0"),
    "a column": ("1\n2\n", "it has 1; needed are at least 2 columns between commas"),
    "semicolons": ("1;2;3\n4;5;6\n", "it has 1; needed are"),
    "a word": ("1,2\n3,apple\n", r":2: column 2 holds 'apple', not a number"),
    "an empty cell": ("1,2\n3,\n", r":2: column 2 holds '', not a number"),
    "a short line": ("1,2\n3\n", r":2: 1 columns, the lines before have 2"),
    "nan": ("1,2\n3,nan\n", r":2: column 2 holds 'nan', not a finite number$"),
    "many digits": (
        "9" * 200_000 + ",1\n",
        r"not a table of numbers \(field larger than field limit",
    ),
    "a long word": ("1," + "x" * 200 + "\n", r"column 2 holds 'x{60}', not a number"),
    "a zero byte": ("1,2\n\x003,4\n", "column 1 holds"),
    "an underscore": ("1,2\n3,1_000\n", ":2: column 2 holds '1_000', not a number"),
    "R: write.table": (R_FRAME, ":1: the header has 2 names, the line below 3 columns, as R"),
    "R: write.csv": ('"","a","y"\n"1",0.5,1\n', ":1: the first column has no name"),
    "R: names of rows": ('"a","y"\n"Fiat",0.5,1\n', ":1: the header has 2 names"),
    "R: write.csv2": ('"a";"y"\n0,5;1\n', "not a table of numbers"),
    "R: missing": ("NA,NA\n0.5,1\n", ":1: the line holds no number: 'NA'"),
    "pandas: to_csv": (
        ",a,y\n0,0.5,1\n",
        r":1: the first column has no name.*`to_csv\(..., index=False\)`",
    ),
    "pandas: to_csv of numbered columns": (",0,1\n0,0.1,0.2\n", "the first column has no name"),
    "pandas: read and written": ("Unnamed: 0,x1,y\n0,0.1,0.2\n", "the first column has no name"),
    "pandas: columns": (
        "0,1,2\n0.5,0.2,1\n",
        ":1: the line holds 0 to 2, as the column numbers that pandas",
    ),
    "no name, numbers": (",1,2\n3,4,5\n", "column 1 holds '', not a number"),
    "columns from 1": ("1,2,3\n0.5,0.2,1\n", ":1: the line holds 1 to 3, as numbers of col"),
    "years": ("2019,2020,2021\n0.5,0.2,1\n", ":1: the line holds 2019 to 2021"),
    "Excel: semicolons": (
        "\ufeffa;y\r\n0,5;1\r\n0,2;0\r\n",
        ":2: column 2 holds '5;1', not a number; columns are between commas",
    ),
    "Excel: separator": ("sep=,\na,y\n0.5,1\n", ":2: column 1 holds 'a'"),
    "Excel: decimal commas": ('"0,5","0,25"\n"0,1","0,2"\n', ":2: column 1 holds '0,1'"),
    "Excel: tabs": ("a\ty\n0.5\t1\n", "it has 1; needed are at least 2 columns"),
}
WRONG_LABELS = {
    "label first": ("y,x1,x2\n1,0.1,0.2\n0,0.3,0.1\n", "'x2', at the end .* 'y' as an input"),
    "pandas: index with a name": ("id,a,y\n0,0.5,1\n1,0.2,0\n", "'id', numbers the rows"),
    "pandas: index from 1": ("Index,a,y\n1,0.5,1\n2,0.2,0\n", "'Index', numbers the rows"),
}
"""Tables of numbers that would be read wrong."""


@pytest.mark.parametrize("case", [*UNREADABLE, *WRONG_LABELS])
def test_tables_that_cannot_be_read_or_would_be_read_wrong(tmp_path, case):
    content, message = (UNREADABLE | WRONG_LABELS)[case]
    (tmp_path / "d.csv").write_bytes(content.encode())
    with pytest.raises(InputError, match=message) as error:
        file_dataset(tmp_path / "d.csv")
    assert "\n" not in str(error.value)
    if ":" in case and case in UNREADABLE:
        with pytest.raises(InputError):
            Series(path=str(tmp_path / "d.csv"), length=1).load(Streams(0))


@pytest.mark.parametrize(
    "content",
    {
        "R: write.csv(row.names = FALSE)": '"a","b","y"\n0.5,0.25,1\n0.1,-2,0\n',
        "pandas: to_csv(index=False)": "a,b,y\n0.5,0.25,1\n0.1,-2.0,0\n",
        "Excel: UTF-8": "\ufeffa,b,Y\r\n0.5,0.25,1\r\n0.1,-2,0\r\n",
        "all quoted": '"a","b","label"\n"0.5","0.25","1"\n"0.1","-2","0"\n',
        "savetxt": "5.0e-01,2.5e-01,1.0e+00\n1.0e-01,-2.0e+00,0.0e+00\n",
        "a grid as an input": "time,b,y\n0.5,0.25,1\n0.1,-2,0\n",
    }.values(),
)
def test_tables_of_other_programs_are_read(tmp_path, content):
    (tmp_path / "d.csv").write_bytes(content.encode())
    data = file_dataset(tmp_path / "d.csv")
    assert_array_equal(data.x, [[0.5, 0.25], [0.1, -2]])
    assert_array_equal(data.y, [1, 0])


def test_the_label_is_told_where_its_name_does_not_say_so(tmp_path):
    (tmp_path / "d.csv").write_text("size,price\n0.5,1\n0.25,0\n")
    with pytest.warns(RunWarning, match="'price', at the end of a row, is taken as the label"):
        assert_array_equal(file_dataset(tmp_path / "d.csv").y, [1, 0])
    file_dataset(tmp_path / "d.csv")  # once a process


TWO = {"x": np.ones((2, 1)), "y": np.ones(2)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "no array 'x'; the file holds nothing"),
        (
            {f"a{k}": k for k in range(20)},
            "the file holds a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, ...",
        ),
        ({"x": np.ones((3, 2))}, "no array 'y'; the file holds x"),
        ({"x": np.ones((3, 2)), "y": np.ones(4)}, "x has 3 samples but .*y has 4"),
        (
            {"x": np.ones((3, 2, 1)), "y": np.ones(3)},
            r"x must have shape \(samples, dimensions\), not \(3, 2, 1\)",
        ),
        (
            {"x": np.ones((3, 2)), "y": np.ones((3, 2, 1))},
            r"one label or vector per sample; its shape is \(3, 2, 1\)",
        ),
        ({"x": np.ones((0, 2)), "y": np.ones(0)}, "x is empty"),
        ({"x": np.array([["a"]]), "y": np.ones(1)}, "x holds <U1, numbers are needed"),
        ({"x": np.full((2, 1), np.nan), "y": np.ones(2)}, r"x holds nan at \(0, 0\)"),
        ({**TWO, "x_test": np.ones((1, 1))}, "must come together"),
        ({**TWO, "x_test": np.ones((1, 3)), "y_test": np.ones(1)}, "x has 1 columns"),
        ({"x": np.array([{}]), "y": 1}, "Object arrays cannot be loaded when allow_pickle=False"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(InputError, match=message):
        file_dataset(tmp_path / "d.npz")


@pytest.mark.parametrize(
    "damage", [lambda d: b"no zip", lambda d: d[:-30], lambda d: d[:200] + b"xxxx" + d[204:]]
)
def test_damaged_and_missing_files(damage, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(50.0), y=np.arange(50.0))
    (tmp_path / "a.npz").write_bytes(damage((tmp_path / "a.npz").read_bytes()))
    with pytest.raises(InputError, match="not a readable .npz file of plain arrays"):
        file_dataset(tmp_path / "a.npz")
    for name in ("absent.npz", "absent.csv"):
        with pytest.raises(DataMissingError, match="there is no such file"):
            file_dataset(tmp_path / name)
    with pytest.raises(InputError, match="File name too long"):
        file_dataset(tmp_path / f"{'x' * 5000}.csv")


def test_streams_are_independent():
    draws = {
        name: stream(3, name).standard_normal(4) for name in ("data", "initialization", "batches")
    }
    assert len({tuple(d) for d in draws.values()}) == 3
    assert_array_equal(stream(3, "batches", 5).random(3), stream(3, "batches", 5).random(3))
    assert not np.array_equal(stream(3, "batches", 5).random(3), stream(3, "batches", 6).random(3))


@pytest.mark.parametrize("shape", [(1000, 1001), 10**6])
def test_many_normal_numbers_are_those_of_numpy(shape):
    numpys = np.random.Generator(np.random.Philox(np.random.SeedSequence([3, 0])))
    ours = stream(3, "data")
    for _ in range(2):  # more are drawn from where the first ended
        assert_array_equal(ours.standard_normal(shape), numpys.standard_normal(shape))
    assert ours.standard_normal() == numpys.standard_normal()


def test_random_labels_permute_the_share_asked_for_and_nothing_else():
    inputs = {"x": [[float(k)] for k in range(40)], "y": [float(k) for k in range(40)]}
    plain = GivenPoints(**inputs).samples(Streams(3))
    half = GivenPoints(**inputs, random_labels=0.5, x_test=[[1.0]], y_test=[1.0])
    data = half.samples(Streams(3))
    assert_array_equal(data.x, plain.x)
    assert_array_equal(data.y_test, [1.0])
    assert sorted(data.y) == sorted(plain.y)
    assert 15 <= np.sum(data.y != plain.y) <= 20  # of the 20 chosen one may get its own label back
    assert_array_equal(half.samples(Streams(3)).y, data.y)
    assert (half.samples(Streams(4)).y != data.y).any()
    assert half.seeded
    assert not GivenPoints(**inputs).seeded


@pytest.mark.parametrize("labels", ["one_hot", "classes"])
def test_replaced_labels_are_uniform_classes_of_the_share_asked_for(labels):
    keys = {"p": 31, "train_fraction": 0.5, "labels": labels}
    plain = ModularArithmetic(**keys).samples(Streams(3))
    section = ModularArithmetic(**keys, replaced_labels=0.4)
    data = section.samples(Streams(3))
    assert plain.replaced is None
    assert data.replaced.sum() == round(0.4 * data.n)
    assert_array_equal(data.x, plain.x)
    assert_array_equal(data.y_test, plain.y_test)
    assert_array_equal(data.y[~data.replaced], plain.y[~data.replaced])
    drawn, true = (
        y.argmax(1) if labels == "one_hot" else y
        for y in (data.y[data.replaced], plain.y[data.replaced])
    )
    assert np.bincount(drawn.astype(int), minlength=31).max() <= 16  # 6.2 of each class on average
    assert len(np.unique(drawn)) == 31
    assert 0 < np.mean(drawn == true) < 0.1  # 1 / p by chance
    assert not np.array_equal(section.samples(Streams(4)).replaced, data.replaced)
    both = ModularArithmetic(**keys, replaced_labels=0.4, random_labels=0.5).samples(Streams(3))
    permuted = ModularArithmetic(**keys, random_labels=0.5).samples(Streams(3))
    assert_array_equal(both.y[~both.replaced], permuted.y[~both.replaced])
    assert_array_equal(both.replaced, data.replaced)
