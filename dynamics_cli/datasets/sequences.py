"""Sequences whose labels are what comes next: Markov chains, text, and series of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dynamics_cli.datasets.files.tables import read_series
from dynamics_cli.errors import DataMissingError, InputError, did_you_mean
from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.arrays import Ints
from dynamics_cli.kinds.base import Finding, Positive, PositiveInt, Sections
from dynamics_cli.runs.store import files

Form = Literal["one_hot", "numbers"]
BYTES = 256
MOVES = 10
"""Moves for each entry of a doubly stochastic matrix."""


def next_symbols(sequences: Ints, symbols: int, form: Form) -> tuple[Floats, Floats]:
    """Return the first T of T + 1 symbols (n, T) as inputs, and the symbol after each (n, T).

    Inputs are vectors of 0 and 1 (n, T symbols), or the symbols themselves.
    """
    x = sequences[:, :-1]
    y = sequences[:, 1:].astype(np.float64)
    if form == "numbers":
        return x.astype(np.float64), y
    return np.eye(symbols)[x].reshape(len(x), -1), y


class MarkovChains(Dataset, kind="markov_chains"):
    """Markov chains of k symbols, each with its own transition matrix (Edelman et al. 2024).

    The label at each position is the next symbol.

    The rows of a matrix are drawn from the Dirichlet distribution with all parameters `alpha`.
    With `order` m the next symbol depends on the last m, whose k^m rows are numbered by `sum_j
    x_{t-j} k^j`. A network that copies the bigram statistics of its context predicts best. Of
    `rows: doubly_stochastic` columns sum to 1 as well, so that all symbols are equally frequent;
    such matrices are drawn uniformly (see `doubly_stochastic`).
    """

    example = """\
dataset: {kind: markov_chains, n: 100, length: 20, symbols: 3, n_test: 50}
architecture: {kind: transformer, tokens: 20, width: 8, outputs: 3, predict: every}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
optimizer: {kind: adam, lr: 1.0e-2, iterations: 20}
"""
    endless = True
    n: PositiveInt
    """Number of training sequences."""
    length: PositiveInt
    """Positions T of a sequence."""
    symbols: Annotated[int, Field(ge=2)] = 2
    """Number k of symbols."""
    order: PositiveInt = 1
    """How many symbols the next one depends on: 1 for bigrams, 2 for trigrams."""
    alpha: Positive = 1.0
    """Parameter of the Dirichlet distribution; 1 is the uniform distribution of rows."""
    matrices: PositiveInt | None = None
    """Number of transition matrices, which sequences share in turn; by default each sequence has
    its own.
    """
    rows: Literal["independent", "equal", "doubly_stochastic"] = "independent"
    """Whether the rows of a matrix are drawn by themselves, or all equal, so that symbols are
    independent, or such that columns sum to 1 too.
    """
    start: Literal["stationary", "uniform"] = "uniform"
    """Distribution of the first symbol (of the first `order`)."""
    inputs: Form = "one_hot"
    """Vectors of k numbers for each symbol, 1 for the symbol and else 0, or its number."""
    n_test: PositiveInt | None = None
    """Number of held-out sequences; of `matrices` that are shared, with the same ones."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield what chains of higher order lack: stationary starts, doubly stochastic matrices."""
        if self.start == "stationary" and self.order > 1:
            yield ("dataset", "start"), "stationary needs dataset.order: 1"
        if self.rows != "doubly_stochastic":
            return
        if self.order > 1:
            yield ("dataset", "rows"), "doubly_stochastic needs dataset.order: 1"
        if self.alpha != 1:
            told = "is that of Dirichlet rows; doubly stochastic matrices are drawn uniformly"
            yield ("dataset", "alpha"), told

    def transitions(self, streams: Streams) -> Floats:
        """Return the transition matrices of all sequences (n + n', k^m, k), training ones first.

        Raises InputError: they do not fit into memory.
        """
        count = self.n + (self.n_test or 0)
        contexts = self.symbols**self.order
        check_size(count * contexts, self.symbols)
        stream = streams.rng("data") if self.matrices is None else streams.rng("teacher")
        if self.rows == "doubly_stochastic":
            P = doubly_stochastic(stream, self.matrices or count, self.symbols)
            return P[np.arange(count) % len(P)]
        drawn = (self.matrices or count, 1 if self.rows == "equal" else contexts)
        P = stream.standard_gamma(self.alpha, (*drawn, self.symbols)) + np.finfo(float).tiny
        P = P / P.sum(-1, keepdims=True)
        P = np.broadcast_to(P, (len(P), contexts, self.symbols))
        return P[np.arange(count) % len(P)]

    def load(self, streams: Streams) -> Samples:
        """Draw transition matrices, then symbols."""
        count = self.n + (self.n_test or 0)
        k = self.symbols
        check_size(count, (self.length + 1) * (k + 1))
        P = self.transitions(streams)
        steps = np.cumsum(P, -1)
        rng = streams.rng("data", 1)
        s = np.empty((count, self.length + 1), np.int64)
        first = min(self.order, self.length + 1)
        s[:, :first] = rng.integers(k, size=(count, first))
        if self.start == "stationary":
            s[:, 0] = _chosen(np.cumsum(stationary(P), -1), rng.random(count))

        powers = k ** np.arange(self.order)[::-1]
        for t in range(first, self.length + 1):
            context = s[:, t - self.order : t] @ powers
            s[:, t] = _chosen(steps[np.arange(count), context], rng.random(count))
        x, y = next_symbols(s, k, self.inputs)
        return make_samples(x, y, trained=self.n, positions=True, classes=k)


