"""The compiled stepper of networks of layers: any depth, and any activation, loss and optimizer that is a formula."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.engine import network, units
from dynamics_cli.engine.layout import Layout, some
from dynamics_cli.engine.native import blocks
from dynamics_cli.engine.records import TASK
from dynamics_cli.engine.subnormals import flushed
from dynamics_cli.kinds import Descent, Floats, Problem
from dynamics_cli.kinds.tracing import is_identity
from dynamics_cli.recording.derivatives import trained_names
from dynamics_cli.training.batches import Batches, Fresh, batches_of, chosen
from dynamics_cli.training.kernels import chunks_of, spanned
from dynamics_cli.training.steppers.base import StateDict
from dynamics_cli.training.steppers.side_by_side import SideBySide, Threads, Weights
from dynamics_cli.training.steppers.span import Span

CHUNK_NUMBERS, CHUNK_ROWS = 2**20, 64
"""Numbers that the layers give in a chunk, at most, unless it has few samples."""
Data = tuple[Weights, ...]
"""Inputs (Q, n, d), labels (Q, n, 1 or C), and the offsets of the outputs (Q, n, C)."""
Batched = tuple[NDArray[np.int64], NDArray[np.int64]]
_NONE = np.zeros(1, np.int64)


class KernelCall(NamedTuple):
    """The arguments of a call of the kernel, and the arrays that it writes."""

    data: Data
    weight: float
    """Of a sample in the loss."""
    rows: int
    """Samples of a chunk."""
    lrs: Floats
    """Steps (R, n)."""
    first: int
    """Iteration of the first update."""
    losses: Floats
    """(R, n), overwritten."""
    done: NDArray[np.int64]
    """Updates that each replica did (R,), overwritten."""
    batched: Batched | None = None
    """Samples of batches (R, k), and where each batch begins; None where batches are full."""
    mean: bool = False
    """Whether the gradient of a batch is divided by its samples."""
    gradients: bool = True
    updates: bool = True


class LayersStepper(SideBySide):
    """Weights of a network in one flat array; replicas, or the chunks of a large batch, go to all cores.

    Numba gives its kernel free of Python's lock, so that threads of Python call it side by side.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        first, R = problems[0], len(problems)
        architectures: list[Any] = [p.config.architecture for p in problems]
        architectures[0].refuse_unknown_weights(first.shapes)
        if architectures[0].factors:
            self._see_whole(architectures[0].sides())
        optimizers = [o for p in problems if isinstance(o := p.config.optimizer, Descent)]
        self._steps = [partial(o.step_size, iterations=first.iterations) for o in optimizers]
        self._constant = np.empty((R, 0))
        self.levels = np.array([-np.inf if (level := o.stop_below) is None else level for o in optimizers])
        self._update_unit = units.update_unit(optimizers[0], self.dtype)
        first, initial = self._in_span(first)
        self._layout = layout = Layout(first, trained_names(first), self.dtype)
        self._train, P = network.train(self.dtype).call, layout.P
        (theta,), (memory,) = blocks(self.dtype, R * P), blocks(self.dtype, R * len(self._update_unit.slots) * P)
        self._theta, self._memory = theta.reshape(R, P), memory.reshape(R, -1, P)
        self._views = layout.views(self._theta)
        for r, weights in enumerate(initial):
            for name, weight in weights.items():
                self._views[name][r] = weight
        self._gradient = np.zeros_like(self._theta[0])
        self.y = self.y.reshape(*self.y.shape[:2], -1)  # (Q, n, 1) or (Q, n, C)
        n, batch = self.x.shape[1], first.batch_size or self.x.shape[1]
        bases = R if architectures[0].centered else 1
        shapes = self.x.shape, self.y.shape, (bases, n, layout.sizes[-1])
        given = [blocks(self.dtype, math.prod(shape))[0].reshape(shape) for shape in shapes]
        given[0][...], given[1][...] = self.x, self.y
        self._data: Data = tuple(given)
        self.x, self.y, _ = given
        self._fresh = [Fresh(p) for p in problems if p.fresh]
        self._batches: list[Batches] = [] if self.full_batch or self._fresh else [batches_of(p) for p in problems]
        self._rows, self._batch_rows = self._chunk(n), self._chunk(batch)
        self._threads = Threads(max(R, -(-n // self._rows), -(-batch // self._batch_rows)))
        buffers = [self._made_buffers(max(self._rows, self._batch_rows)) for _ in range(self._threads.count)]
        self._networks = [layout.network(*one[:3]) for one in buffers]
        names = "gradient", "chunk_gradient", "batch_x", "batch_y", "batch_base"
        self._buffers = [dict(zip(names, one[3:], strict=True)) for one in buffers]
        self._fields = self._fields_of_all_calls(architectures)
        # of the last full-batch call: the next is alike
        self._last: tuple[KernelCall, list[Any]] | None = None
        if architectures[0].centered:
            with layout.centring(*self._networks):
                self._all_sums()

    # -- the network as the kernel reads it

    def _in_span(self, problem: Problem) -> tuple[Problem, list[dict[str, Weights]]]:
        """Return the first problem and all initial weights in the coordinates that the kernel is given."""
        initial = [p.initial_parameters() for p in self.problems]
        self._first, self._span = next(iter(problem.shapes)), None
        if not any(spanned(p) for p in self.problems):
            return problem, initial
        self._span = Span(self.x, [one[self._first] for one in initial])
        self.x = self._span.x
        inside = [{**one, self._first: start} for one, start in zip(initial, self._span.start, strict=True)]
        return self._span.seen(problem), inside

    def _see_whole(self, sides: list[int]) -> None:
        """Make of pairs (row, column) and entries the columns of the identity and the matrix, NaN where not seen."""
        places = self.x.astype(np.int64)  # (Q, n, 2)
        labels = np.full((len(self.y), sides[0], sides[-1]), np.nan, self.dtype)
        for q, seen in enumerate(places):
            labels[q, seen[:, 1], seen[:, 0]] = self.y[q]
        self.x, self.y = np.eye(sides[0], dtype=self.dtype)[None], labels

    def _chunk(self, n: int) -> int:
        """Return how many of `n` samples are a chunk, whose gradients are summed apart."""
        if self._layout.depth:
            return n
        rows = -(-n // chunks_of(n, self.problems[0].multiply_adds))
        return min(rows, max(CHUNK_ROWS, CHUNK_NUMBERS // self._layout.numbers))

    def _made_buffers(self, rows: int) -> list[Weights]:
        """Return the work space of one thread for chunks of `rows` samples.

        Activations, deltas, scratch, a gradient, the gradient of a chunk, and a batch.
        """
        layer, P, batch = rows * self._layout.numbers, self._layout.P, self.problems[0].batch_size or 0
        batches = (batch * one.shape[2] for one in self._data)
        return blocks(self.dtype, layer, layer, self._layout.scratch(rows), P, P, *batches)

    def _fields_of_all_calls(self, architectures: Sequence[Any]) -> dict[str, Any]:
        """Return the fields of `TASK` that are the same in every call."""
        sigmas = [c.sigma for c in architectures]
        curves = [None if is_identity(one) else units.activation_unit(one, self.dtype) for one in sigmas]
        numbers = [np.zeros(1) if one is None else some(one.numbers) for one in curves]
        most = max(len(one) for one in numbers)
        names, factors = trained_names(self.problems[0]), self.problems[0].step_factors()
        places = [self._layout.at[name] for name in names]
        return {
            "columns": self.x.shape[2], "labels": self.y.shape[2], "outputs": self._data[2].shape[2],
            "levels": self.levels, "theta": self._theta, "memory": self._memory, "weights": self._layout.P,
            "slots": len(self._update_unit.slots), "activation_numbers_step": most,
            "activation_units": np.array([0 if one is None else one.address for one in curves]),
            "activation_numbers": np.array([np.pad(one, (0, most - len(one))) for one in numbers]),
            "update": self._update_unit.address, "update_numbers": some(self._update_unit.numbers),
            "segments": np.array([[at.start, at.stop] for at in places]), "segment_count": len(places),
            "rate_factors": np.array([factors.get(name, 1.0) for name in names], np.float64),
        }  # fmt: skip

    # -- training

    def _call(self, work: KernelCall, replicas: tuple[int, int], slot: int) -> None:
        """Call the kernel, see there; `slot` says whose buffers it works on."""
        self._train(ctypes.byref(self._task(work, replicas, slot)))

    def _task(self, work: KernelCall, replicas: tuple[int, int], slot: int) -> Any:
        """Return the kernel's record."""
        (x, y, base), (batches, ends) = work.data, work.batched or (_NONE, _NONE)
        x_step, y_step, base_step = (one[0].size if len(one) > 1 else 0 for one in work.data)
        return TASK(
            network=self._networks[slot], first_replica=replicas[0], last_replica=replicas[1], x=x, y=y, base=base,
            x_step=x_step, y_step=y_step, base_step=base_step, samples=x.shape[1], chunk=work.rows,
            sample_weight=work.weight, mean=work.mean, gradients=work.gradients, updates=work.updates,
            count=work.lrs.shape[1], iteration=work.first, rates=work.lrs, losses=work.losses, done=work.done,
            full_batch=work.batched is None, batches=batches, batches_step=batches.shape[-1], batch_ends=ends,
            **self._fields, **self._buffers[slot],
        )  # fmt: skip

    def _each_replica(self, work: KernelCall) -> None:
        """Call the kernel for all replicas, shared out among the threads."""
        shares = self._threads.shares(len(self.problems))
        self._threads.run([partial(self._call, work, share, slot) for slot, share in enumerate(shares)])

    def _lrs(self, at: int, n: int) -> Floats:
        """Return the steps (R, n) of the updates from iteration `at` on."""
        optimizer: Any = self.problems[0].config.optimizer
        if optimizer.schedule is None:
            if self._constant.shape[1] != n:
                self._constant = np.repeat([[step(0)] for step in self._steps], n, axis=1)
            return self._constant
        return np.array([[step(at + t) for t in range(n)] for step in self._steps])

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        R, lrs, weight = len(self.problems), self._lrs(self.iteration, n), self.sample_weight
        if self._last is None or self._last[0].lrs is not lrs:
            losses, done = np.empty((R, n)), np.empty(R, np.int64)
            work = KernelCall(self._data, weight, self._rows, lrs, 0, losses, done)
            self._last = work, [self._task(work, share, slot) for slot, share in enumerate(self._threads.shares(R))]
        work, tasks = self._last
        if not self._splits_batch(self._rows):
            for task in tasks:
                task.iteration = self.iteration
            self._threads.run([partial(self._train, ctypes.byref(task)) for task in tasks])
            return work.losses, work.done
        work = work._replace(first=self.iteration)
        for t in range(n):
            work.losses[0, t] = self._sums(self._data, weight, self._rows) * float(self.dtype.type(weight))
            if not self._update(work, t):
                work.done[0] = t
                return work.losses, work.done
        work.done[0] = n
        return work.losses, work.done

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        at, last = self.iteration, self.iteration + n
        while at < last:
            data, samples, ends = self._next_batches(at, last - at)
            self._run_batches(at, data, samples, ends)
            at += len(ends) - 1

    def _next_batches(self, at: int, most: int) -> tuple[Data, NDArray[np.int64], NDArray[np.int64]]:
        """Return data, the samples (R, ...) of the batches from iteration `at` on, and where each batch begins."""
        if not self._fresh:
            picked = [chosen(batches, at, most) for batches in self._batches]
            return self._data, np.stack([one for one, _ in picked]), picked[0][1]
        drawn = [fresh.at(at, most) for fresh in self._fresh]
        x, y = (np.ascontiguousarray(np.stack(one)) for one in list(zip(*drawn, strict=True))[:2])
        ends = np.arange(drawn[0][2] + 1) * self._fresh[0].batch_size
        base = np.zeros((1, x.shape[1], self._data[2].shape[2]), self.dtype)
        samples = np.tile(np.arange(ends[-1]), (len(drawn), 1))
        return (x, y.reshape(*y.shape[:2], -1), base), samples, ends

    def _run_batches(self, at: int, data: Data, samples: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Do the updates from iteration `at` on, batch b of `samples[r, ends[b] : ends[b + 1]]`."""
        R, n, mean = len(self.problems), len(ends) - 1, self.criterion.reduction == "mean"
        losses, done = np.zeros((R, n)), np.empty(R, np.int64)
        work = KernelCall(data, 1.0, self._batch_rows, self._lrs(at, n), at, losses, done, (samples, ends), mean)
        if not self._splits_batch(self._batch_rows):
            self._each_replica(work)
            return
        for t in range(n):
            own = samples[0, ends[t] : ends[t + 1]]
            batch = tuple(one.take(own, axis=1) for one in data)
            self._sums(batch, 1.0 / len(own) if mean else 1.0, self._batch_rows)
            self._update(work, t)

    def _splits_batch(self, rows: int) -> bool:
        """Whether the chunks of one batch are shared out among the threads, which changes no bit."""
        n = self.problems[0].batch_size if rows is self._batch_rows else None
        return self._single and self._threads.count > 1 and rows < (n or self.x.shape[1])

    def _sums(self, data: Data, weight: float, rows: int, *, gradients: bool = True) -> float:
        """Return the summed losses of samples, and leave their gradient in the first buffer."""
        n, total, slots = data[0].shape[1], 0.0, len(self._buffers)
        starts = range(0, n, rows)
        for k in range(0, len(starts), slots):
            parts = [tuple(one[:, start : start + rows] for one in data) for start in starts[k : k + slots]]
            works = [self._loss_only(part, weight, rows, gradients=gradients) for part in parts]
            self._threads.run([partial(self._call, work, (0, 1), slot) for slot, work in enumerate(works)])
            for slot, work in enumerate(works):
                total += float(work.losses[0, 0])
                if gradients and k == slot == 0:
                    self._gradient[:] = self._buffers[0]["gradient"]
                elif gradients:
                    with flushed():  # as the kernel sums chunks
                        self._gradient += self._buffers[slot]["gradient"]
        return total

    def _loss_only(self, data: Data, weight: float, rows: int, *, gradients: bool = False) -> KernelCall:
        """Return the work of summing losses (R, 1), without an update."""
        R = len(self.problems)
        losses, done = np.empty((R, 1)), np.empty(R, np.int64)
        return KernelCall(data, weight, rows, np.empty((R, 1)), 0, losses, done, gradients=gradients, updates=False)

    def _update(self, work: KernelCall, t: int) -> bool:
        """Do update `t` of some work with the gradient of `_sums`; return whether its loss does not halt the run."""
        self._buffers[0]["gradient"][:] = self._gradient
        one = work._replace(
            data=self._data, weight=1.0, rows=1, lrs=work.lrs[:, t : t + 1], first=work.first + t,
            losses=work.losses[:, t : t + 1], batched=None, mean=False, gradients=False,
        )  # fmt: skip
        self._call(one, (0, 1), 0)
        return bool(work.done[0])

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        return super().losses() if self.full_batch else self._all_sums() * self.sample_weight

    def _all_sums(self) -> Floats:
        """Return the summed losses of all samples of every replica, (R,)."""
        if self._splits_batch(self._rows):
            return np.array([self._sums(self._data, 1.0, self._rows, gradients=False)])
        work = self._loss_only(self._data, 1.0, self._rows)
        self._each_replica(work)
        return work.losses[:, 0]

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        found = {name: one.copy() for name, one in self._views.items()}
        if self._span is not None:
            found[self._first] = self._span.whole(found[self._first])
        return self._own(found)

    def _named(self) -> dict[str, Weights]:
        """Return views (R, ...) of the weights and of the optimizer's memory, by their names in checkpoints."""
        found = {f"parameter/{name}": one for name, one in self._views.items()}
        for slot, label in enumerate(self._update_unit.slots):
            own = self._layout.views(self._memory[:, slot])
            found.update({f"memory/{label}/{name}": one for name, one in own.items()})
        return found

    def kept(self) -> StateDict:
        """Return copies of weights and memory; see `SideBySide.kept`."""
        return {name: one.copy() for name, one in self._named().items()} | (self._span.kept() if self._span else {})

    def put(self, state: StateDict) -> None:
        """Set weights and memory; see `SideBySide.put`."""
        if self._span is not None:
            self._span.put(state)
        for name, one in self._named().items():
            one[...] = state[name]
