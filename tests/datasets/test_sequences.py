"""Markov chains, text, series, regression in context, power laws: their numbers against what
defines them.
"""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli import train
from dynamics_cli.datasets.in_context import InContextRegression
from dynamics_cli.datasets.sequences import (
    MarkovChains,
    Series,
    Text,
    doubly_stochastic,
    stationary,
)
from dynamics_cli.datasets.teachers import PowerLaw
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.kinds import FreshStreams, Streams
from tests.cases import config_of

STREAMS = Streams(3)


@pytest.mark.parametrize("order", [1, 2])
def test_symbols_follow_the_transition_matrices(order):
    chains = MarkovChains(
        n=4, length=20000, symbols=3, order=order, matrices=2, inputs="numbers", n_test=1
    )
    data = chains.samples(STREAMS)
    P = chains.transitions(STREAMS)
    assert_array_equal(P[[0, 1, 4]], P[[2, 3, 0]])
    assert not np.allclose(P[0], P[1])
    assert_allclose(P.sum(-1), 1.0)
    assert_array_equal(data.x[:, 1:], data.y[:, :-1])  # the label is the next symbol
    s = data.x[1].astype(int)
    context = s[order - 1 :] if order == 1 else s[1:] + 3 * s[:-1]
    counts = np.zeros((3**order, 3))
    np.add.at(counts, (context, data.y[1, order - 1 :].astype(int)), 1)
    assert_allclose(counts / counts.sum(1, keepdims=True), P[1], atol=0.05)


def test_chains_start_in_their_stationary_distribution():
    chains = MarkovChains(n=20000, length=1, symbols=3, matrices=1, start="stationary")
    data = chains.samples(STREAMS)
    (P,) = chains.transitions(STREAMS)[:1]
    p = stationary(P)
    assert_allclose(p @ P, p)
    assert_allclose(data.x.mean(0), p, atol=0.02)  # one-hot vectors
    equal = chains.model_copy(update={"rows": "equal"})
    assert_allclose(np.ptp(equal.transitions(STREAMS)[0], 0), 0.0)


def test_rows_are_uniform_and_fresh_chains_new():
    chains = MarkovChains(n=20000, length=3, symbols=2)
    p = chains.transitions(STREAMS)[:, 0, 0]
    assert_allclose([p.mean(), p.var()], [1 / 2, 1 / 12], atol=0.005)  # Dirichlet(1, 1)
    blocks = [chains.fresh(FreshStreams(3, block), 50).x for block in (0, 1)]
    assert blocks[0].shape == (50, 6)
    assert not np.array_equal(*blocks)
    shared = chains.model_copy(update={"matrices": 2})
    assert_array_equal(shared.transitions(STREAMS)[:2], shared.transitions(FreshStreams(3, 5))[:2])


def moments_of(P):
    p = P[:, 0, 0]
    means = [p**2, p**4, p * P[:, 1, 1], P.min((1, 2)), P.max((1, 2))]
    return np.mean(means, axis=1)


def test_doubly_stochastic_matrices_are_uniform():
    rng = np.random.default_rng(0)
    drawn = doubly_stochastic(rng, 20000, 3)
    assert_allclose(drawn.sum(1), 1.0)
    # rejection: uniform numbers in all places but those that the sums determine
    P = np.zeros((200_000, 3, 3))
    P[:, :2, :2] = rng.random((len(P), 2, 2))
    P[:, :, 2] = 1 - P.sum(2)
    P[:, 2] = 1 - P[:, :2].sum(1)
    expected = moments_of(P[(P >= 0).all((1, 2))])
    assert_allclose(moments_of(drawn), expected, atol=0.006)  # four standard errors
    P = MarkovChains(n=4, length=3, symbols=4, rows="doubly_stochastic").transitions(STREAMS)
    assert_allclose(P.sum(1), 1.0)
    assert_allclose(P.sum(2), 1.0)
    assert len(np.unique(P[:, 0, 0])) == 4


ABC = "añb\ncab" * 10


