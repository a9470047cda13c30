"""The compiled stepper of two-layer networks.

The kernels of `training/kernels` do many iterations a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas.native import blocks
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.kinds.arrays import stacked
from dynamics_cli.memory import block_samples
from dynamics_cli.training.batches import chosen
from dynamics_cli.training.kernels import LOSS_NUMBERS
from dynamics_cli.training.kernels.two_layers import run_full_batches, run_samples, summed_loss
from dynamics_cli.training.steppers.side_by_side import (
    PARAMETER,
    SideBySide,
    Threads,
    Weights,
    for_each,
)

LANES = 16
"""Neurons are padded to a multiple of this: padding starts at 0, and every update of a zero
neuron is 0.
"""
_UNPADDED = 8
"""Fewer neurons are not padded: that would only be more work."""


class CompiledStepper(SideBySide):
    """Two-layer networks on full batches of few columns, or sample by sample on sparse inputs."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        architectures: list[Any] = [p.config.architecture for p in problems]
        n, d = self.x.shape[1:]
        self.width = problems[0].shapes["hidden_weight"][0]
        self._places: tuple[Any, ...]
        if self.full_batch:
            self._values = self.x.reshape(len(self.x), n * d)
            self._places = ((0,) * d,)
        else:
            self._values, *places = sparse_rows(self.x)
            self._places = tuple(places)
        self._values_of = for_each(self._values, len(problems))
        self._y_of = for_each(self.y, len(problems))
        self._lr = self._each([optimizer.lr for optimizer in self.optimizers])
        self._loss_scaled: bool = getattr(problems[0].config.optimizer, "loss_scaled", False)
        self._alpha = self._each([c.sigma.negative_slope or 0.0 for c in architectures])
        self._train_output = architectures[0].train_output
        self._loss_number = LOSS_NUMBERS[type(problems[0].loss)]
        self._threads = Threads(len(problems))
        starts = stacked(self._starts())
        self._W, self._a = pack(starts["hidden_weight"], starts["output_weight"])
        self.views = {
            f"{PARAMETER}hidden_weight": self._W[..., : self.width].swapaxes(1, 2),
            f"{PARAMETER}output_weight": self._a[:, : self.width],
        }

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        R = len(self.problems)
        weight = self.dtype.type(self.sample_weight)
        losses = np.empty((R, n), self.dtype)
        done = np.empty(R, np.int64)

        def train(first: int, last: int) -> None:
            run_full_batches(
                self._W,
                self._a,
                self._values,
                *self._places,
                self.y,
                losses,
                done,
                first,
                last,
                self._lr,
                weight,
                self._alpha,
                self._loss_number,
                self._train_output,
                self._loss_scaled,
                self.levels,
            )

        self._threads.run([partial(train, *share) for share in self._threads.shares(R)])
        return losses, done

    def run_batches(self, n: int) -> None:
        """Do `n` updates on single samples, replica by replica."""
        for r, batches in enumerate(self._batches):
            samples, _ = chosen(batches, self.iteration, n)
            with flushed():
                run_samples(
                    *self._arrays(r),
                    samples,
                    self._lr[r],
                    self._alpha[r],
                    self._loss_number,
                    self._train_output,
                )

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        if self.full_batch:
            return super().losses()
        n = self.x.shape[1]
        block = block_samples(self._W[0].size, self.width)
        totals = np.zeros(len(self.problems))
        with flushed():
            for r, first in product(range(len(totals)), range(0, n, block)):
                last = min(first + block, n)
                totals[r] += summed_loss(
                    *self._arrays(r), first, last, self._alpha[r], self._loss_number
                )
        return totals * self.sample_weight

    def _arrays(self, r: int) -> tuple[Any, ...]:
        """Return the weights and the data of a replica."""
        return self._W[r], self._a[r], self._values_of[r], *self._places, self._y_of[r]


# -- between the papers' layout of weights (neurons first) and that of the kernels (neurons last,
# padded)


def pack(hidden: Weights, output: Weights) -> tuple[Weights, Weights]:
    """Return `W` (R, d, m') and `a` (R, m') from `hidden` (R, m, d) and `output` (R, m)."""
    R, m, d = hidden.shape
    size = m
    if m >= _UNPADDED:
        size = -(-m // LANES) * LANES
    W, a = blocks(hidden.dtype, R * d * size, R * size)
    W = W.reshape(R, d, size)
    a = a.reshape(R, size)
    W[..., :m] = hidden.swapaxes(1, 2)
    a[:, :m] = output
    return W, a


def sparse_rows(x: Weights) -> tuple[Weights, NDArray[np.int64], NDArray[np.int64]]:
    """Return the non-zero entries of inputs (Q, n, d).

    They have all columns where data sets differ in pattern.

    Entry `[q, p]` (Q, entries) stands in column `indices[p]`; the entries of sample k begin at
    `starts[k]`.
    """
    Q, n, d = x.shape
    seen = np.ones((n, d), bool)
    if Q == 1:
        seen = x[0] != 0
    samples, columns = np.nonzero(seen)
    starts = np.concatenate([[0], np.cumsum(np.bincount(samples, minlength=n))])
    return np.ascontiguousarray(x[:, samples, columns]), columns.astype(np.int64), starts
