"""The samples that a run is trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.memory import refuse_beyond_memory

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """How many numbers a data set has, where that is known before they are drawn."""

    n: int
    """Number of training samples."""
    d: int
    """Columns of the inputs, the bias column included."""
    outputs: int = 1
    """Numbers of a label."""
    n_test: int = 0
    """Number of held-out samples."""
    bias: bool = False
    """Whether the last column of the inputs is the constant 1 of a bias."""
    labels: Floats | float = 0.5
    """The labels (n,), or one that they could have."""

    @property
    def numbers(self) -> int:
        """Numbers of all samples."""
        return (self.n + self.n_test) * (self.d + self.outputs)

    def samples(self) -> Samples:
        """Return samples of these sizes that take no memory, for what does not depend on their values.

        Raises InputError: there is no memory for those that will be drawn.
        """
        check_size(self.n + self.n_test, self.d + self.outputs)

        def part(n: int, labels: Floats | float) -> tuple[Floats, Floats]:
            y = np.broadcast_to(np.float64(labels), (n, self.outputs) if self.outputs > 1 else (n,))
            return np.broadcast_to(np.float64(1.0), (n, self.d)), y

        x_test, y_test = part(self.n_test, np.ravel(self.labels)[0]) if self.n_test else (None, None)
        return Samples(*part(self.n, self.labels), x_test, y_test, self.bias)


@dataclass(frozen=True)
class Samples:
    """Training samples and, optionally, held-out ones; float64, whatever precision the run uses."""

    x: Floats
    """Inputs (n, d), the constant 1 of a bias as last column where there is one."""
    y: Floats
    """Labels (n,), or vectors of them (n, C)."""
    x_test: Floats | None = None
    """Held-out inputs (n', d)."""
    y_test: Floats | None = None
    """Held-out labels (n',) or (n', C)."""
    bias: bool = False
    """Whether the last column of the inputs is the constant 1 of a bias."""

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
        """Return the samples with inputs `x C^(-1/2)`, `C = x^T x / n` of the training inputs; a bias column stays.

        Raises InputError: there are fewer independent inputs than dimensions.
        """
        k = self.input_dim
        values, vectors = np.linalg.eigh(self.x[:, :k].T @ self.x[:, :k] / self.n)
        if values[0] <= 1e-12 * values[-1]:
            raise InputError(f"dataset.whiten: {self.n} inputs span fewer than {k} directions")
        change = np.eye(self.d)
        change[:k, :k] = vectors / np.sqrt(values) @ vectors.T
        return replace(self, x=self.x @ change, x_test=None if self.x_test is None else self.x_test @ change)


def make_samples(
    x: Floats, y: Floats, *, x_test: Floats | None = None, y_test: Floats | None = None, append_bias: bool = False,
    origin: str = "the data set",
) -> Samples:  # fmt: skip
    """Check shapes and values and append the bias column.

    Raises InputError: inputs are not (n, d), labels not (n,), lengths differ, or a value is not finite.
    """
    x, y = _check(x, y, f"{origin}: x", f"{origin}: y")
    if (x_test is None) != (y_test is None):
        raise InputError(f"{origin}: held-out inputs and labels must come together")
    if x_test is not None and y_test is not None:
        x_test, y_test = _check(x_test, y_test, f"{origin}: x_test", f"{origin}: y_test")
        for name, train, test in (("x", x, x_test), ("y", y, y_test)):
            if train.shape[1:] != test.shape[1:]:
                columns, others = (array.shape[1] if array.ndim == 2 else 1 for array in (train, test))
                raise InputError(f"{origin}: {name} has {columns} columns, {name}_test has {others}")
    if append_bias:
        x = _with_ones(x)
        x_test = None if x_test is None else _with_ones(x_test)
    return Samples(x, y, x_test, y_test, bias=append_bias)


def check_size(rows: int, columns: int) -> None:
    """Refuse data that cannot be drawn in the memory of this machine, before they are.

    Raises InputError: with what they would need: the numbers, a copy of them and what arises in between, in float64.
    """
    needed = 3 * 8 * rows * columns
    remedy = "; take fewer samples or dimensions"
    refuse_beyond_memory(needed, f"dataset: {rows} x {columns} numbers need about", remedy)


def _with_ones(x: Floats) -> Floats:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _check(x: Floats, y: Floats, x_name: str, y_name: str) -> tuple[Floats, Floats]:
    for array, name in ((x, x_name), (y, y_name)):
        if np.asarray(array).dtype.kind not in "fiub":
            raise InputError(f"{name} holds {np.asarray(array).dtype}, numbers are needed")
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 2:
        raise InputError(f"{x_name} has shape {x.shape}, needed is (samples, dimensions)")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2):
        raise InputError(f"{y_name} has shape {y.shape}, needed is one label per sample, or one vector")
    if len(x) != len(y):
        raise InputError(f"{x_name} has {len(x)} samples but {y_name} has {len(y)}")
    if len(x) == 0 or x.shape[1] == 0:
        raise InputError(f"{x_name} is empty")
    for array, name in ((x, x_name), (y, y_name)):
        if not np.isfinite(array).all():
            bad = np.argwhere(~np.isfinite(array))
            raise InputError(
                f"{name} holds {array[tuple(bad[0])]} at {tuple(int(i) for i in bad[0])}; all values must be finite"
            )
    return x, y
