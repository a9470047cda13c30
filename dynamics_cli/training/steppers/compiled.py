"""Compiled CPU steppers of the two-layer network: many iterations a call."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds import Descent, Floats, Problem
from dynamics_cli.memory import block_samples
from dynamics_cli.training.batches import batches_of, chosen
from dynamics_cli.training.kernels import LOSS_NUMBERS, UNROLLED
from dynamics_cli.training.kernels.batches import CHUNK, run_batches, run_full, total_loss
from dynamics_cli.training.kernels.full_batch import BLOCK, WIDE, run_dense, run_dense_replicas, run_wide
from dynamics_cli.training.kernels.layout import pack, sparse_rows, unpack
from dynamics_cli.training.steppers.base import StateDict
from dynamics_cli.training.steppers.side_by_side import SideBySide, Weights


class CompiledStepper(SideBySide):
    """Two-layer networks on full batches of few columns, or on inputs of which many are 0."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        architectures: list[Any] = [p.config.architecture for p in problems]
        n, d = self.x.shape[1:]
        self.width = problems[0].shapes["hidden_weight"][0]
        self._few = self.full_batch and d <= UNROLLED
        # neurons are taken in blocks
        self._wide = self._few and self.width >= 8 * BLOCK and self.width * (n + d + 1) >= WIDE
        few: tuple[Any, ...] = self.x.reshape(len(self.x), n * d), (0,) * d
        self._values, *self._places = few if self._few else sparse_rows(self.x)
        self._lr = self._each([o.lr for p in problems if isinstance(o := p.config.optimizer, Descent)])
        self._loss_scaled: bool = getattr(problems[0].config.optimizer, "loss_scaled", False)
        alpha = self._each([c.sigma.negative_slope or 0.0 for c in architectures])
        self._alpha, self._train_output = alpha, architectures[0].train_output
        self._loss_number = LOSS_NUMBERS[type(problems[0].loss)]
        self._batches = [batches_of(p) for p in problems] if not self.full_batch else []
        initial = [p.initial_parameters() for p in problems]
        self.put({name: np.stack([weights[name] for weights in initial]) for name in initial[0]})
        if self.full_batch and (len(problems) > 1 or n > CHUNK or self._wide):  # kernels that take all cores
            _start_threads()

    def kept(self) -> StateDict:
        """Return copies of the weights; see `SideBySide.kept`."""
        return dict(zip(("hidden_weight", "output_weight"), unpack(self._W, self._a, self.width), strict=True))

    def put(self, state: StateDict) -> None:
        """Set the weights; see `SideBySide.put`."""
        hidden: Any = state["hidden_weight"]
        output: Any = state["output_weight"]
        self._W, self._a = pack(hidden, output, BLOCK if self._wide else 0)

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        hidden, output = unpack(self._W, self._a, self.width)
        return self._own({"hidden_weight": hidden, "output_weight": output})

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        R = len(self.problems)
        losses, done = np.empty((R, n), self.dtype), np.empty(R, np.int64)
        weight = self.dtype.type(self.sample_weight)
        settings = (self._loss_number, self._train_output, self._loss_scaled)
        if R > 1 and self._few and not self._wide:
            run_dense_replicas(
                self._W, self._a, self._values, *self._places, self.y, losses, done, n,
                self._lr, weight, self._alpha, *settings, self.levels,
            )  # fmt: skip
            return losses, done
        kernel = run_wide if self._wide else run_dense if self._few else run_full
        for r, q in enumerate(self._data_of()):
            done[r] = kernel(
                self._W[r], self._a[r], self._values[q], *self._places, self.y[q], losses[r], n,
                self._lr[r], weight, self._alpha[r], *settings, self.levels[r],
            )  # fmt: skip
        return losses, done

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches, replica by replica."""
        mean = self.criterion.reduction == "mean"
        for r, (batches, q) in enumerate(zip(self._batches, self._data_of(), strict=True)):
            samples, ends = chosen(batches, self.iteration, n)
            run_batches(
                self._W[r], self._a[r], self._values[q], *self._places, self.y[q], samples,
                ends, self._lr[r], mean, self._alpha[r], self._loss_number, self._train_output,
            )  # fmt: skip

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        if self.full_batch:
            return super().losses()
        n = self.x.shape[1]
        block = block_samples(self._W[0].size, self.width)
        totals = np.zeros(len(self.problems))
        for r, q in enumerate(self._data_of()):
            for first in range(0, n, block):
                totals[r] += total_loss(
                    self._W[r], self._a[r], self._values[q], *self._places, self.y[q], first,
                    min(first + block, n), self._alpha[r], self._loss_number,
                )  # fmt: skip
        return totals * self.sample_weight

    def _data_of(self) -> list[int]:
        """Return the number of each replica's data set: all have one, or each its own."""
        return [r if len(self.y) > 1 else 0 for r in range(len(self.problems))]


def _start_threads() -> None:
    """Start numba's threads, and leave PyTorch with as many as it has, or will have once it is loaded.

    Numba sets the number of threads of OpenMP, which PyTorch asks, when it starts its own: with `OMP_NUM_THREADS=1`,
    what is trained later in this process would take two threads, and have other bits than in a process of its own. The
    number is that of the thread that sets it: here, one that ends.
    """
    starts = Thread(target=numba.get_num_threads)
    starts.start()
    starts.join()
