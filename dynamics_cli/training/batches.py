"""Random batches as a function of (seed, epoch, step)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.bases import Minibatch
from dynamics_cli.config.streams import stream
from dynamics_cli.training.problem import Problem


class Batches:
    """The samples of every update: a permutation per epoch, or independent draws."""

    def __init__(self, seed: int, n: int, batch_size: int, *, replacement: bool) -> None:
        self.seed, self.n, self.batch_size, self.replacement = seed, n, batch_size, replacement
        self.steps_per_epoch = -(-n // batch_size)
        self._epoch = -1
        self._order: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the sample numbers of one epoch in the order of their use."""
        if epoch != self._epoch:
            rng = stream(self.seed, "batches", epoch)
            if self.replacement:
                self._order = rng.integers(0, self.n, self.steps_per_epoch * self.batch_size)
            else:
                self._order = rng.permutation(self.n)
            self._epoch = epoch
        return self._order

    def at(self, iteration: int) -> NDArray[np.int64]:
        """Return the sample numbers of the update that leads from state `iteration` to the next."""
        epoch, step = divmod(iteration, self.steps_per_epoch)
        return self.order(epoch)[step * self.batch_size : (step + 1) * self.batch_size]


def batches_of(problem: Problem) -> Batches:
    """Return the batches of a problem whose optimizer works on batches."""
    optimizer = problem.config.optimizer
    assert isinstance(optimizer, Minibatch)
    assert problem.batch_size is not None
    return Batches(problem.config.seed, problem.dataset.n, problem.batch_size, replacement=optimizer.replacement)