@pytest.mark.parametrize("by", ["characters", "bytes"])
def test_windows_of_text_have_the_next_symbol_as_label(by, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(ABC.encode())
    text = Text(path=str(path), length=5, by=by, inputs="numbers", held_out=0.3, n_test=3)
    data = text.samples(STREAMS)
    numbers, names = text.symbols()
    whole = ABC if by == "characters" else ABC.encode()
    known = sorted(set(ABC)) if by == "characters" else list(range(256))
    assert_array_equal(numbers, [known.index(one) for one in whole])
    assert len(names) == len(known)
    assert_array_equal(data.x.ravel(), numbers[: data.x.size])  # windows side by side
    assert_array_equal(data.y.ravel(), numbers[1 : data.y.size + 1])
    end = len(whole) - round(0.3 * len(whole))
    assert data.x.size <= end - 1
    assert_array_equal(data.x_test[0], numbers[end : end + 5])
    assert_array_equal(data.y_test[-1], numbers[-5:])
    drawn = text.model_copy(update={"n": 30, "inputs": "one_hot"}).samples(STREAMS)
    x = drawn.x.reshape(30, 5, -1).argmax(-1)
    assert_array_equal(x[:, 1:], drawn.y[:, :-1])


@pytest.mark.parametrize(
    ("content", "told", "error"),
    [
        (None, "there is no such file", DataMissingError),
        (b"ab\xff", "not UTF-8, at byte 2", InputError),
        (b"abc", "the text has 3 characters, a window and its labels 6", InputError),
        (b"", "the text has 0 characters", InputError),
    ],
)
def test_text_that_cannot_be_used_is_refused(content, told, error, tmp_path):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=told):
        Text(path=str(path), length=5).samples(STREAMS)


@pytest.mark.parametrize("samples", ["fresh", None])
@pytest.mark.parametrize("one_hot", [True, None])
def test_rare_symbols_of_a_text_need_an_output(samples, one_hot, tmp_path):
    (tmp_path / "text.txt").write_text("ab" * 200 + "z" + "ab" * 200)
    config = config_of(
        dataset={
            "kind": "text",
            "path": str(tmp_path / "text.txt"),
            "length": 2,
            "n": 2,
            "one_hot": one_hot,
        },
        architecture={
            "kind": "transformer",
            "tokens": 2,
            "width": 2,
            "outputs": 2,
            "predict": "every",
        },
        initialization={"kind": "lecun"},
        loss={"kind": "mse" if one_hot else "cross_entropy"},
        optimizer={"kind": "sgd", "lr": 0.1, "batch_size": 2, "samples": samples, "iterations": 1},
    )
    with pytest.raises(InputError, match="architecture.outputs: 3"):
        train(config, out=tmp_path / "run")


TABLE = np.random.default_rng(0).normal(size=(20, 3))
LINES = [f"2026-01-{k + 1:02},{a!r},{b!r},{c!r}" for k, (a, b, c) in enumerate(TABLE.tolist())]


@pytest.fixture
def table(tmp_path):
    """The path of a CSV file of dates and three columns a, b and c."""
    path = tmp_path / "series.csv"
    path.write_text("\n".join(["date,a,b,c", *LINES]))
    return path


@pytest.mark.parametrize("predict", [None, "every"])
def test_windows_of_a_series_have_the_next_row_as_label(predict, table):
    series = Series(
        path=str(table),
        columns=["c", "a"],
        targets=["a"],
        length=4,
        ahead=2,
        stride=3,
        predict=predict,
        held_out=0.4,
    )
    data = series.samples(STREAMS)
    for x, y, first, last in ((data.x, data.y, 0, 12), (data.x_test, data.y_test, 12, 20)):
        starts = [k for k in range(first, last, 3) if k + 4 + 2 <= last]
        windows = [[[TABLE[t, 2], TABLE[t, 0]] for t in range(k, k + 4)] for k in starts]
        assert_array_equal(x.reshape(len(x), 4, 2), windows)
        labels = np.array([[TABLE[t + 2, 0] for t in range(k, k + 4)] for k in starts])
        assert_array_equal(y, labels[..., None] if predict else labels[:, -1])
    scaled = series.model_copy(update={"standardize": True}).samples(STREAMS)
    trained = TABLE[:12, [2, 0]]
    unit = (TABLE[12:16, [2, 0]] - trained.mean(0)) / trained.std(0)
    assert_allclose(scaled.x_test[0].reshape(4, 2), unit)


def test_a_series_without_a_header_has_numbered_columns(table):
    table.write_text("\n".join(LINES))
    data = Series(path=str(table), columns=["2"], length=19).samples(STREAMS)
    assert_array_equal(data.x[0], TABLE[:19, 0])
    assert_array_equal(data.y, TABLE[19:, 0])


