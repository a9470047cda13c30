"""Inputs in coordinates of a space that holds them all.

The change of basis is exact for updates by sums of gradients.

A gradient of the first weights W is a sum of inputs. Where an update is linear (gradient descent,
momentum), W moves within their span: with orthonormal columns Q (d, n) of the span of n inputs, a
network of inputs `X Q` (n, n) and first weights `W Q` takes the same path. Where n is no smaller
than d, columns of X that are 0 for all samples are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import Problem, Samples
from dynamics_cli.training.steppers.side_by_side import Weights


class Span:
    """First weights of R networks, in two parts.

    The part inside the span of the inputs moves, the rest stays.
    """

    def __init__(self, x: Weights, starts: Sequence[Weights]) -> None:
        """Take inputs (Q, n, d), Q = 1 or R, and first weights (m, d) of each network."""
        self._few = x.shape[1] < x.shape[2]
        self._columns = np.flatnonzero(x.any(axis=(0, 1)))
        self._bases = [
            np.linalg.qr(rows.T.astype(np.float64))[0] for rows in x if self._few
        ]  # (d, n)
        self.x = np.stack([self.inside(rows, q) for q, rows in enumerate(x)])
        """Inputs (Q, n, r)."""
        self._start = np.stack(starts)  # (R, m, d)
        self.start = np.stack([self.inside(rows, r) for r, rows in enumerate(starts)])
        """First weights (R, m, r) in these coordinates."""

    def seen(self, problem: Problem) -> Problem:
        """Return a problem with inputs and shapes in these coordinates."""
        name = next(iter(problem.shapes))
        shapes = {**problem.shapes, name: self.start.shape[1:]}
        return replace(problem, shapes=shapes, dataset=Samples(self.x[0], problem.dataset.y))

    def _basis(self, r: int) -> NDArray[np.float64]:
        return self._bases[r % len(self._bases)]

    def inside(self, rows: Weights, r: int) -> Weights:
        """Return weights (m, d) of network r in these coordinates, (m, r)."""
        if not self._few:
            return rows[:, self._columns]
        return (rows.astype(np.float64) @ self._basis(r)).astype(rows.dtype)

    def whole(self, weights: Weights) -> Weights:
        """Return first weights (R, m, d) from those (R, m, r) in the span."""
        restored = self._start.copy()
        if not self._few:
            restored[:, :, self._columns] = weights
            return restored
        for r, (new, old) in enumerate(zip(weights, self.start, strict=True)):
            restored[r] += (new.astype(np.float64) - old) @ self._basis(r).T
        return restored

    def whole_memory(self, memory: Weights) -> Weights:
        """Return sums of gradients (R, m, d) of the first weights, given (R, m, r) in the span."""
        whole = np.zeros_like(self._start)
        if not self._few:
            whole[:, :, self._columns] = memory
            return whole
        for r, inside in enumerate(memory):
            whole[r] = inside.astype(np.float64) @ self._basis(r).T
        return whole
