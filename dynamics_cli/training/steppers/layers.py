"""The compiled stepper of networks of layers: any depth, and any activation, loss and optimizer that is a formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dynamics_cli.engine import units
from dynamics_cli.engine.network import run
from dynamics_cli.engine.products import product_units
from dynamics_cli.kinds import Descent, Problem
from dynamics_cli.kinds.tracing import is_identity
from dynamics_cli.recording.derivatives import trained_names
from dynamics_cli.training.batches import Batches, Fresh, batches_of, chosen
from dynamics_cli.training.kernels import chunks_of, spanned
from dynamics_cli.training.steppers.base import Floats, State
from dynamics_cli.training.steppers.side_by_side import SideBySide, Weights
from dynamics_cli.training.steppers.span import Span

CHUNK_NUMBERS, CHUNK_ROWS = 2**20, 64
"""Numbers that the layers give in a chunk, at most, unless it has few samples."""
Data = tuple[Weights, ...]
"""Inputs (Q, n, d), labels (Q, n, 1 or C), and what is subtracted from the outputs (Q, n, C)."""
_LINE = 64
"""Bytes."""
_NONE: NDArray[np.int64] = np.empty((1, 0), np.int64)


class LayersStepper(SideBySide):
    """Weights of a network in one flat array; replicas, or the chunks of a large batch, go to all cores.

    Numba gives its kernel free of Python's lock, so that threads of Python call it side by side.
    """

    backend = "compiled"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        first, R = problems[0], len(problems)
        architectures: list[Any] = [p.config.architecture for p in problems]
        architectures[0].refuse_unknown_weights(first.shapes)
        if architectures[0].factors:
            self._see_whole(architectures[0].sides())
        optimizers = [o for p in problems if isinstance(o := p.config.optimizer, Descent)]
        self._steps = [partial(o.step_size, iterations=first.iterations) for o in optimizers]
        self.levels = np.array([-np.inf if (level := o.stop_below) is None else level for o in optimizers])
        self._kind = optimizers[0].kind
        self._update_unit, loss = units.update_unit(optimizers[0], self.dtype), units.loss_unit(first.loss, self.dtype)
        self._units = np.array([*product_units(self.dtype), loss.address, self._update_unit.address])
        self._loss_numbers, self._update_numbers = _some(loss.numbers), _some(self._update_unit.numbers)
        first, initial = self._in_span(first)
        self._shapes = first.shapes
        self._at: dict[str, slice] = {}
        P = 0
        for name, size in ((name, int(np.prod(shape))) for name, shape in self._shapes.items()):
            self._at[name] = slice(P, P := P + size)
        self._segments, self._factors = self._steps_of(first)
        self._net = self._network(first)
        curves = [None if is_identity(c.sigma) else units.activation_unit(c.sigma, self.dtype) for c in architectures]
        self._sigmas = np.array([0 if one is None else one.address for one in curves])
        numbers = [np.empty(0) if one is None else one.numbers for one in curves]
        most = max(1, *(len(one) for one in numbers))
        self._sigma_numbers = np.concatenate([np.pad(one, (0, most - len(one))) for one in numbers])
        self._depth = 0 if len(self._net[1]) else architectures[0].depth
        self._theta = _aligned(np.stack([self._flat(one) for one in initial]))  # (R, P)
        self._gradient = np.zeros_like(self._theta[0])
        self._memory = _aligned(np.zeros((R, len(self._update_unit.slots), P), self.dtype))
        self.x = _aligned(self.x)
        self.y = self.y.reshape(*self.y.shape[:2], -1)  # (Q, n, 1) or (Q, n, C)
        C = int(self._net[0][-1])
        n, batch = self.x.shape[1], first.batch_size or self.x.shape[1]
        self._base = np.zeros((R if architectures[0].centered else 1, n, C), self.dtype)
        self._fresh = [Fresh(p) for p in problems if p.fresh]
        self._batches: list[Batches] = [] if self.full_batch or self._fresh else [batches_of(p) for p in problems]
        self._threads = max(1, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        self._rows, self._batch_rows = self._chunk(n), self._chunk(batch)
        at_once = min(self._threads, max(R, -(-n // self._rows), -(-batch // self._batch_rows)))
        self._buffers = [self._made_buffers(max(self._rows, self._batch_rows)) for _ in range(at_once)]
        self._pool = ThreadPoolExecutor(at_once) if at_once > 1 else None
        if architectures[0].centered:  # scale 0 has the kernel write the outputs themselves there
            self._net, net = (*self._net[:-2], self.dtype.type(0), True), self._net
            self._all_sums()
            self._net = net

    # -- what a network is for the kernel

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

    def _network(self, problem: Problem) -> Any:
        """Return what the kernel is told of a network: sizes, where the layers stand, what of them is trained, their
        multipliers, the numbers of the loss, the scale, and whether outputs are scaled or centred.
        """
        c, shapes = problem.config.architecture, problem.shapes
        ends = self._loss_numbers, self.dtype.type(c.output_scale or 1.0), bool(c.output_scale or c.centered)
        weights = [name for name in shapes if "weight" in name]
        if not weights:  # a diagonal network
            none = np.empty((0, 2), np.int64)
            return (np.array([problem.dataset.d, 1]), none, none > 0, np.empty(0, self.dtype), *ends)
        biases = [name.replace("weight", "bias") for name in weights]
        sizes = [shapes[weights[0]][1], *(np.atleast_2d(np.empty(shapes[w])).shape[0] for w in weights)]
        multipliers = c.multipliers(sizes)
        trained = trained_names(problem)
        at = [
            (self._at[w].start, self._at[b].start if b in shapes else -1) for w, b in zip(weights, biases, strict=True)
        ]
        learns = [(w in trained, b in trained) for w, b in zip(weights, biases, strict=True)]
        factors = np.array(multipliers or np.ones(len(weights)), self.dtype)
        return (np.array(sizes), np.array(at), np.array(learns), factors, *ends)

    def _steps_of(self, problem: Problem) -> tuple[NDArray[np.int64], Floats]:
        """Return where the trained weights of one step begin and end (S, 2), and the factors of their steps."""
        apart = self._update_unit.by_tensor
        found: list[list[Any]] = []
        rates = problem.step_factors()
        for name in trained_names(problem):
            place, factor = self._at[name], rates.get(name, 1.0)
            if found and not apart and found[-1][1] == place.start and found[-1][2] == factor:
                found[-1][1] = place.stop
            else:
                found.append([place.start, place.stop, factor])
        return np.array([one[:2] for one in found]), np.array([one[2] for one in found], np.float64)

    def _flat(self, parameters: Mapping[str, NDArray[np.generic]]) -> Weights:
        """Return parameters as one array (P,): matrices by columns."""
        return np.concatenate([np.asarray(parameters[name], self.dtype).T.ravel() for name in self._at])

    def _unpacked(self, flat: Weights) -> dict[str, Weights]:
        """Return copies of flat arrays (R, P) by name, (R, ...)."""
        shapes = self._shapes
        split = {name: flat[:, place].reshape(len(flat), *shapes[name][::-1]) for name, place in self._at.items()}
        return {name: np.array(one.transpose(0, *range(one.ndim - 1, 0, -1)), order="C") for name, one in split.items()}

    def _chunk(self, n: int) -> int:
        """Return how many of `n` samples are a chunk, whose gradients are summed apart."""
        if self._depth:
            return n
        numbers = int(sum(self._net[0][1:]))
        rows = -(-n // chunks_of(n, self.problems[0].multiply_adds))
        return min(rows, max(CHUNK_ROWS, CHUNK_NUMBERS // numbers))

    def _made_buffers(self, rows: int) -> tuple[Weights, ...]:
        """Return the arrays that the kernel works on, for chunks of so many samples, of one thread."""
        sizes, P = self._net[0], self._theta.shape[1]
        most = max(a * b for a, b in pairwise(sizes.tolist()))
        layers = rows * int(sum(sizes[1:])), 1 + most + rows * int(max(sizes))
        if self._depth:
            layers = rows, 2 * P
        batch = self.problems[0].batch_size or 0
        shapes = [
            layers[0],
            layers[0],
            layers[1],
            P,
            P,
            *(batch * one.shape[2] for one in (self.x, self.y, self._base)),
        ]
        return tuple(_aligned(np.zeros(shape, self.dtype)) for shape in shapes)

    # -- training

    def _call(
        self, replicas: tuple[int, int], data: Data, weight: float, rows: int, slot: int, lrs: Floats, first: int,
        losses: Floats, done: NDArray[np.int64], samples: NDArray[np.int64] = _NONE,
        ends: NDArray[np.int64] = _NONE[0], *, gradients: bool = True, updates: bool = True,
    ) -> None:  # fmt: skip
        """Call the kernel, see there; `slot` says whose buffers it works on."""
        run(
            self._net, self._units, self._sigmas, self._sigma_numbers, self._depth or None, replicas, self._theta,
            *data, self.dtype.type(weight), rows, self._buffers[slot], self._memory, self._segments, self._factors,
            self._update_numbers, lrs, first, losses, done, self.levels, samples, ends, gradients, updates,
        )  # fmt: skip

    def _together(self, works: Sequence[Callable[[], None]]) -> None:
        """Do pieces of work, one a thread; none goes on when this ends, be it by a signal."""
        if self._pool is None or len(works) == 1:
            for work in works:
                work()
            return
        futures = [self._pool.submit(work) for work in works]
        try:
            for future in futures:
                future.result()
        finally:
            wait(futures)

    def _each_replica(self, call: Callable[..., None]) -> None:
        """Call the kernel as `call(replicas, slot)` for all replicas, shared out among the threads."""
        R, parts = len(self.problems), min(len(self._buffers), len(self.problems))
        bounds = [k * R // parts for k in range(parts + 1)]
        self._together([partial(call, (bounds[k], bounds[k + 1]), k) for k in range(parts)])

    def _lrs(self, at: int, n: int) -> Floats:
        """Return the steps (R, n) of the updates from iteration `at` on."""
        if self.problems[0].config.optimizer.schedule is None:  # type: ignore[attr-defined]
            return np.repeat([[step(0)] for step in self._steps], n, axis=1)
        return np.array([[step(at + t) for t in range(n)] for step in self._steps])

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        R, lrs, weight = len(self.problems), self._lrs(self.iteration, n), self.sample_weight
        losses, done, data = np.empty((R, n)), np.full(R, n), (self.x, self.y, self._base)
        if not self._apart(self._rows):
            self._each_replica(
                lambda replicas, slot: self._call(
                    replicas, data, weight, self._rows, slot, lrs, self.iteration, losses, done
                )
            )
            return losses, done
        for t in range(n):
            losses[0, t] = self._sums(data, weight, self._rows) * float(self.dtype.type(weight))
            self._update(self.iteration, t, lrs, losses[:, t : t + 1], done)
            if done[0] == 0:
                done[0] = t
                return losses, done
        done[0] = n
        return losses, done

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
            return (self.x, self.y, self._base), np.stack([one for one, _ in picked]), picked[0][1]
        drawn = [fresh.at(at, most) for fresh in self._fresh]
        x, y = (np.stack(one) for one in list(zip(*drawn, strict=True))[:2])
        ends = np.arange(drawn[0][2] + 1) * self._fresh[0].batch_size
        base = np.zeros((1, x.shape[1], self._base.shape[2]), self.dtype)
        samples = np.tile(np.arange(ends[-1]), (len(drawn), 1))
        return (x, y.reshape(*y.shape[:2], -1), base), samples, ends

    def _run_batches(self, at: int, data: Data, samples: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Do the updates from iteration `at` on, batch b of `samples[r, ends[b] : ends[b + 1]]`."""
        n, lrs = len(ends) - 1, self._lrs(at, len(ends) - 1)
        losses, done = np.zeros((len(self.problems), n)), np.empty(len(self.problems), np.int64)
        mean = self.criterion.reduction == "mean"
        if not self._apart(self._batch_rows):
            self._each_replica(
                lambda replicas, slot: self._call(
                    replicas, data, 0.0 if mean else 1.0, self._batch_rows, slot, lrs, at, losses, done, samples, ends
                )
            )
            return
        for t in range(n):
            own = samples[0, ends[t] : ends[t + 1]]
            batch = tuple(one[:, own] for one in data)
            self._sums(batch, 1.0 / len(own) if mean else 1.0, self._batch_rows)
            self._update(at, t, lrs, losses[:, t : t + 1], done)

    def _apart(self, rows: int) -> bool:
        """Whether the chunks of one batch are shared out among the threads, which changes no bit."""
        n = self.problems[0].batch_size if rows is self._batch_rows else None
        return self._single and self._pool is not None and rows < (n or self.x.shape[1])

    def _sums(self, data: Data, weight: float, rows: int, *, gradients: bool = True) -> float:
        """Return the summed losses of samples, and leave their gradient in the first buffer."""
        n, total, slots = data[0].shape[1], 0.0, len(self._buffers)
        lrs, done, sums = np.empty((1, 1)), np.empty((slots, 1), np.int64), np.empty((slots, 1, 1))
        starts = range(0, n, rows)
        for k in range(0, len(starts), slots):
            parts = [tuple(one[:, start : start + rows] for one in data) for start in starts[k : k + slots]]
            self._together(
                [
                    partial(
                        self._call, (0, 1), part, weight, rows, slot, lrs, 0, sums[slot], done[slot],
                        gradients=gradients, updates=False,
                    )
                    for slot, part in enumerate(parts)
                ]
            )  # fmt: skip
            for slot in range(len(parts)):
                total += float(sums[slot, 0, 0])
                if gradients and k == slot == 0:
                    self._gradient[:] = self._buffers[0][3]
                elif gradients:
                    self._gradient += self._buffers[slot][3]
        return total

    def _update(self, at: int, t: int, lrs: Floats, losses: Floats, done: NDArray[np.int64]) -> None:
        """Do the update from state `at + t` with the gradient of `_sums`."""
        self._buffers[0][3][:] = self._gradient
        data = (self.x, self.y, self._base)
        self._call(
            (0, 1), data, 1.0, 1, 0, lrs[:, t : t + 1], at + t, losses, done, gradients=False
        )  # fmt: skip

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        return super().losses() if self.full_batch else self._all_sums() * self.sample_weight

    def _all_sums(self) -> Floats:
        """Return the summed losses of all samples of every replica, (R,)."""
        R, data = len(self.problems), (self.x, self.y, self._base)
        if self._apart(self._rows):
            return np.array([self._sums(data, 1.0, self._rows, gradients=False)])
        sums, done = np.empty((R, 1)), np.empty(R, np.int64)
        self._each_replica(
            lambda replicas, slot: self._call(
                replicas, data, 1.0, self._rows, slot, np.empty((R, 1)), 0, sums, done, gradients=False, updates=False
            )
        )
        return sums[:, 0]

    def parameters(self) -> dict[str, Weights]:
        """Return copies of the current weights, by name; with replicas, (R, ...)."""
        found = self._unpacked(self._theta)
        if self._span is not None:
            found[self._first] = self._span.whole(found[self._first])
        return {name: one[0] for name, one in found.items()} if self._single else found

    def state_dict(self) -> State:
        """Return weights, what the optimizer remembers, iteration and where replicas halted."""
        state: State = {f"parameter/{name}": one for name, one in self._unpacked(self._theta).items()}
        for slot, label in enumerate(self._update_unit.slots):
            for name, one in self._unpacked(self._memory[:, slot]).items():
                state[f"{self._kind}/{label}/{name}"] = one
        return {**state, **self._progress(), **(self._span.state_dict() if self._span else {})}

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        if self._span is not None:
            self._span.load_state_dict(state)
        for r in range(len(self.problems)):
            self._theta[r] = self._flat({name: state[f"parameter/{name}"][r] for name in self._at})
            for slot, label in enumerate(self._update_unit.slots):
                own = {name: state[f"{self._kind}/{label}/{name}"][r] for name in self._at}
                self._memory[r, slot] = self._flat(own)
        self._go_on(state)


def _aligned(array: Weights) -> Weights:
    """Return a copy that begins with a line of the cache; other products take up to 1.3 times as long."""
    raw = np.zeros(array.nbytes + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _some(numbers: Floats) -> Floats:
    """Return numbers, at least one: kernels take no empty array."""
    return numbers if len(numbers) else np.zeros(1)
