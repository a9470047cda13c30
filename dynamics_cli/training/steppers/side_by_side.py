"""Steppers that train R replicas side by side share their data, halting, checkpoints and
numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Loss, Problem
from dynamics_cli.training.batches import Batches, Fresh
from dynamics_cli.training.steppers.base import Halt, StateDict, Stepper, first_halt

Weights = NDArray[np.floating]


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - numba's `np.dot` calls its BLAS, which a controller made before would not know

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context of products on one thread: bits do not depend on the machine, and small
    products are faster.
    """
    return _blas().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


class Threads:
    """Threads of Python that call kernels side by side: numba gives them free of Python's lock."""

    def __init__(self, most: int) -> None:
        self.count = max(1, min(most, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined] # set on import
        self._pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def shares(self, R: int) -> list[tuple[int, int]]:
        """Return the first replica of each thread, and the one after its last."""
        parts = min(self.count, R)
        return [(k * R // parts, (k + 1) * R // parts) for k in range(parts)]

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return the results of works, one a thread; none goes on when this ends, be it by a
        signal.
        """
        if self._pool is None or len(works) == 1:
            return [_flushed(work) for work in works]
        futures = [self._pool.submit(_flushed, work) for work in works]
        try:
            return [future.result() for future in futures]
        finally:
            wait(futures)


def _flushed(work: Callable[[], Any]) -> Any:
    with flushed():
        return work()


class SideBySide(Stepper):
    """Trains R networks of equal shapes, on a CPU or by torch on a device.

    Replicas may differ in data, initial weights, step, slope and seed. With R > 1, losses are (k,
    R), parameters (R, ...), and a replica that halts stays as it is while the others go on.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        self.problems = list(problems)
        self._single = len(problems) == 1
        self.full_batch = first.batch_size is None
        self.dtype = first.dtype
        stops = [p.config.optimizer.stop_below for p in problems]
        self.stop_below = stops[0] if self._single else None
        self.levels = self._each([-np.inf if stop is None else stop for stop in stops])
        self.criterion: Loss = first.loss
        self.sample_weight = first.loss.sample_weight(first.dataset.n)
        shared = all(p.dataset is first.dataset for p in problems)
        data = problems[:1] if shared else problems
        self.x: Weights = np.stack([p.dataset.x for p in data]).astype(
            self.dtype
        )  # (Q, n, d), Q = 1 or R
        self.y: Weights = np.stack([p.dataset.y for p in data]).astype(self.dtype)  # (Q, n)
        self.halted_at: list[tuple[int, Halt] | None] = [None] * len(problems)
        self._fresh = [Fresh(p) for p in problems] if first.fresh else []
        self._batches = [] if self.full_batch or first.fresh else [Batches(p) for p in problems]

    def _each(self, values: Sequence[float]) -> Weights:
        """Return one number per replica, (R,), in the precision of the run."""
        return np.array(values, dtype=self.dtype)

    @abstractmethod
    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates of every replica.

        Returns:
            The losses (R, n) and how many updates each replica did; a replica that did fewer than
            `n` halts at the state whose loss stands at that position.

        """

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        raise NotImplementedError(f"{type(self).__name__} has no batches")

    def advance(self, n: int) -> Floats:
        """Do `n` updates; see `Stepper.advance`. With replicas, losses are (n, R)."""
        if self.halted or n == 0:
            return np.empty(0 if self._single else (0, len(self.problems)))
        if not self.full_batch:
            self.run_batches(n)
            self.iteration += n
            return np.empty(0)
        losses, done = self.run(n)
        for r in np.flatnonzero(done < n) if min(done.tolist()) < n else ():
            if self.halted_at[r] is None:
                halt = first_halt(
                    losses[r, done[r] : done[r] + 1].astype(np.float64), float(self.levels[r])
                )
                assert halt is not None
                self.halted_at[r] = (self.iteration + int(done[r]), halt[1])
            losses[r, done[r] :] = losses[r, done[r]]
        count = n
        if all(self.halted_at):
            count = int(done.max())
            self.halted = self.halted_at[0][1] if self._single else "stopped"  # type: ignore[index]
        self.iteration += count
        kept = losses[:, : count + 1 if self.halted else count].T.astype(np.float64)  # (k, R)
        return kept[:, 0] if self._single else kept

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,), with the bits that
        `advance` would give it.
        """
        levels = self.levels.copy()
        self.levels[:] = np.inf  # the update of a state that halts is not done
        try:
            losses, _ = self.run(1)
        finally:
            self.levels[:] = levels
        return losses[:, 0].astype(np.float64)

    def loss(self) -> float:
        """Return the loss of the current state; with replicas, their mean."""
        return float(np.mean(self.losses()))

    def look(self) -> Floats:
        """Return the loss of the current state; see `Stepper.look`."""
        return super().look() if self._single else self.losses()[None]

    def numbers(self) -> dict[str, Any]:
        """Return how each replica ended; nothing for a single network, whose end the run
        records.
        """
        if self._single:
            return {}
        losses = self.losses()
        finite = [math.isfinite(L) for L in losses]
        halts = [halt or (self.iteration, "stopped") for halt in self.halted_at]
        return {
            "final_loss": float(np.mean(losses)),
            "replica_losses": [
                float(L) if ok else None for L, ok in zip(losses, finite, strict=True)
            ],
            "replica_iterations": [iteration for iteration, _ in halts],
            "replica_statuses": [
                "diverged" if not ok or why == "diverged" else "complete"
                for ok, (_, why) in zip(finite, halts, strict=True)
            ],
        }

    @abstractmethod
    def kept(self) -> StateDict:
        """Return copies of the weights and of the optimizer's memory, (R, ...), by their names
        in a checkpoint.
        """

    @abstractmethod
    def put(self, state: StateDict) -> None:
        """Restore the weights and the optimizer's memory that `kept()` returned."""

    def state_dict(self) -> StateDict:
        """Return weights, memory, iteration and where replicas halted."""
        halts = [(-1, 0) if h is None else (h[0], 1 + (h[1] == "diverged")) for h in self.halted_at]
        return {**self.kept(), "iteration": np.array(self.iteration), "halts": np.array(halts)}

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        self.put(state)
        self.iteration = int(state["iteration"])
        names: tuple[Halt, Halt] = ("stopped", "diverged")
        self.halted_at = [
            None if code == 0 else (int(at), names[int(code) - 1]) for at, code in state["halts"]
        ]

    def _without_axis(self, weights: Mapping[str, Weights]) -> dict[str, Weights]:
        """Return weights (R, ...) as `parameters` does: of a single network without the axis of
        replicas.
        """
        return {name: stack[0] if self._single else stack for name, stack in weights.items()}
