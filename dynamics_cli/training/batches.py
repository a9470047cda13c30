"""Random batches as a function of (seed, epoch, step), or of new samples, of (seed, iteration)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import FreshStreams, Minibatch, Problem, stream

Weights = NDArray[np.floating]
BLOCK = 1024
NUMBERS = 2**20
"""Fresh samples that are drawn together, and the most numbers of their inputs."""


class Batches:
    """The samples of every update: a permutation per epoch, or independent draws."""

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.config.optimizer, Minibatch)
        assert problem.batch_size is not None
        self.seed = problem.config.seed
        self.n = problem.dataset.n
        self.batch_size = problem.batch_size
        self.replacement = problem.config.optimizer.replacement
        self.steps_per_epoch = problem.steps_per_epoch
        self._epoch = -1
        self._order: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the sample numbers of one epoch in the order of their use."""
        if epoch != self._epoch:
            rng = stream(self.seed, "batches", epoch)
            used = self.steps_per_epoch * self.batch_size
            if self.replacement:
                self._order = rng.integers(0, self.n, used)
            else:
                self._order = rng.permutation(self.n)[:used]
            self._epoch = epoch
        return self._order

    def at(self, iteration: int) -> NDArray[np.int64]:
        """Return the sample numbers of the update that leads from state `iteration` to the next."""
        epoch, step = divmod(iteration, self.steps_per_epoch)
        return self.order(epoch)[step * self.batch_size : (step + 1) * self.batch_size]


def chosen(batches: Batches, first: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the samples of `n` updates from iteration `first` on, and where each batch begins."""
    samples: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    size = batches.batch_size
    last = first + n
    while first < last:
        epoch, step = divmod(first, batches.steps_per_epoch)
        count = min(last - first, batches.steps_per_epoch - step)
        samples.append(batches.order(epoch)[step * size : (step + count) * size])
        sizes.append(np.full(count, size))
        sizes[-1][-1] = len(samples[-1]) - (count - 1) * size
        first += count
    return np.concatenate(samples), np.concatenate([[0], np.cumsum(np.concatenate(sizes))])


class Fresh:
    """New samples for every update, a function of (seed, iteration).

    They are drawn in blocks of many updates.
    """

    def __init__(self, problem: Problem) -> None:
        assert problem.batch_size is not None
        self.batch_size = problem.batch_size
        self._problem = problem
        self._number = -1
        # the size of a block decides the samples: it must not depend on the machine
        self._updates = max(1, min(BLOCK, NUMBERS // problem.dataset.d) // self.batch_size)
        self._x = self._y = np.empty(0)

    def at(self, iteration: int, most: int = 1) -> tuple[Weights, Weights, int]:
        """Return samples for k <= `most` updates starting at `iteration`, and k.

        They are `x (k b, d)` and `y (k b,)` or `(k b, C)`, in the precision of the run.
        """
        number, first = divmod(iteration, self._updates)
        if number != self._number:
            problem = self._problem
            count = self._updates * self.batch_size
            drawn = problem.config.dataset.fresh(FreshStreams(problem.config.seed, number), count)
            self._x, self._y = (
                array.astype(problem.dtype, copy=False) for array in (drawn.x, drawn.y)
            )
            self._number = number
        k = min(most, self._updates - first)
        rows = slice(first * self.batch_size, (first + k) * self.batch_size)
        return self._x[rows], self._y[rows], k
