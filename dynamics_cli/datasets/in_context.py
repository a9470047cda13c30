"""Sequences whose last output follows from the pairs before it: linear regression in context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, check_size, make_samples
from dynamics_cli.kinds.base import Finding, Positive, PositiveInt, Sections

_BLOCK = 2**20
"""Numbers of the inputs that are drawn at a time: 8 MiB, which stay in the cache."""


class InContextRegression(Dataset, kind="in_context_regression"):
    """Sequences `(x_1, w.x_1), ..., (x_N, w.x_N), (x_q, 0)` with the label `w.x_q`.

    Garg et al. 2022.

    Every sequence has a task vector `w ~ N(0, I)` of its own, and `x ~ N(0, Lambda)` has D columns
    (Zhang et al. 2025). With the tokens `X_t` of D + 1 numbers a sample is the N + 1 tokens side by
    side; or all of them that the query's output in linear attention depends on, `S = sum_t X_t
    X_t^T` by rows, then `x_q`; or the `D^2` cubic features `z = sum_n y_n x_n x_q^T` by rows, on
    which a two-layer linear network equals linear attention; or the D (D + 1) `averaged` features
    `x_q [(D/N) sum_n y_n x_n, (1/N) sum_n y_n^2]` by rows, on which a linear model is reduced
    linear attention (Lu et al. 2025). As `interleaved` tokens `(x_1, 0), (0, y_1), (x_2, 0), ...`
    of D + 1 numbers, 2 N + 1 in all, there is a label at each position: y_n where x_n stands,
    elsewhere none (Garg et al. 2022).
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
    features: Literal["tokens", "moments", "cubic", "averaged", "interleaved"] = "tokens"
    """The form of a sample."""
    noise: Annotated[float, Field(gt=0)] | None = None
    """Standard deviation of Gaussian noise on all y, the label's too; by default none."""
    tasks: PositiveInt | None = None
    """Number of task vectors, which training sequences share in turn; by default each sequence has
    its own. Held-out sequences have new ones.
    """
    test_tasks: Literal["same"] | None = None
    """`same` gives held-out sequences the `tasks` of training."""
    sphere: bool | None = None
    """Scale task vectors to the norm sqrt(D)."""
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
        if self.test_tasks is not None and self.tasks is None:
            yield ("dataset", "test_tasks"), "needs dataset.tasks, the number of them"
        if self.exact_moments and (self.tasks is not None or self.sphere):
            yield ("dataset", "exact_moments"), "does not go with dataset.tasks or sphere"
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

    def task_vectors(self, streams: Streams) -> Floats | None:
        """Return the task vectors (tasks, D) of training sequences; None if each has its own."""
        if self.tasks is None:
            return None
        D = len(self.eigenvalues)
        return self._scaled(streams.rng("teacher", 1).standard_normal((self.tasks, D)))

    def _scaled(self, w: Floats) -> Floats:
        """Return task vectors (k, D), with the norm sqrt(D) where `sphere` asks for it."""
        if not self.sphere:
            return w
        return np.asarray(w * np.sqrt(w.shape[1]) / np.linalg.norm(w, axis=1, keepdims=True))

    def load(self, streams: Streams) -> Samples:
        """Draw inputs, then task vectors.

        Raises InputError: they do not fit into memory.
        """
        D = len(self.eigenvalues)
        T = self.context + 1
        columns = {"moments": (D + 1) ** 2 + D, "cubic": D**2, "averaged": D * (D + 1)}
        needed = max(columns.get(self.features, 0), 2 * T * (D + 1))
        check_size(self.n + (self.n_test or 0), needed)
        rng = streams.rng("data")
        noise = streams.rng("label noise")
        pool = self.task_vectors(streams)
        root = np.linalg.cholesky(self.covariance(streams)).T

        def draw(count: int, pool: Floats | None) -> tuple[Floats, Floats]:
            block = count
            if not self.exact_moments:
                block = max(1, _BLOCK // (T * D))
            starts = range(0, count, block)
            inputs: Iterable[Floats] = (
                rng.standard_normal((min(block, count - start), T, D)) for start in starts
            )
            if pool is None:
                inputs = [*inputs]  # the task vectors come after all of them
                w = self._scaled(rng.standard_normal((count, D)))
            else:
                w = pool[np.arange(count) % len(pool)]
            if self.exact_moments:
                w = w - w.mean(0)
                values, vectors = np.linalg.eigh(np.cov(w.T).reshape(D, D))
                w = w @ (vectors / np.sqrt(values)) @ vectors.T
            formed = []
            for start, normal in zip(starts, inputs, strict=True):
                x = normal @ root
                if self.exact_moments:
                    x = x - x.mean(0)
                y = np.einsum("ntd,nd->nt", x, w[start : start + block])
                if self.noise is not None:
                    y = y + self.noise * noise.standard_normal(y.shape)
                formed.append(self._formed(x, y))
            samples, labels = zip(*formed, strict=True)
            return np.concatenate(samples), np.concatenate(labels)

        x, y = draw(self.n, pool)
        x_test = None
        y_test = None
        if self.n_test is not None:
            x_test, y_test = draw(self.n_test, pool if self.test_tasks == "same" else None)
        positions = self.features == "interleaved"
        return make_samples(x, y, x_test=x_test, y_test=y_test, positions=positions)

    def _formed(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return samples (n, columns) and labels of inputs `x` (n, T, D) and their `y` (n, T)."""
        if self.features == "interleaved":
            return _interleaved(x, y)
        count, T, D = x.shape
        if self.features == "averaged":
            pairs = x[:, :-1] * y[:, :-1, None]
            squares = (y[:, :-1] ** 2).mean(1, keepdims=True)
            averages = np.concatenate([D * pairs.mean(1), squares], axis=1)
            return (x[:, -1, :, None] * averages[:, None]).reshape(count, -1), y[:, -1]
        X = np.concatenate(
            [x, np.where(np.arange(T) < self.context, y, 0.0)[:, :, None]], axis=2
        )  # (n, T, D + 1)
        if self.features == "tokens":
            return X.reshape(count, -1), y[:, -1]
        S = X.transpose(0, 2, 1) @ X
        if self.features == "moments":
            return np.concatenate([S.reshape(count, -1), x[:, -1]], axis=1), y[:, -1]
        return (S[:, :D, D:] * x[:, -1:]).reshape(count, -1), y[:, -1]


def _interleaved(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return S = 2 T - 1 tokens side by side, (n, S (D + 1)), and labels (n, S, 1).

    Inputs (n, T, D) and their labels (n, T) take turns.
    """
    n, T, D = x.shape
    tokens = np.zeros((n, 2 * T - 1, D + 1))
    tokens[:, ::2, :D] = x
    tokens[:, 1::2, D] = y[:, :-1]
    labels = np.full((n, 2 * T - 1, 1), np.nan)
    labels[:, ::2, 0] = y
    return tokens.reshape(n, -1), labels
