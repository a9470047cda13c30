"""The compiled stepper of networks of layers.

They have any depth, and any activation, loss and optimizer that is a formula.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas import units
from dynamics_cli.formulas.native import address_of, blocks
from dynamics_cli.formulas.tracing import facts, is_identity
from dynamics_cli.gradients.engine import network
from dynamics_cli.gradients.engine.layout import Layout
from dynamics_cli.gradients.engine.records import TASK
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.kinds import Floats, Problem
from dynamics_cli.training.batches import chosen
from dynamics_cli.training.kernels import chunks_of, spanned
from dynamics_cli.training.steppers.base import StateDict
from dynamics_cli.training.steppers.side_by_side import (
    MEMORY,
    NETWORK,
    PARAMETER,
    SideBySide,
    Threads,
    Weights,
    for_each,
)
from dynamics_cli.training.steppers.span import Span

CHUNK_NUMBERS = 2**20
CHUNK_ROWS = 64
"""Numbers that the layers give in a chunk, at most, unless it has few samples."""
GATHERED = 2**18
"""Numbers of batches that are gathered at once, at most: they stay in the cache."""
Data = tuple[Weights, ...]
"""Inputs (R, n, d), labels (R, n, 1 or C), and the offsets of the outputs (R, n, C)."""


class LayersStepper(SideBySide):
    """Weights of a network in one flat array.

    Replicas, or the chunks of a large batch, go to all cores.

    Numba gives its kernel free of Python's lock, so that threads of Python call it side by side.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        first = problems[0]
        R = len(problems)
        architecture: Any = first.config.architecture
        architecture.refuse_unknown_weights(first.shapes)
        if architecture.factors:
            self._see_whole(architecture.sides())

        # steps, and the losses at which replicas halt, in float64 as the kernel compares them
        self._steps = [partial(o.step_size, iterations=first.iterations) for o in self.optimizers]
        self._constant = np.empty((R, 0))
        self.levels = np.array([o.level for o in self.optimizers])
        self._optimizer = units.update_unit(self.optimizers[0], self.dtype)
        known = facts(self.optimizers[0])
        self._sums = known is not None and known.sums

        # weights, and the optimizer's memory of them
        first, initial = self._spanned(first)
        self._layout = Layout(first, self._names, self.dtype)
        P = self._layout.P
        slots = len(self._optimizer.slots)
        self._theta = self._zeros(R, P)
        self._memory = self._zeros(R, slots, P)
        self._gradient = np.zeros(P, self.dtype)
        self._weights = self._layout.views(self._theta)
        self.views = {f"{PARAMETER}{name}": view for name, view in self._weights.items()}
        for k, slot in enumerate(self._optimizer.slots):
            of_slot = self._layout.views(self._memory[:, k])
            if slot in self._optimizer.of_network:  # one number, at the first weight
                of_slot = {NETWORK: self._memory[:, k, self._layout.at[self._names[0]].start]}
            self.views |= {f"{MEMORY}{slot}/{name}": view for name, view in of_slot.items()}
        for r, weights in enumerate(initial):
            for name, weight in weights.items():
                self._weights[name][r] = weight

        # samples
        n = self.x.shape[1]
        self._samples = n
        x = self._zeros(*self.x.shape)
        x[...] = self.x
        self.x = x
        y = self.y.reshape(*self.y.shape[:2], -1)  # (Q, n, 1) or (Q, n, C)
        base = np.zeros((R if architecture.centered else 1, n, self._layout.sizes[-1]), self.dtype)
        self._data: Data = tuple(for_each(array, R) for array in (x, y, base))

        # work space of each thread
        batch = first.batch_size or n
        self._rows = self._chunk_rows(n)
        self._batch_rows = self._chunk_rows(batch)
        self._threads = Threads(max(R, -(-n // self._rows), -(-batch // self._batch_rows)))
        rows = max(self._rows, self._batch_rows)
        self._buffers = [self._made_buffers(rows) for _ in range(self._threads.count)]
        self._fields = self._common_fields()
        # of the last full-batch call: the next is alike
        self._last: tuple[Floats, Floats, NDArray[np.int64], list[Any]] | None = None
        if architecture.centered:
            starts = self._theta.copy()
            self._set_to_initial_weights()
            with self._layout.centring(*(buffers["network"] for buffers in self._buffers)):
                self._summed_losses()
            self._theta[...] = starts

    def _set_to_initial_weights(self) -> None:
        """Set the weights to the initial ones, whose outputs a centred network subtracts."""
        for r, problem in enumerate(self.problems):
            weights = problem.initial_parameters()
            if self._span is not None:
                weights[self._first] = self._span.inside(weights[self._first], r)
            for name, weight in weights.items():
                self._weights[name][r] = weight

    # -- the network as the kernel reads it

    def _spanned(self, problem: Problem) -> tuple[Problem, list[dict[str, Weights]]]:
        """Return the first problem and all initial weights in the kernel's coordinates."""
        initial = self._starts()
        self._first = next(iter(problem.shapes))
        self._span = None
        if not any(spanned(p) for p in self.problems):
            return problem, initial
        self._span = Span(self.x, [weights[self._first] for weights in initial])
        self.x = self._span.x
        for weights, start in zip(initial, self._span.start, strict=True):
            weights[self._first] = start
        return self._span.seen(problem), initial

    def _see_whole(self, sides: list[int]) -> None:
        """Turn pairs (row, column) and entries into identity and matrix, NaN if not seen."""
        places = self.x.astype(np.int64)  # (Q, n, 2)
        labels = np.full((len(self.y), sides[0], sides[-1]), np.nan, self.dtype)
        for q, seen in enumerate(places):
            labels[q, seen[:, 1], seen[:, 0]] = self.y[q]
        self.x = np.eye(sides[0], dtype=self.dtype)[None]
        self.y = labels

    def _zeros(self, *shape: int) -> Weights:
        """Return zeros that begin on a line of the cache."""
        (flat,) = blocks(self.dtype, math.prod(shape))
        return flat.reshape(shape)

    def _chunk_rows(self, n: int) -> int:
        """Return how many of `n` samples are a chunk, whose gradients are summed apart."""
        if self._layout.depth:
            return n
        rows = -(-n // chunks_of(n, self.problems[0].multiply_adds))
        return min(rows, max(CHUNK_ROWS, CHUNK_NUMBERS // self._layout.numbers))

    def _made_buffers(self, rows: int) -> dict[str, Any]:
        """Return the fields of `TASK` for one thread's work space, for chunks of `rows` samples."""
        numbers = rows * self._layout.numbers
        P = self._layout.P
        *arrays, gradient = blocks(self.dtype, numbers, numbers, self._layout.scratch(rows), P)
        return {"network": self._layout.network(*arrays), "gradient": gradient}

    def _activations(self) -> tuple[NDArray[np.int64], Floats]:
        """Return the addresses (R,) of units of activations, and the numbers (R, q) they take."""
        R = len(self.problems)
        addresses = np.zeros(R, np.int64)  # 0 for the identity
        rows = []
        for r, problem in enumerate(self.problems):
            architecture: Any = problem.config.architecture
            rows.append(np.zeros(1))
            if not is_identity(architecture.sigma):
                made = units.activation_unit(architecture.sigma, self.dtype)
                addresses[r] = made.native.address
                rows[r] = made.numbers
        numbers = np.zeros((R, max(map(len, rows))))
        for r, row in enumerate(rows):
            numbers[r, : len(row)] = row
        return addresses, numbers

    def _common_fields(self) -> dict[str, Any]:
        """Return the fields of `TASK` that are the same in every call, or in most."""
        addresses, numbers = self._activations()
        names = self._names
        factors = self.problems[0].step_factors()
        places = [self._layout.at[name] for name in names]
        return {
            "labels": self._data[1].shape[2],
            "outputs": self._data[2].shape[2],
            "levels": self.levels,
            "theta": self._theta,
            "memory": self._memory,
            "weights": self._layout.P,
            "slots": len(self._optimizer.slots),
            "activation_numbers_step": numbers.shape[1],
            "activation_units": addresses,
            "activation_numbers": numbers,
            "update": self._optimizer.native.address,
            "update_numbers": self._optimizer.numbers,
            "segments": np.array([[place.start, place.stop, 0] for place in places] + [[0, 0, 0]]),
            "segment_count": len(names),
            "rate_factors": np.array([factors.get(name, 1.0) for name in names], np.float64),
            "sample_weight": self.sample_weight,
            "mean": False,
            "gradients": True,
            "iteration": 0,
            "full_batch": True,
            "batch_ends": np.zeros(1, np.int64),
            "watch": 0,
            "watching": 0,
            "due": np.full(1, -1),
        }

    # -- training

    def _tasks(self, data: Data, **fields: Any) -> list[Any]:
        """Return the kernel's records of all replicas, shared among threads, with what differs."""
        given = self._fields | {
            "samples": data[0].shape[1],
            "count": fields["rates"].shape[1],
        }
        for name, array in zip(("x", "y", "base"), data, strict=True):
            given[name] = array[0]
            given[f"{name}_step"] = array.strides[0] // array.itemsize  # 0 where replicas share it
        shares = zip(self._threads.shares(len(self.problems)), self._buffers, strict=False)
        return [
            TASK(**given | buffers | fields, first_replica=first, last_replica=last)
            for (first, last), buffers in shares
        ]

    def _train(self, tasks: Sequence[Any]) -> None:
        kernel = network.train_updates(self.dtype).call
        self._threads.run([partial(kernel, ctypes.byref(task)) for task in tasks])

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
        lrs = self._lrs(self.iteration, n)
        weight = self.sample_weight
        if self._last is None or self._last[0] is not lrs:
            losses = np.empty(lrs.shape)
            done = np.empty(len(lrs), np.int64)
            self._last = (
                lrs,
                losses,
                done,
                self._tasks(self._data, rates=lrs, losses=losses, done=done),
            )
        _, losses, done, tasks = self._last
        if self._rows == self._samples:
            for task in tasks:
                task.iteration = self.iteration
            self._train(tasks)
            return losses, done
        done[:] = n
        for r, level in enumerate(self.levels):
            for t in range(n):
                summed = self._sum_over_chunks(self._data, self._rows, r, weight, gradients=True)
                losses[r, t] = summed * float(self.dtype.type(weight))
                if not np.isfinite(losses[r, t]) or losses[r, t] <= level:
                    done[r] = t
                    break
                self._update(r, self.iteration + t, lrs[r, t], losses[r, t])
        return losses, done

    @property
    def watchable(self) -> bool:  # type: ignore[override]
        """Whether a call trains one network, on all samples at once and by its own weights."""
        whole = self.full_batch and self._rows == self._samples
        factors = self.problems[0].config.architecture.factors
        return self._single and whole and self._span is None and not factors

    def advance_watched(self, n: int, due: NDArray[np.int64], watch: Any, watching: Any) -> Floats:
        """Do up to `n` updates; see `Stepper.advance_watched`."""
        if self.halted:
            return np.empty(0)
        losses = np.empty((1, n))
        done = np.empty(1, np.int64)
        fields = {"rates": self._lrs(self.iteration, n), "losses": losses, "done": done}
        fields |= {"watch": watch.address, "watching": watching, "due": np.append(due, -1)}
        self._train(self._tasks(self._data, **fields, iteration=self.iteration))
        count = int(done[0])
        if watch.measured < np.searchsorted(due, self.iteration + count, side="right"):
            return self._ended(losses[:, :count], done)
        return self._ended(losses, done)

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        at = self.iteration
        last = self.iteration + n
        while at < last:
            data, ends = self._next_batches(at, last - at)
            self._run_batches(at, data, ends)
            at += len(ends) - 1

    def _next_batches(self, at: int, most: int) -> tuple[Data, NDArray[np.int64]]:
        """Return the samples of batches from iteration `at` on, and where each batch begins."""
        if self._fresh:
            return self._fresh_batches(at, most)
        columns = sum(array.shape[2] for array in self._data)
        most = max(1, min(most, GATHERED // (columns * self._batches[0].batch_size)))
        picked = [chosen(batches, at, most) for batches in self._batches]
        data = tuple(
            np.empty((len(picked), len(picked[0][0]), array.shape[2]), self.dtype)
            for array in self._data
        )
        for array, gathered in zip(self._data, data, strict=True):
            for r, (rows, _) in enumerate(picked):
                # by other modes it is copied twice
                array[r].take(rows, 0, gathered[r], mode="clip")
        return data, picked[0][1]

    def _fresh_batches(self, at: int, most: int) -> tuple[Data, NDArray[np.int64]]:
        """Return new samples, as `_next_batches` does."""
        xs, ys, counts = zip(*(fresh.at(at, most) for fresh in self._fresh), strict=True)
        x = np.stack(xs)
        y = np.stack(ys)
        base = np.zeros((1, x.shape[1], self._data[2].shape[2]), self.dtype)
        data = x, y.reshape(*y.shape[:2], -1), for_each(base, len(x))
        return data, np.arange(counts[0] + 1) * self._fresh[0].batch_size

    def _run_batches(self, at: int, data: Data, ends: NDArray[np.int64]) -> None:
        """Do updates from iteration `at` on; batch b has the samples `ends[b]` to `ends[b + 1]`."""
        mean = self.criterion.reduction == "mean"
        lrs = self._lrs(at, len(ends) - 1)
        losses = np.zeros(lrs.shape)
        done = np.empty(len(lrs), np.int64)
        if self._batch_rows == self.problems[0].batch_size:
            self._train(
                self._tasks(
                    data,
                    rates=lrs,
                    losses=losses,
                    done=done,
                    sample_weight=1.0,
                    mean=mean,
                    iteration=at,
                    full_batch=False,
                    batch_ends=ends,
                )
            )
            return
        for r, (t, (first, last)) in product(range(len(lrs)), enumerate(pairwise(ends.tolist()))):
            batch = tuple(array[:, first:last] for array in data)
            weight = 1.0 / (last - first) if mean else 1.0
            self._sum_over_chunks(batch, self._batch_rows, r, weight, gradients=True)
            self._update(r, at + t, lrs[r, t], 0.0)

    def _sum_over_chunks(
        self, data: Data, rows: int, r: int, weight: float = 1.0, *, gradients: bool = False
    ) -> float:
        """Return the summed losses of samples of replica r.

        Where wanted, `_gradient` is filled with the gradient of `weight` times them.

        Threads share out the chunks, which are summed in their order: the number of threads changes
        no bit.
        """
        starts = range(0, data[0].shape[1], rows)
        slots = len(self._buffers)
        total = 0.0
        for k in range(0, len(starts), slots):
            works = []
            for slot, first in enumerate(starts[k : k + slots]):
                part = [array[r, first : first + rows] for array in data]
                works.append(partial(self._evaluate, part, r, weight, slot, gradients))
            for slot, loss in enumerate(self._threads.run(works)):
                total += loss
                if gradients and k == slot == 0:
                    self._gradient[:] = self._buffers[0]["gradient"]
                elif gradients:
                    with flushed():  # as the kernels do
                        self._gradient += self._buffers[slot]["gradient"]
        return total

    def _evaluate(
        self, samples: Sequence[Weights], r: int, weight: float, slot: int, gradients: bool
    ) -> float:
        """Return the summed losses of a chunk of replica r, on the buffers of a slot."""
        buffers = self._buffers[slot]
        fields = self._fields
        sigma = fields["activation_units"][r]
        numbers = fields["activation_numbers"][r]
        x, y, base, theta, g = map(address_of, (*samples, self._theta[r], buffers["gradient"]))
        net = ctypes.addressof(buffers["network"])
        arguments = (
            sigma,
            address_of(numbers),
            theta,
            x,
            y,
            base,
            len(samples[0]),
            weight,
            g,
            gradients,
        )
        return float(self._layout.loss_and_gradient.call(net, *arguments))

    def _update(self, r: int, iteration: int, lr: float, loss: float) -> None:
        """Update replica r from state `iteration` by `_gradient`."""
        fields = self._fields
        P = self._layout.P
        S = fields["segment_count"]
        arrays = (
            self._theta[r],
            self._gradient,
            self._memory[r],
            fields["segments"],
            fields["rate_factors"],
        )
        theta, g, memory, segments, factors = map(address_of, arrays)
        numbers = address_of(fields["update_numbers"])
        with flushed():
            self._optimizer.native.call(
                theta, g, memory, P, segments, S, factors, lr, iteration, loss, numbers
            )

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        if self.full_batch:
            return super().losses()
        return self._summed_losses() * self.sample_weight

    def _summed_losses(self) -> Floats:
        """Return the summed losses of all samples of every replica, (R,)."""
        R = len(self.problems)
        if self._rows < self._samples:
            return np.array([self._sum_over_chunks(self._data, self._rows, r) for r in range(R)])
        losses = np.empty((R, 1))
        done = np.empty(R, np.int64)
        never = np.full(R, np.inf)
        fields = {"rates": losses, "losses": losses, "done": done, "levels": never}
        self._train(self._tasks(self._data, **fields, gradients=False, sample_weight=1.0))
        return losses[:, 0]

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        copies = super().parameters()
        if self._span is not None:
            whole = self._span.whole(self._weights[self._first])
            copies |= self._without_axis({self._first: whole})
        return copies

    def _taken(self, before: SideBySide) -> StateDict:
        """Return the memory of another stepper; see `SideBySide._taken`."""
        taken = super()._taken(before)
        former = before._span if isinstance(before, LayersStepper) else None
        for name, array in taken.items():
            if not name.endswith(f"/{self._first}"):
                continue
            whole = array if former is None else former.whole_memory(array)
            if self._span is not None:
                whole = np.stack([self._span.inside(rows, r) for r, rows in enumerate(whole)])
            taken[name] = whole
        return taken

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        known = dict(state)
        for slot in self._optimizer.of_network:  # checkpoints of before have it with a weight
            former = state.get(f"{MEMORY}{slot}/{self._names[0]}")
            if former is not None:
                known[f"{MEMORY}{slot}/"] = former.reshape(len(former), -1)[:, 0]
        super().load_state_dict(known)

    def _set_updates(self, updates: Sequence[int]) -> None:
        """Set the numbers of updates; see `SideBySide.updates`."""
        super()._set_updates(updates)
        firsts = [self._counted_from[name] for name in (*self._names, NETWORK)]
        self._fields["segments"][:, 2] = firsts