def doubly_stochastic(rng: Generator, count: int, k: int) -> Floats:
    """Return matrices (count, k, k) drawn uniformly among those whose rows and columns sum to 1.

    They begin at `1 / k` everywhere. A move draws two rows and two columns, and adds `d` to two
    opposite corners and `-d` to the others, with d uniform among the numbers that leave all four at
    least 0: a Gibbs sampler, whose stationary law is the uniform one. There are `MOVES k^2` moves.
    For k = 2 one is enough.
    """
    P = np.full((count, k, k), 1 / k)
    for _ in range(MOVES * k**2):
        i, j = rng.choice(k, 2, replace=False)
        a, b = rng.choice(k, 2, replace=False)
        low = -np.minimum(P[:, i, a], P[:, j, b])
        high = np.minimum(P[:, i, b], P[:, j, a])
        d = low + (high - low) * rng.random(count)
        P[:, [i, j], [a, b]] += d[:, None]
        P[:, [i, j], [b, a]] -= d[:, None]
    return np.asarray(np.maximum(P, 0.0), np.float64)  # rounding leaves -1e-17


def stationary(P: Floats) -> Floats:
    """Return the stationary distributions (..., k) of transition matrices (..., k, k)."""
    k = P.shape[-1]
    A = np.eye(k) - np.swapaxes(P, -1, -2) + 1.0  # whose solution of A p = 1 has the sum 1
    return np.asarray(np.linalg.solve(A, np.ones((*P.shape[:-1], 1)))[..., 0], np.float64)


def _chosen(steps: Floats, u: Floats) -> Ints:
    """Return the symbols (n,) at which cumulative distributions (n, k) pass numbers (n,)."""
    passed: Ints = (steps <= u[:, None]).sum(-1)
    return np.asarray(np.minimum(passed, steps.shape[-1] - 1), np.int64)


