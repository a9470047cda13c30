"""Some entries of a matrix of low rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynamics_cli.kinds import (
    Dataset,
    Finding,
    NonNegative,
    Positive,
    PositiveInt,
    Samples,
    Sections,
    Streams,
    check_size,
    make_samples,
)


class MatrixCompletion(Dataset, kind="matrix_completion"):
    """Some entries of a matrix of low rank, as pairs (row, column); the others are held out (Arora
    et al. 2019).

    The matrix is `W* = scale sqrt(rows columns) U V^T / ||U V^T||` for Gaussian `U`, `V` of `rank`
    columns.
    """

    example = """\
dataset: {kind: matrix_completion, rows: 20, rank: 2, observed: 200}
architecture: {kind: matrix_product, rows: 20, depth: 2}
initialization: {kind: unbalanced, scale: 0.01}
"""
    rows: PositiveInt
    """Rows of the matrix."""
    columns: PositiveInt | None = None
    """Its columns; by default as many as rows."""
    rank: PositiveInt
    """Its rank."""
    scale: Positive = 1.0
    """Root mean square of its entries."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the observations."""
    observed: PositiveInt
    """Number of entries that are seen, drawn without replacement."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a rank that no such matrix has, and more entries than there are."""
        columns = self.columns or self.rows
        if self.rank > min(self.rows, columns):
            yield (
                ("dataset", "rank"),
                f"must be at most {min(self.rows, columns)}, the smaller side",
            )
        if self.observed > self.rows * columns:
            yield ("dataset", "observed"), f"must be at most {self.rows * columns}, all entries"

    def matrix(self, streams: Streams) -> np.ndarray:
        """Return `W*` (rows, columns)."""
        rng = streams.rng("teacher")
        columns = self.columns or self.rows
        check_size(self.rows, columns + self.rank)
        W = rng.standard_normal((self.rows, self.rank)) @ rng.standard_normal((self.rank, columns))
        return np.asarray(self.scale * np.sqrt(W.size) / np.linalg.norm(W) * W)

    def load(self, streams: Streams) -> Samples:
        """Return pairs (n, 2) and entries (n,)."""
        W = self.matrix(streams)
        n = self.observed
        x = np.stack(np.unravel_index(streams.rng("data").permutation(W.size), W.shape), 1).astype(
            np.float64
        )
        y = W[tuple(x.astype(np.int64).T)]
        if self.noise:
            y[:n] += self.noise * streams.rng("label noise").standard_normal(n)
        return make_samples(x, y, trained=n)