def test_the_time_of_a_wide_series_grows_with_its_columns(tmp_path):
    """200 000 columns did not end, as each was looked up in a list of all."""
    width = 200_000
    header = ",".join(f"c{k}" for k in range(width))
    row = ",".join(["0.5"] * width)
    (tmp_path / "wide.csv").write_text("\n".join([header, row, row]))
    began = time.monotonic()
    data = Series(path=str(tmp_path / "wide.csv"), length=1).samples(STREAMS)
    assert data.x.shape == (1, width)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"columns": None}, r":2: column 1 holds '2026-01-01', not a number"),
        ({"columns": ["aa"]}, r"no column 'aa' \(did you mean 'a'\?\); there are date, a, b, c"),
        ({"targets": ["c"]}, r"dataset\.targets: no column 'c'; there are a, b"),
        ({"length": 20}, "the series has 20 rows, a window and its label 21"),
        ({"held_out": 0.2}, "the held-out series has 4 rows, a window and its label 5"),
        ({"path": "/nowhere.csv"}, "there is no such file"),
        ({"columns": ["d"], "standardize": True}, "column 'd' is constant; leave it out"),
        ({"columns": ["f"], "standardize": True}, "the variance of column 'f' is no float: scale"),
        ({"columns": ["e"]}, "two columns have the name 'e'; rename one of them"),
        ({"columns": ["a", "b", "a"]}, "dataset.columns: 'a' is there twice"),
    ],
)
def test_a_series_that_cannot_be_used_is_refused(changes, told, table):
    if changes.get("columns") in (["d"], ["e"], ["f"]):
        lines = [f"{line},0.1,1,2,{(-1) ** k * 1e160}" for k, line in enumerate(LINES)]
        table.write_text("\n".join(["date,a,b,c,d,e,e,f", *lines]))
    keys = {"path": str(table), "columns": ["a", "b"], "length": 4, **changes}
    with pytest.raises((InputError, DataMissingError), match=told):
        Series(**keys).samples(STREAMS)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("series", ["dataset.stride=4"]),
        ("gpt", ["architecture.width=8", "dataset.length=16", "architecture.tokens=16"]),
    ],
)
def test_networks_learn_sequences_of_files(name, changes, tmp_path):
    run = train(f"examples/{name}", [*changes, "optimizer.epochs=5"], out=tmp_path / "run")
    assert run.losses[-1] < 0.9 * run.losses[0]
    assert run.measures["test_loss"][-1] < run.measures["test_loss"][0]


def test_interleaved_pairs_are_those_of_a_task_with_noise():
    keys = {"n": 40, "context": 30, "eigenvalues": [0.5, 0.5], "features": "interleaved"}
    data = InContextRegression(**keys, tasks=4, sphere=True, noise=0.01, n_test=8).samples(STREAMS)
    assert data.y.shape == (40, 61, 1)
    tokens = data.x.reshape(40, 61, 3)
    assert np.isnan(data.y[:, 1::2]).all()
    assert_array_equal(data.y[:, :-1:2, 0], tokens[:, 1::2, 2])  # shown one token later
    w = [np.linalg.lstsq(x[::2, :2], y[::2, 0])[0] for x, y in zip(tokens, data.y, strict=True)]
    assert_allclose(np.linalg.norm(w, axis=1), np.sqrt(2), atol=0.02)
    assert_allclose(w[:4], w[36:], atol=0.03)
    residuals = data.y[0, ::2, 0] - tokens[0, ::2, :2] @ w[0]
    assert 0.005 < residuals.std() < 0.015


def test_averaged_features_are_those_of_a_loop():
    keys = {"n": 5, "context": 6, "eigenvalues": [0.5, 0.3], "noise": 0.1}
    tokens = InContextRegression(**keys).samples(STREAMS)
    data = InContextRegression(**keys, features="averaged").samples(STREAMS)
    X = tokens.x.reshape(5, 7, 3)
    for row, (*pairs, query) in zip(data.x, X, strict=True):
        xy = sum(2 / 6 * pair[2] * pair[:2] for pair in pairs)
        yy = sum(pair[2] ** 2 for pair in pairs) / 6
        assert_allclose(row.reshape(2, 3), np.outer(query[:2], [*xy, yy]))
    assert_array_equal(data.y, tokens.y)


def test_power_laws_of_inputs_and_labels():
    data = PowerLaw(n=50000, dim=4, decay=1.5, source=2.0, n_test=10).samples(STREAMS)
    i = np.arange(1, 5)
    assert_allclose(data.x.var(0), i**-1.5, rtol=0.05)
    w = np.linalg.lstsq(data.x, data.y)[0]
    assert_allclose(i**-1.5 * w**2, 1.0 * i**-2.0, rtol=1e-9)
    assert_allclose(data.x_test @ w, data.y_test)
