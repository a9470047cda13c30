"""What steppers of R replicas share: data, halting, checkpoints and numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas.tracing import facts
from dynamics_cli.gradients.derivatives import trained_names
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Loss, Problem
from dynamics_cli.process import cores
from dynamics_cli.training.batches import Batches, Fresh
from dynamics_cli.training.steppers.base import Halt, StateDict, Stepper, halt_of

Weights = NDArray[np.floating]
NETWORK = ""
"""In place of the name of a weight: all weights together."""
PARAMETER = "parameter/"
MEMORY = "memory/"
"""Before the names of weights, and of memory, in a checkpoint."""
_WHYS: tuple[Any, Halt, Halt] = (None, "stopped", "diverged")
"""Why a replica halted, by its number in a checkpoint."""


class Threads:
    """Threads of Python that call kernels side by side: numba gives them free of Python's lock."""

    def __init__(self, most: int) -> None:
        self.count = max(1, min(most, cores(), numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined] # set on import
        # which starts a thread when it is needed
        self._pool = ThreadPoolExecutor(max(1, self.count - 1))

    def shares(self, R: int) -> list[tuple[int, int]]:
        """Return the first replica of each thread, and the one after its last."""
        parts = min(self.count, R)
        return [(k * R // parts, (k + 1) * R // parts) for k in range(parts)]

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return the results of works, one a thread; the calling thread takes the first.

        To wake another thread takes as long as a small work.

        None goes on when this ends, be it by a signal.
        """
        if self.count == 1:
            return list(map(_flushed, works))
        futures = [self._pool.submit(_flushed, work) for work in works[1:]]
        try:
            return [_flushed(works[0]), *(future.result() for future in futures)]
        finally:
            wait(futures)


def _flushed(work: Callable[[], Any]) -> Any:
    with flushed():
        return work()


def for_each(stack: NDArray[Any], R: int) -> NDArray[Any]:
    """Return a view (R, ...) with an array for each of R replicas, of `stack` (R, ...) or (1, ...).

    Nothing is copied; the view can be written to, since units ask for the addresses of such arrays.
    """
    view = np.broadcast_to(stack, (R, *stack.shape[1:]))
    view.flags.writeable = True
    return view


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
        self.optimizers: list[Any] = [p.config.optimizer for p in problems]
        self.levels = self._each([optimizer.level for optimizer in self.optimizers])
        self.criterion: Loss = first.loss
        self.sample_weight = first.loss.sample_weight(first.dataset.n)

        data = [p.dataset for p in problems]
        if all(samples is first.dataset for samples in data):
            data = [first.dataset]
        # Q = 1 data set that all share, or Q = R
        self.x: Weights = np.stack([samples.x for samples in data]).astype(self.dtype)  # (Q, n, d)
        self.y: Weights = np.stack([samples.y for samples in data]).astype(self.dtype)  # (Q, n)

        self._names = trained_names(first)
        self.views: dict[str, Any] = {}
        """Views (R, ...) of the state: `parameter/NAME` of weights and averages of them, and
        `memory/SLOT/NAME` of the optimizer; NAME is empty of a number of all weights together.
        """
        self._sums = False
        """Whether the compiled update sums over weights: what it remembers is of many then."""
        self._counted_from = dict.fromkeys([NETWORK, *first.shapes], 0)
        """Weight, or the whole network -> the state from which the formula of the optimizer counts
        updates.
        """
        self._resting = dict.fromkeys(first.resting, 0)
        """Weight that a change has frozen -> its updates before."""
        self.halted_at: list[tuple[int, Halt] | None] = [None] * len(problems)
        self._fresh: list[Fresh] = []
        self._batches: list[Batches] = []
        if first.fresh:
            self._fresh = [Fresh(p) for p in problems]
        elif not self.full_batch:
            self._batches = [Batches(p) for p in problems]

    def _each(self, values: Sequence[float]) -> Weights:
        """Return one number per replica, (R,), in the precision of the run."""
        return np.array(values, dtype=self.dtype)

    def _starts(self) -> list[dict[str, Weights]]:
        """Return the initial weights of each replica."""
        return [problem.starting_parameters() for problem in self.problems]

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
            return self._by_state(np.empty((len(self.problems), 0)))
        if not self.full_batch:
            with self._keeping(r for r, halt in enumerate(self.halted_at) if halt is not None):
                self.run_batches(n)
            self.iteration += n
            return np.empty(0)

        return self._ended(*self.run(n))

    @contextmanager
    def _keeping(self, replicas: Iterable[int]) -> Iterator[None]:
        """Keep some replicas as they are, whatever is done to all."""
        rows = list(replicas)
        kept = [(view, view[rows]) for view in self.views.values() if rows]
        yield
        for view, before in kept:
            view[rows] = before

    @property
    def ends(self) -> list[int | None]:
        """Where replicas halted; see `Stepper.ends`."""
        return [None if halt is None else halt[0] for halt in self.halted_at]

    def _ended(self, losses: Weights, done: NDArray[np.int64]) -> Floats:
        """Take note of updates, given what `run` returns; return what `advance` does."""
        n = losses.shape[1]
        if min(done.tolist()) < n:
            self._note_halts(losses, done)
        if not self.halted:
            self.iteration += n
            return self._by_state(losses)

        # the loss of the state at which the last replica halts is the last one
        count = int(done.max())
        self.iteration += count
        return self._by_state(losses[:, : count + 1])

    def _note_halts(self, losses: Weights, done: NDArray[np.int64]) -> None:
        """Note the replicas that did fewer updates than there are losses (R, n).

        Their losses stay as they are from there on.
        """
        for r in np.flatnonzero(done < losses.shape[1]):
            last = losses[r, done[r]]
            if self.halted_at[r] is None:
                why = halt_of(float(last), float(self.levels[r]))
                assert why is not None
                self.halted_at[r] = (self.iteration + int(done[r]), why)
            losses[r, done[r] :] = last
        if all(self.halted_at):
            (_, why), *others = self.halted_at  # type: ignore[misc]
            self.halted = "stopped" if others else why

    def _by_state(self, losses: Weights) -> Floats:
        """Return losses (R, k) as `advance` does: (k, R), of a single network (k,)."""
        by_state = losses.T.astype(np.float64)
        return by_state[:, 0] if self._single else by_state

    def losses(self) -> Floats:
        """Return the current loss of every replica, (R,), with the bits of `advance`."""
        levels = self.levels.copy()
        self.levels[:] = np.inf  # the update of a state that halts is not done
        try:
            losses, _ = self.run(1)
        finally:
            self.levels[:] = levels
        return losses[:, 0].astype(np.float64)

    def look(self) -> Floats:
        """Return the losses of the current state; see `Stepper.look`."""
        losses = self.losses()
        going = np.isfinite(losses) & (losses > self.levels)
        self._note_halts(losses[:, None], going.astype(np.int64))
        return self._by_state(losses[:, None])

    def numbers(self) -> dict[str, Any]:
        """Return how each replica ended.

        The end of a single network is recorded by the run itself.
        """
        if self._single:
            return {}
        losses = self.losses()
        final: list[float | None] = []
        iterations = []
        statuses = []
        for loss, halt in zip(losses.tolist(), self.halted_at, strict=True):
            iteration, why = halt or (self.iteration, "stopped")
            final.append(loss)
            if not math.isfinite(loss):
                final[-1] = None  # as JSON has no other number for it
                why = "diverged"
            iterations.append(iteration)
            statuses.append("diverged" if why == "diverged" else "complete")
        return {
            "final_loss": float(np.mean(losses)),
            "replica_losses": final,
            "replica_iterations": iterations,
            "replica_statuses": statuses,
            "replica_stopped_early": [
                halt is not None and halt[1] == "stopped" for halt in self.halted_at
            ],
        }

    def follow(self, before: Stepper) -> list[str]:
        """Go on at the state of another stepper; see `Stepper.follow`."""
        super().follow(before)
        assert isinstance(before, SideBySide)
        self.halted_at = list(before.halted_at)
        optimizer = self.optimizers[0]
        same = optimizer.goes_on_from(before.optimizers[0])
        taken: StateDict = {}
        if same and self._sums == before._sums:
            taken = self._taken(before)
        begun = self._remember(taken)
        known = facts(optimizer)
        if begun and known is not None and known.counts:  # of all its memory alike
            begun = self._remember({})
        self._set_updates([0 if begun or not same else n for n in before.updates()])
        return begun

    def updates(self) -> list[int]:
        """Return the updates of the network and of each weight since its memory began."""
        return [
            self._resting.get(name, self.iteration - first)
            for name, first in self._counted_from.items()
        ]

    def _set_updates(self, updates: Sequence[int]) -> None:
        """Set the numbers that `updates()` returned at the current state."""
        known = dict(zip(self._counted_from, updates, strict=True))
        self._counted_from = {name: self.iteration - n for name, n in known.items()}
        self._resting = {name: known[name] for name in self._resting}

    # -- the state: views (R, ...) of weights and memory, and numbers of the stepper

    def _copied(self, view: Any) -> NDArray[Any]:
        """Return a copy of a view of the state."""
        copy: NDArray[Any] = view.copy()
        return copy

    def _set(self, view: Any, array: NDArray[Any]) -> None:
        """Set the numbers of a view of the state."""
        view[...] = array.reshape(view.shape)

    def held(self, prefix: str = "") -> StateDict:
        """Return copies (R, ...) of weights and memory whose names begin with `prefix`."""
        return {
            name: self._copied(view) for name, view in self.views.items() if name.startswith(prefix)
        }

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        weights = {name.removeprefix(PARAMETER): w for name, w in self.held(PARAMETER).items()}
        return self._without_axis(weights)

    def _taken(self, before: SideBySide) -> StateDict:
        """Return the memory of another stepper in the coordinates of this one."""
        return before.held(MEMORY)

    def _remember(self, memory: StateDict) -> list[str]:
        """Take over memory of equal names; the rest begins at 0, whose slots are returned."""
        known = {name.split("/")[1] for name in memory}
        begun: dict[str, None] = {}
        for name, view in self.views.items():
            if name.startswith(MEMORY):
                self._set(view, memory.get(name, np.zeros(view.shape)))
                slot = name.split("/")[1]
                if slot not in known:
                    begun[slot] = None
        return list(begun)

    def preconditioner(self) -> dict[str, NDArray[np.floating]]:
        """Return the optimizer's preconditioner; see `Stepper.preconditioner`."""
        updates = dict(zip(self._counted_from, self.updates(), strict=True))
        if not all(updates[name] for name in self._names):
            return {}
        return self._without_axis(self._diagonals(updates))

    def _diagonals(self, updates: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Return the preconditioners (R, ...) by weight, given the updates of each."""
        diagonals: dict[str, NDArray[Any]] = {}
        for name in self._names:
            slots = self._of_weight(name)
            rows = []
            for r, optimizer in enumerate(self.optimizers):
                memory = {slot: array[r].astype(np.float64) for slot, array in slots.items()}
                halt = self.halted_at[r]
                done = updates[name] if halt is None else updates[name] - self.iteration + halt[0]
                rows.append(optimizer.preconditioner(memory, max(done, 1)))
            diagonals[name] = np.reshape(rows, (len(rows), *self.problems[0].shapes[name]))
        return diagonals

    def _of_weight(self, name: str) -> dict[str, Any]:
        """Return the optimizer's memory (R, ...) of a weight by slot."""
        end = f"/{name}"
        held = self.held(MEMORY)
        return {
            key.removeprefix(MEMORY).removesuffix(end): array
            for key, array in held.items()
            if key.endswith(end)
        }

    def state_dict(self) -> StateDict:
        """Return weights, memory, iteration and where replicas halted."""
        halts = np.tile([-1, 0], (len(self.problems), 1))  # where, and the place of why in `_WHYS`
        for row, halt in zip(halts, self.halted_at, strict=True):
            if halt is not None:
                row[:] = halt[0], _WHYS.index(halt[1])
        state = {**self.held(), "iteration": np.array(self.iteration), "halts": halts}
        updates = np.array(self.updates())
        if (updates != self.iteration).any():
            state["updates"] = updates
        return state

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        for name, view in self.views.items():
            if name.startswith(PARAMETER):  # which the kernels' checkpoints of before leave out
                own = name if name in state else name.removeprefix(PARAMETER)
                self._set(view, state[own])
        self._remember({name: array for name, array in state.items() if name.startswith(MEMORY)})
        self.iteration = int(state["iteration"])
        # checkpoints of before count from one state for all weights
        earlier = np.array(self.iteration - state.get("memory_from", 0))
        updates = np.broadcast_to(state.get("updates", earlier), len(self._counted_from))
        self._set_updates(updates.tolist())
        self.halted_at = [None] * len(self.problems)
        for r, (at, code) in enumerate(state["halts"].tolist()):
            if code:
                self.halted_at[r] = (at, _WHYS[code])

    def _without_axis(self, weights: Mapping[str, Weights]) -> dict[str, Weights]:
        """Return weights (R, ...), of a single network without the axis of replicas."""
        if not self._single:
            return dict(weights)
        return {name: stack.reshape(stack.shape[1:]) for name, stack in weights.items()}
