"""The samples that a run is trained on, and the base class of data sets."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.arrays import Bools, Floats, Ints
from dynamics_cli.kinds.base import Kind
from dynamics_cli.kinds.streams import FreshStreams, Streams
from dynamics_cli.memory import refuse_beyond_memory


@dataclass(frozen=True)
class Samples:
    """Training samples and, optionally, held-out samples.

    They are float64, whatever precision the run uses.
    """

    x: Floats
    """Inputs (n, d), the constant 1 of a bias as last column where there is one."""
    y: Floats
    """Labels (n,), or vectors of them (n, C); with `positions` classes (n, T) or numbers (n, T,
    k).
    """
    x_test: Floats | None = None
    """Held-out inputs (n', d)."""
    y_test: Floats | None = None
    """Held-out labels, of the shape of `y` for n' samples."""
    bias: bool = False
    """Whether the last column of the inputs is the constant 1 of a bias."""
    replaced: Bools | None = None
    """The training samples (n,) whose labels `replaced_labels` drew; None where it drew none."""
    positions: bool = False
    """Whether there is a label at each position of a sequence; a class -1 or NaN is no label."""
    classes: int | None = None
    """Number of classes that samples of the data set may have, where these may have fewer."""

    @property
    def n(self) -> int:
        """Number of training samples."""
        return int(self.x.shape[0])

    @property
    def d(self) -> int:
        """Number of columns, the bias column included."""
        return int(self.x.shape[1])

    @property
    def input_dim(self) -> int:
        """Input dimension without the bias column, the `d` of initialisation scales."""
        return self.d - int(self.bias)

    def whitened(self) -> Samples:
        """Return the samples with inputs `x C^(-1/2)`, `C = x^T x / n` of the training inputs.

        A bias column stays as it is.

        Raises InputError: there are fewer independent inputs than dimensions.
        """
        k = self.input_dim
        values, vectors = np.linalg.eigh(self.x[:, :k].T @ self.x[:, :k] / self.n)
        if values[0] <= 1e-12 * values[-1]:
            raise InputError(f"dataset.whiten: {self.n} inputs span fewer than {k} directions")
        change = np.eye(self.d)
        change[:k, :k] = vectors / np.sqrt(values) @ vectors.T
        return replace(
            self, x=self.x @ change, x_test=None if self.x_test is None else self.x_test @ change
        )

    def one_hot(self) -> Samples:
        """Return the samples with labels (n, C), 1 for the class and 0 elsewhere.

        C is `classes`, or the largest class plus 1.

        Raises InputError: labels are not the numbers 0, 1, ... of classes.
        """
        parts = [y for y in (self.y, self.y_test) if y is not None]
        axes = 2 if self.positions else 1
        least = -1 if self.positions else 0
        if any(y.ndim != axes or (y < least).any() or (y != np.round(y)).any() for y in parts):
            raise InputError("dataset.one_hot needs labels that are class numbers 0, 1, ...")
        C = max(1 + int(max(y.max() for y in parts)), self.classes or 0)
        check_size(sum(y.size for y in parts), C)
        rows = np.vstack([np.eye(C), np.full(C, np.nan)])  # the last is that of no label, -1
        y, *held_out = (rows[y.astype(np.int64)] for y in parts)
        return replace(self, y=y, y_test=next(iter(held_out), None))


def make_samples(
    x: Floats,
    y: Floats,
    *,
    x_test: Floats | None = None,
    y_test: Floats | None = None,
    trained: int | None = None,
    append_bias: bool = False,
    positions: bool = False,
    classes: int | None = None,
    origin: str = "the data set",
) -> Samples:
    """Check shapes and values and append the bias column.

    Samples after the first `trained` are held out.

    With `positions`, labels are classes (n, T) or numbers (n, T, k), -1 or NaN for no label.
    `classes` says how many there may be.

    Raises InputError: inputs are not (n, d), labels not (n,), lengths differ, or a value is not
    finite.
    """
    if trained is not None and trained < len(x):
        x_test = x[trained:]
        y_test = y[trained:]
        x = x[:trained]
        y = y[:trained]
    x, y = _check(x, y, f"{origin}: x", f"{origin}: y", positions=positions)
    if (x_test is None) != (y_test is None):
        raise InputError(f"{origin}: held-out inputs and labels must come together")
    if x_test is not None and y_test is not None:
        names = f"{origin}: x_test", f"{origin}: y_test"
        x_test, y_test = _check(x_test, y_test, *names, positions=positions)
        for name, train, test in (("x", x, x_test), ("y", y, y_test)):
            if train.shape[1:] != test.shape[1:]:
                columns, others = (math.prod(array.shape[1:]) for array in (train, test))
                raise InputError(
                    f"{origin}: {name} has {columns} columns, {name}_test has {others}"
                )
    if append_bias:
        x = _with_ones(x)
        if x_test is not None:
            x_test = _with_ones(x_test)
    return Samples(x, y, x_test, y_test, bias=append_bias, positions=positions, classes=classes)


def check_size(rows: int, columns: int) -> None:
    """Refuse data that cannot be drawn in the memory of this machine, before they are.

    Raises InputError: with the memory of the numbers, a copy of them and intermediate results, in
    float64.
    """
    needed = 3 * 8 * rows * columns
    remedy = "; take fewer samples or dimensions"
    refuse_beyond_memory(needed, f"dataset: {rows} x {columns} numbers need about", remedy)


def _with_ones(x: Floats) -> Floats:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _check(
    x: Floats, y: Floats, x_name: str, y_name: str, *, positions: bool
) -> tuple[Floats, Floats]:
    for array, name in ((x, x_name), (y, y_name)):
        if np.asarray(array).dtype.kind not in "fiub":
            raise InputError(f"{name} holds {np.asarray(array).dtype}, numbers are needed")
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if x.ndim != 2:
        raise InputError(f"{x_name} must have shape (samples, dimensions), not {x.shape}")
    if y.ndim == 2 and y.shape[1] == 1 and not positions:
        y = y[:, 0]
    if positions and (y.ndim not in (2, 3) or not y.size):
        raise InputError(
            f"{y_name} must hold a label or vector for each position; its shape is {y.shape}"
        )
    if not positions and y.ndim not in (1, 2):
        raise InputError(
            f"{y_name} must hold one label or vector per sample; its shape is {y.shape}"
        )
    if len(x) != len(y):
        raise InputError(f"{x_name} has {len(x)} samples but {y_name} has {len(y)}")
    if len(x) == 0 or x.shape[1] == 0:
        raise InputError(f"{x_name} is empty")
    for array, name in ((x, x_name), (y, y_name)):
        finite = np.isfinite(array)
        if positions and array is y:
            finite |= np.isnan(array)  # no label
        if not finite.all():
            bad = np.argwhere(~finite)
            raise InputError(
                f"{name} holds {array[tuple(bad[0])]} at {tuple(int(i) for i in bad[0])}; all"
                " values must be finite"
            )
    return x, y


def _classes(y: Floats) -> Floats:
    """Return the classes of labels.

    They are (C, C) of one-hot vectors, and otherwise (C,), the whole numbers that occur.

    Raises InputError: the labels are neither.
    """
    if y.ndim == 2 and np.isin(y, [0.0, 1.0]).all() and (y.sum(1) == 1).all():
        return np.eye(y.shape[1])
    if y.ndim == 2 or (y != np.rint(y)).any():
        raise InputError(
            "dataset.replaced_labels: labels must be classes, that is whole numbers or one-hot"
            " vectors"
        )
    return np.unique(y)


class Dataset(Kind):
    """Where training samples come from."""

    section: ClassVar[str] = "dataset"
    random: ClassVar[bool] = True
    """Whether the samples may depend on the seed."""
    endless: ClassVar[bool] = False
    """Whether `load` draws `n` independent samples from `data` and noise streams alone, so that
    there are ever more.
    """

    licence: ClassVar[str] = "none: drawn by dyn, or written in the config"
    """Of the samples, for the checklist of a paper."""
    modulus: ClassVar[int | None] = None
    """p where inputs are pairs of one-hot numbers modulo p (n, 2 p); None for all others."""
    titles: ClassVar[Mapping[str, str]] = {
        "n": "training samples n",
        "dim": "dimension d",
        "noise": "noise σ",
        "p": "modulus p",
    }
    one_hot: Literal[True] | None = None
    """Turn class numbers 0, ..., C - 1 into vectors of C numbers, 1 for the class and else 0,
    for square losses.
    """
    random_labels: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the training labels that are permuted among each other, at random by the seed; by
    default none.
    """
    replaced_labels: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the training labels that are replaced by classes drawn uniformly and independently;
    by default none.

    Of C classes a replaced label stays right with probability 1 / C. `random_labels` keeps the
    number of each class.
    """
    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the draws of the data set; by default the seed of the run."""
    whiten: bool | None = None
    """Map training inputs linearly so that `sum_k x_k x_k^T / n = I`, held-out inputs alike; a
    bias column stays.
    """

    @property
    def seeded(self) -> bool:
        """Whether the samples of this section depend on the seed."""
        return self.seed is None and (self.random or self._relabelled)

    @property
    def _relabelled(self) -> bool:
        return self.random_labels is not None or self.replaced_labels is not None

    def streams_of(self, streams: Streams) -> Streams:
        """Return the streams of `seed`, by default the run's."""
        if self.seed is None:
            return streams
        return replace(streams, seed=self.seed)

    def samples(self, streams: Streams) -> Samples:
        """Return the samples of `load`, whitened, one-hot, or with random labels as asked.

        Raises:
            InputError: see `load`; or they do not fit into memory, the inputs span too few
                directions to be whitened, or labels that are to be replaced are no classes.
        """
        streams = self.streams_of(streams)
        samples = self.load(streams)
        if self.whiten:
            samples = samples.whitened()
        if self.one_hot:
            samples = samples.one_hot()
        if not self._relabelled:
            return samples
        rng = streams.rng("labels")
        y = samples.y.copy()
        replaced = samples.replaced
        if self.random_labels is not None:
            chosen = rng.permutation(samples.n)[: round(self.random_labels * samples.n)]
            y[chosen] = y[rng.permutation(chosen)]
        if self.replaced_labels is not None:
            classes = _classes(y)
            chosen, drawn = self.replacements(
                streams, samples.n, round(self.replaced_labels * samples.n), len(classes)
            )
            y[chosen] = classes[drawn]
            replaced = np.zeros(samples.n, bool)
            replaced[chosen] = True
        return replace(samples, y=y, replaced=replaced)

    def replacements(self, streams: Streams, n: int, count: int, classes: int) -> tuple[Ints, Ints]:
        """Return which `count` of `n` training labels are replaced, and their new classes."""
        rng = streams.rng("replaced labels")
        return rng.permutation(n)[:count], rng.integers(classes, size=count)

    def fresh(self, streams: FreshStreams, count: int) -> Samples:
        """Return `count` samples from the distribution of `load`, if the data set is `endless`."""
        keys = {"n": count, "n_test": None}
        return self.model_copy(
            update={k: v for k, v in keys.items() if k in type(self).model_fields}
        ).samples(streams)

    @abstractmethod
    def load(self, streams: Streams) -> Samples:
        """Read or draw the samples, equally many for each seed.

        Draws come from `streams.rng("data")`, which depends on the seed.

        Raises:
            DataMissingError: a file is not there; the message says how to get it.
            InputError: the samples cannot be used, or do not fit into memory.
        """

    def resolve(self) -> Self:
        """Return this section with every `auto` replaced by its meaning on this machine."""
        return self