class Text(Dataset, kind="text"):
    """Windows of a UTF-8 file, by characters or bytes; the label at each position is the next one.

    Characters are numbered in the order of their code points, from 0 for the least that the file
    has; bytes are their own numbers. `architecture.outputs` is their number, 256 of bytes.
    """

    example = """\
# python -c "open('book.txt', 'w').write('the cat sat on the mat. ' * 100)"
dataset: {kind: text, path: book.txt, length: 16, n: 100, held_out: 0.1, n_test: 20}
architecture: {kind: transformer, tokens: 16, width: 8, outputs: 11, predict: every}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
optimizer: {kind: adam, lr: 1.0e-2, iterations: 20}
"""
    endless = True
    file_keys: ClassVar = ("path",)
    path: str
    """The file, relative to the config."""
    length: PositiveInt
    """Positions T of a window."""
    by: Literal["characters", "bytes"] = "characters"
    """What a symbol is."""
    n: PositiveInt | None = None
    """Number of training windows, drawn at random; by default all windows one after the other."""
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the text, at its end, that is not trained on."""
    n_test: PositiveInt | None = None
    """Number of held-out windows, evenly spread over that end."""
    inputs: Form = "one_hot"
    """Vectors for each symbol, 1 for the symbol and else 0, or its number."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield held-out windows without held-out text, and fresh windows without a number."""
        if self.n_test is not None and self.held_out is None:
            yield ("dataset", "n_test"), "needs dataset.held_out, the share of the text"

    def symbols(self) -> tuple[Ints, list[str]]:
        """Return the symbols of the file as numbers (L,), and the text of each number.

        Raises:
            DataMissingError: the file is not there.
            InputError: it is no UTF-8, or empty.
        """
        path = Path(self.path)
        try:
            files.check_regular(path)
            content = path.read_bytes()
            text = content.decode("utf-8-sig")
        except FileNotFoundError as error:
            raise DataMissingError(f"{path}: there is no such file") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8, at byte {error.start}") from error
        except OSError as error:
            raise InputError(f"{path}: it cannot be read ({error.strerror})") from error
        if self.by == "bytes":
            names = [repr(bytes([k]))[2:-1] for k in range(BYTES)]
            return np.frombuffer(content, np.uint8).astype(np.int64), names
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
        known, numbers = np.unique(codes, return_inverse=True)
        return numbers.reshape(-1).astype(np.int64), [chr(code) for code in known]

    def load(self, streams: Streams) -> Samples:
        """Read the file and cut windows.

        Raises InputError: the text is shorter than a window.
        """
        numbers, names = self.symbols()
        size = self.length + 1
        end = _end_of_training(len(numbers), self.held_out)
        rest = None if self.n_test is None else len(numbers) - end
        _refuse_short(self.path, (end, rest), size, "text", self.by, "labels")
        if self.n is None:
            starts = np.arange(0, end - self.length, self.length)
        else:
            starts = streams.rng("data").integers(end - self.length, size=self.n)
        columns = len(names) if self.inputs == "one_hot" else 1
        check_size(len(starts) + (self.n_test or 0), self.length * (columns + 1))
        x, y = self._windows(numbers, starts, len(names))
        x_test = None
        y_test = None
        if self.n_test is not None:
            last = len(numbers) - size
            spread = np.linspace(end, last, self.n_test).astype(np.int64)
            x_test, y_test = self._windows(numbers, spread, len(names))
        return make_samples(
            x,
            y,
            x_test=x_test,
            y_test=y_test,
            positions=True,
            classes=int(numbers.max()) + 1,
            origin=self.path,
        )

    def _windows(self, numbers: Ints, starts: Ints, symbols: int) -> tuple[Floats, Floats]:
        rows = numbers[starts[:, None] + np.arange(self.length + 1)]
        return next_symbols(rows, symbols, self.inputs)


def _end_of_training(count: int, held_out: float | None) -> int:
    """Return how many of `count` places are trained on, when a share at the end is held out."""
    return count - round((held_out or 0.0) * count)


def _refuse_short(
    path: str, lengths: tuple[int, int | None], size: int, what: str, units: str, label: str
) -> None:
    """Refuse a file whose part that is trained on, or part that is held out, holds no window.

    Raises InputError: a part is shorter than `size`.
    """
    for part, length in zip(("", "held-out "), lengths, strict=True):
        if length is not None and length < size:
            told = f"the {part}{what} has {length} {units}, a window and its {label} {size}"
            raise InputError(f"{path}: {told}")


