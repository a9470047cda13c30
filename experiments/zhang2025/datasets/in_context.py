"""Sequences whose last output follows from the pairs before it: linear regression in context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, Positive, PositiveInt, Sections


class InContextRegression(Dataset, kind="in_context_regression"):
    """Sequences `(x_1, w.x_1), ..., (x_N, w.x_N), (x_q, 0)` with the label `w.x_q` (Garg et al.
    2022).

    Every sequence has a task vector `w ~ N(0, I)` of its own, and `x ~ N(0, Lambda)` has D columns
    (Zhang et al. 2025). With the tokens `X_t` of D + 1 numbers a sample is the N + 1 tokens side by
    side; or all of them that the query's output in linear attention depends on, `S = sum_t X_t
    X_t^T` by rows, then `x_q`; or the `D^2` cubic features `z = sum_n y_n x_n x_q^T` by rows, on
    which a two-layer linear network equals linear attention.
    """

    example = """\
dataset:
  {kind: in_context_regression, n: 200, context: 31, eigenvalues: [0.4, 0.3, 0.2, 0.1],
   features: moments}
architecture: {kind: linear_attention, heads: 8}
initialization: {kind: unbalanced, scale: 1.0e-2}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 500}
"""
    endless = True
    n: PositiveInt
    """Number of training sequences."""
    context: PositiveInt
    """Number N of pairs before the query."""
    eigenvalues: list[Positive] = Field(min_length=1)
    """The D eigenvalues of `Lambda`; its eigenvectors are random and orthonormal. The output 0
    has the loss `sum`.
    """
    features: Literal["tokens", "moments", "cubic"] = "tokens"
    """The form of a sample."""
    exact_moments: bool = False
    """Shift inputs of each position to mean 0, and map task vectors to mean 0 and covariance I,
    over the samples.
    """
    n_test: Annotated[int, Field(ge=1)] | None = None
    """Number of held-out sequences."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield exact moments that cannot be had."""
        D = len(self.eigenvalues)
        if self.exact_moments and min(self.n, self.n_test or self.n) <= D:
            yield (
                ("dataset", "exact_moments"),
                f"needs more sequences than the {D} columns of a task vector",
            )
        if self.exact_moments and getattr(sections.get("optimizer"), "samples", None) == "fresh":
            yield (
                ("dataset", "exact_moments"),
                "does not go with fresh samples, which are independent",
            )

    def covariance(self, streams: Streams) -> Floats:
        """Return `Lambda` (D, D)."""
        D = len(self.eigenvalues)
        Q, _ = np.linalg.qr(streams.rng("teacher").standard_normal((D, D)))
        return np.asarray(Q * self.eigenvalues @ Q.T)

    def load(self, streams: Streams) -> Samples:
        """Draw inputs, then task vectors.

        Raises InputError: they do not fit into memory.
        """
        D = len(self.eigenvalues)
        T = self.context + 1
        columns = {"tokens": 0, "moments": (D + 1) ** 2 + D, "cubic": D**2}[self.features]
        check_size(self.n + (self.n_test or 0), max(columns, T * (D + 1)))
        rng = streams.rng("data")
        root = np.linalg.cholesky(self.covariance(streams)).T

        def draw(count: int) -> tuple[Floats, Floats]:
            x = rng.standard_normal((count, T, D)) @ root
            w = rng.standard_normal((count, D))
            if self.exact_moments:
                x = x - x.mean(0)
                w = w - w.mean(0)
                values, vectors = np.linalg.eigh(np.cov(w.T).reshape(D, D))
                w = w @ (vectors / np.sqrt(values)) @ vectors.T
            y = np.einsum("ntd,nd->nt", x, w)
            X = np.concatenate(
                [x, np.where(np.arange(T) < self.context, y, 0.0)[:, :, None]], axis=2
            )  # (n, T, D + 1)
            if self.features == "tokens":
                return X.reshape(count, -1), y[:, -1]
            S = X.transpose(0, 2, 1) @ X
            if self.features == "moments":
                return np.concatenate([S.reshape(count, -1), x[:, -1]], axis=1), y[:, -1]
            return (S[:, :D, D:] * x[:, -1:]).reshape(count, -1), y[:, -1]

        x, y = draw(self.n)
        x_test, y_test = draw(self.n_test) if self.n_test is not None else (None, None)
        return make_samples(x, y, x_test=x_test, y_test=y_test)