class Series(Dataset, kind="series"):
    """Windows of a series in a CSV file, a row for each time; the label is the row that comes next.

    A window of T rows and k columns is a sample of T blocks of k numbers, as `recurrent`, `gpt` and
    `transformer` with `tokens: T` take it. All windows are in the data set, from the oldest to the
    newest.
    """

    example = """\
# python -c "import numpy; numpy.savetxt('series.csv', numpy.sin(numpy.arange(200) / 5))"
dataset: {kind: series, path: series.csv, length: 16, held_out: 0.2}
architecture: {kind: recurrent, cell: gru, tokens: 16, width: 8}
initialization: {kind: as_built}
loss: {kind: mse}
optimizer: {kind: adam, lr: 1.0e-2, iterations: 20}
"""
    file_keys: ClassVar = ("path",)
    random = False
    path: str
    """The file, relative to the config."""
    length: PositiveInt
    """Rows T of a window."""
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    """Columns that a window has, by the names in the header, or by numbers from 1 in a file without
    one; by default all. Others, such as dates, may hold anything.
    """
    targets: Annotated[list[str], Field(min_length=1)] | None = None
    """Those among them that the label has; by default all. `architecture.outputs` is their number.
    """
    predict: Literal["every"] | None = None
    """`every` gives a label to each row of a window, for `architecture.predict: every`; by default
    the last row has one.
    """
    ahead: PositiveInt = 1
    """How many rows after its row a label stands."""
    stride: PositiveInt = 1
    """Rows between the starts of two windows."""
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the series, at its end, that windows are held out of."""
    standardize: bool = False
    """Shift and scale each column so that its part that is trained on has mean 0 and variance 1."""

    def load(self, streams: Streams) -> Samples:
        """Read the file and cut windows.

        Raises:
            DataMissingError: the file is not there.
            InputError: it is no table of numbers, has no such column, or is shorter than a window.
        """
        names, table = read_series(Path(self.path), self.columns)
        targets = self.targets or names
        places = {name: k for k, name in enumerate(names)}
        for name in targets:
            if name not in places:
                told = did_you_mean(name, names)
                raise InputError(
                    f"dataset.targets: no column {name!r}{told}; there are {', '.join(names)}"
                )
        end = _end_of_training(len(table), self.held_out)
        size = self.length + self.ahead
        rest = None if self.held_out is None else len(table) - end
        _refuse_short(self.path, (end, rest), size, "series", "rows", "label")
        if self.standardize:
            table = self._standardized(table, table[:end], names)

        labels = table[:, [places[name] for name in targets]]
        x, y = self._windows(table[:end], labels[:end])
        x_test = None
        y_test = None
        if self.held_out is not None:
            x_test, y_test = self._windows(table[end:], labels[end:])
        return make_samples(
            x,
            y,
            x_test=x_test,
            y_test=y_test,
            positions=self.predict == "every",
            origin=self.path,
        )

    def _standardized(self, table: Floats, trained: Floats, names: list[str]) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = trained.mean(0)
            deviation = trained.std(0)
        for k, (name, column) in enumerate(zip(names, trained.T, strict=True)):
            if not np.isfinite(deviation[k]):
                raise InputError(
                    f"{self.path}: the variance of column {name!r} is no float: scale its numbers"
                    " down, or leave out standardize"
                )
            if column.min() == column.max():  # the deviation of which need not round to 0
                raise InputError(
                    f"{self.path}: column {name!r} is constant; leave it out of dataset.columns, or"
                    " leave out standardize"
                )
        return np.asarray((table - mean) / deviation, np.float64)

    def _windows(self, table: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return windows (n, T k) of a part of the series, and labels (n, K) or (n, T, K)."""
        starts = np.arange(0, len(table) - self.length - self.ahead + 1, self.stride)
        check_size(len(starts), self.length * (table.shape[1] + 1))
        rows = starts[:, None] + np.arange(self.length)  # (n, T)
        x = table[rows].reshape(len(starts), -1)
        if self.predict == "every":
            return x, labels[rows + self.ahead]
        return x, labels[rows[:, -1] + self.ahead]
