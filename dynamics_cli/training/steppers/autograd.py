"""The reference stepper: PyTorch's autograd, for any architecture, loss, optimizer and device.

Weights of R replicas are stacked, (R, ...), and `torch.func.vmap` asks for the operations of an
update once for all, as batched products and convolutions of groups. Some of these round differently
from those of one network by itself. A trial at the start tells: where a bit differs, the gradient
of each replica is computed as it is alone. A CUDA device always takes the operations for all.

A network with modes (`kinds/modules.py`) is trained by itself. Updates are those of its training
mode, losses are those of its evaluation mode.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dynamics_cli.draws import RandomLayers
from dynamics_cli.formulas.native import address_of
from dynamics_cli.formulas.tracing import facts
from dynamics_cli.formulas.units import Unit, update_unit
from dynamics_cli.gradients.engine.subnormals import flushed
from dynamics_cli.gradients.totals import total, total_and_gradients
from dynamics_cli.kinds import Descent, Floats, Loss, Problem
from dynamics_cli.kinds.arrays import AVERAGE, stacked
from dynamics_cli.kinds.base import bundled
from dynamics_cli.kinds.modules import buffers_of, layers_seed, put_buffers
from dynamics_cli.kinds.optimizers import CLIP_EPS
from dynamics_cli.kinds.torch_optimizers import TorchOptimizer, TorchUpdater
from dynamics_cli.memory import ON_GPU
from dynamics_cli.process import exact_convolutions, threads_for
from dynamics_cli.training.steppers.base import StateDict, Stepper
from dynamics_cli.training.steppers.side_by_side import (
    MEMORY,
    NETWORK,
    PARAMETER,
    SideBySide,
    Weights,
    for_each,
)

Tensors = dict[str, Tensor]
MOST_WORK = 2**25
"""Multiply-adds of an update of one network beyond which the products take the time, not the
calls of torch.
"""
_TRIED = 8
"""Replicas that a trial compares with networks alone, at most."""
_COMPARED = 2**10
"""Outputs of networks that it compares, about: most sums are rounded alike in two orders."""
_MOST_STATES = 256
"""States at which it does so, at most."""
_JITTER = 0.01
"""Size of the random numbers that it adds to the weights from state to state."""


def initial_network(problem: Problem, device: str) -> nn.Module:
    """Return the network of a problem with its initial weights, in the precision of the run."""
    dtype = getattr(torch, problem.config.dtype)
    return problem.config.architecture.network(
        problem.dataset.d, problem.initial_parameters(), dtype, device
    )


@cache
def _parts_of(P: int, replicas: int) -> tuple[Any, Any]:
    """Return the segments of `update_unit` for equal parts of P numbers, and their factors 1."""
    each = P // replicas
    parts = (ctypes.c_int64 * (3 * replicas + 3))()
    for r in range(replicas):
        parts[3 * r] = r * each
        parts[3 * r + 1] = (r + 1) * each
    return parts, (ctypes.c_double * replicas)(*[1.0] * replicas)


def update_in_place(
    unit: Unit,
    replicas: int,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    *,
    lr: float | Floats,
    names: Sequence[str],
    state: MutableMapping[str, Tensor],
    iteration: int,
    loss: Tensor,
) -> None:
    """Update tensors on a CPU by the compiled formula of an optimizer; see `Descent.update`.

    Each of the `replicas` along the first axis is a part of its own, with its `lr` where they
    differ: a processor computes some numbers at once and the rest one by one, which rounds
    differently.
    """
    of_batch = 0.0 if loss.ndim else float(loss)  # no update of replicas asks for it
    numbers = address_of(unit.numbers)
    step = lr
    steps = None
    if isinstance(lr, np.ndarray):
        step = 1.0
        steps = (ctypes.c_double * replicas)(*lr)
    for name, w, g in zip(names, parameters, gradients, strict=True):
        flat = w.contiguous()
        slope = g.contiguous()
        P = flat.numel()
        addresses = (flat.data_ptr(), slope.data_ptr(), state[name].data_ptr())
        parts, factors = _parts_of(P, replicas)
        factors = steps or factors
        unit.native.call(
            *addresses, P, parts, replicas, factors, step, iteration, of_batch, numbers
        )
        if flat is not w:
            w.copy_(flat)


def update_by_torch(
    optimizer: Descent,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    *,
    lr: float | Floats,
    names: Sequence[str],
    **given: Any,
) -> None:
    """Update tensors by torch's form of an optimizer; `lr` (R,) where replicas differ in it."""
    if not isinstance(lr, np.ndarray):
        optimizer.update(parameters, gradients, lr=lr, names=names, **given)
        return
    for name, w, g in zip(names, parameters, gradients, strict=True):
        each: Any = torch.from_numpy(lr).to(w).repeat_interleave(w[0].numel())
        optimizer.update([w], [g], lr=each, names=[name], **given)


def stackable(problem: Problem) -> bool:
    """Return whether networks of this problem are trained side by side with a gain."""
    architecture = problem.config.architecture
    device = "cpu"
    most_work = MOST_WORK
    if problem.config.device == "cuda":
        device = "cuda"
        most_work *= ON_GPU
    samples = problem.batch_size or problem.dataset.n
    optimizer = problem.config.optimizer
    assert isinstance(optimizer, Descent)
    of_update = facts(optimizer.unclipped)
    return (
        of_update is not None
        and not (of_update.sums or of_update.loss)
        and not architecture.players  # which have a stepper of their own
        and not architecture.centered  # where every replica has a function of its own
        and getattr(architecture, "slope", None) is None
        and samples * problem.multiply_adds <= most_work
        and problem.dataset.n <= problem.block_samples(device)
        and not problem.has_modes
    )


def _random_layers(problem: Problem, module: nn.Module, device: str) -> RandomLayers | None:
    """Return the layers of a network that may draw in training; None of one without modes."""
    if not problem.has_modes:
        return None
    return RandomLayers(module, apart=device == "cpu" and bundled(problem.config.architecture))


def _value_of(model: nn.Module, loss: Loss) -> Callable[..., Tensor]:
    def value(trained: Tensors, fixed: Tensors, x: Tensor, y: Tensor) -> Tensor:
        return loss.total(functional_call(model, {**trained, **fixed}, (x,)), y)  # type: ignore[no-any-return]

    return value


@dataclass
class WeightGroup:
    """Weights that an optimizer moves together, by an equal factor of the step size."""

    factor: float
    weights: Tensors
    update: Callable[..., None]
    """As `Descent.update`."""
    slots: Sequence[str] | None = None
    """Of the memory of a compiled formula, which is among the views of the stepper; else None."""
    counts_each: bool = False
    """Whether the update is told how many updates each weight had, since it moves one by one."""
    memory: Tensors = field(default_factory=dict)
    """The optimizer's memory of these weights, unless an `updater` keeps it."""
    updater: TorchUpdater | None = None

    def step(
        self,
        gradients: Mapping[str, Tensor],
        loss: Tensor,
        *,
        lr: float | Floats,
        iteration: int,
        counted_from: Mapping[str, int],
    ) -> None:
        """Update the weights that have gradients by those and the losses of all replicas.

        `counted_from` has the states from which updates are counted, see `SideBySide`.
        """
        moving = [name for name in self.weights if name in gradients]
        firsts = {name: counted_from[name] for name in moving}
        if not self.counts_each:
            firsts = dict.fromkeys(moving, counted_from[NETWORK])
        for first in dict.fromkeys(firsts.values()):
            names = [name for name in moving if firsts[name] == first]
            self.update(
                [self.weights[name] for name in names],
                [gradients[name] for name in names],
                lr=lr,
                names=names,
                state=self.memory,
                iteration=iteration - first,
                loss=loss,
            )


class AutogradStepper(SideBySide):
    """Gradients by `torch.autograd`, updates in place.

    Losses stay on the device until `advance` returns them.
    """

    compiles: ClassVar[bool] = True
    """Whether updates on a CPU are compiled where they are formulas."""

    def __init__(self, problems: Sequence[Problem], device: str) -> None:
        """Put weights and data of one problem, or of several that are `stackable`, on a device."""
        super().__init__(problems)
        first = problems[0]
        self.device = device
        self._module = initial_network(first, device)
        named: dict[str, Tensor] = dict(self._module.named_parameters())
        self._named = named
        self._weights = named
        if self._single and first.start is not None:
            with torch.no_grad():
                for name, weight in first.starting_parameters().items():
                    named[name].copy_(torch.from_numpy(weight))
            put_buffers(self._module, first.start)
        if not self._single:
            starts = stacked(self._starts())
            self._weights = {name: torch.from_numpy(starts[name]).to(device) for name in named}
        self._trained = {name: w for name, w in self._weights.items() if named[name].requires_grad}
        self._fixed = {name: w for name, w in self._weights.items() if name not in self._trained}

        self._take_averages()
        self._take_samples()
        self._block = first.block_samples(device)
        n = first.dataset.n
        self._layers = _random_layers(first, self._module, device)
        self._training_block = self._block
        if self._layers is not None:  # one may take statistics of the whole batch
            self._training_block = first.batch_size or n
        R = len(problems)
        self._threads = partial(threads_for, first.threaded_work(R * (first.batch_size or n)))
        self._looking_threads = partial(threads_for, first.threaded_work(R * n))
        self._value = _value_of(self._module, first.loss)
        self._both = grad_and_value(self._value)
        self._factors = first.step_factors()
        self._iterations = first.iterations
        self._distinct = {optimizer.lr: optimizer for optimizer in self.optimizers}.items()
        self._groups = {part: list(self._grouped(names)) for part, names in self._parts().items()}
        self.mapped = not self._single
        """Whether one operation computes for all replicas."""
        if self.mapped and device == "cpu":
            self.mapped = self._maps_bit_for_bit()

    def _take_averages(self) -> None:
        """Begin averages of the weights, and make views of both."""
        self._averages: Tensors = {}
        """Averages of the weights, by the names of the weights."""
        if self.problems[0].averages:
            self._averages = {name: w.detach().clone() for name, w in self._weights.items()}
        before = [problem.start or {} for problem in self.problems]
        for name, average in self._averages.items():
            if AVERAGE + name in before[0]:  # kept before a change too
                kept = np.stack([start[AVERAGE + name] for start in before])
                average.copy_(torch.from_numpy(kept).reshape(average.shape))

        for name, w in self._weights.items():
            self.views[f"{PARAMETER}{name}"] = w.detach()
        for name, average in self._averages.items():
            self.views[f"{PARAMETER}{AVERAGE}{name}"] = average
        if self._single:
            self.views = {name: w[None] for name, w in self.views.items()}
        self._averaged: list[tuple[Tensor, Tensor]] = []
        """Averages and weights of each replica, which rounds as it does alone."""
        for name in self._averages:
            stacks = (self.views[f"{PARAMETER}{start}{name}"] for start in (AVERAGE, ""))
            self._averaged += zip(*stacks, strict=True)

    def _take_samples(self) -> None:
        """Put the samples of all replicas on the device."""
        x = torch.from_numpy(self.x).to(self.device)  # (Q, n, d)
        y = torch.from_numpy(self.criterion.numbered(self.y)).to(self.device)  # (Q, n)
        self._samples = x.flatten(0, 1), y.flatten(0, 1)  # (Q n, d), (Q n,)
        self._data = x, y
        self._axis: int | None = 0
        if len(x) == 1:  # replicas that share their samples have them without an axis
            self._data = x[0], y[0]
            self._axis = None
        self._firsts = for_each(
            np.arange(len(x))[:, None] * self.problems[0].dataset.n, len(self.problems)
        )
        """Where the samples of each replica begin among all."""
        self._epoch = -1
        self._picked: tuple[Tensor, ...] = ()
        """The samples of all updates of an epoch."""

    def _parts(self) -> dict[str, list[str]]:
        """Return the names of weights that one update moves, by a name of the update.

        Those that rest have their memory among them.
        """
        return {"all": [name for name in self._weights if self._has_memory(name)]}

    def _has_memory(self, name: str) -> bool:
        return name in self._trained or name in self._resting

    def _grouped(self, names: Sequence[str]) -> Iterator[WeightGroup]:
        """Yield the groups of these weights."""
        R = len(self.problems)
        factors = dict.fromkeys(names, 1.0) | dict(self._factors)
        optimizer = self.optimizers[0].unclipped  # `_clipped` does it
        known = facts(optimizer)
        for factor in dict.fromkeys(factors[name] for name in names):
            moved = {name: self._weights[name] for name in names if factors[name] == factor}
            group = WeightGroup(factor, moved, partial(update_by_torch, optimizer))
            group.counts_each = known is not None and not known.over_all
            if isinstance(optimizer, TorchOptimizer):
                group.updater = optimizer.updater([*moved], [*moved.values()])
                group.update = group.updater.update
            elif self.compiles and self.device == "cpu" and known is not None and not known.sums:
                unit = update_unit(optimizer, self.dtype)
                group.update = partial(update_in_place, unit, R)
                group.slots = unit.slots
                for name, w in moved.items():
                    rows = group.memory[name] = w.new_zeros(len(unit.slots), w.numel())
                    for slot, row in zip(unit.slots, rows, strict=True):
                        shape = self.problems[0].shapes[name]
                        self.views[f"{MEMORY}{slot}/{name}"] = row.view(R, *shape)
            yield group

    def _step_sizes(self, i: int) -> Any:
        """Return the step size of the update from state `i`, or those (R,) of replicas."""
        sizes = {lr: optimizer.step_size(i, self._iterations) for lr, optimizer in self._distinct}
        if len(sizes) == 1:
            return next(iter(sizes.values()))
        return np.array([sizes[optimizer.lr] for optimizer in self.optimizers])

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        resting = np.array([halt is not None for halt in self.halted_at])
        held = [*self._weights.values(), *self._averages.values()]
        held += buffers_of(self._module).values()
        for group in chain(*self._groups.values()):
            if group.slots is not None:
                held += group.memory.values()
        before = [tensor.detach().clone() for tensor in held]
        remembered: list[Any] = []
        for _, group in self._own():
            own = group.memory if group.updater is None else group.updater.remembered()
            remembered.append(deepcopy(own))
        losses = self._descend(n, np.where(resting, 0, n))
        halting = ~np.isfinite(losses) | (losses <= self.levels[:, None])
        done = np.where(halting.any(axis=1), halting.argmax(axis=1), n)
        if (done[~resting] < n).any():
            # a state that halts is not updated: do the updates again, each replica up to its own
            # halt
            with torch.no_grad():
                for tensor, former in zip(held, before, strict=True):
                    tensor.copy_(former)
            for (_, group), memory in zip(self._own(), remembered, strict=True):
                if group.updater is None:
                    group.memory = memory
                else:
                    group.updater.recall(*memory)
            self._descend(int(done.max()), done)
        return losses, done

    def advance(self, n: int) -> Floats:
        """Do `n` updates; see `Stepper.advance`."""
        with self._computing(self._threads):
            return super().advance(n)

    @contextmanager
    def _computing(self, threads: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Compute on `threads` in the modes of training."""
        on_device = nullcontext() if self.device == "cpu" else exact_convolutions()
        with threads(), flushed(everywhere=True), on_device:
            yield

    def _descend(self, n: int, most: NDArray[np.int64]) -> Weights:
        """Do `n` updates, of replica r the first `most[r]`; return losses (R, n)."""
        losses = []
        held: list[Tensor] = []
        for t in range(n):
            if t == 0 or t in most:
                resting = torch.from_numpy(np.flatnonzero(most <= t)).to(self.device)
                if len(resting):
                    held = [*self.views.values()]
            # the replicas that rest are updated with the others, and put back
            kept = [w[resting] for w in held]
            losses.append(self._step(self.iteration + t, *self._data, self._axis))
            for w, value in zip(held, kept, strict=True):
                w[resting] = value
        if not losses:
            return np.empty((len(self.problems), 0), self.dtype)
        return torch.stack(losses).reshape(n, -1).T.cpu().numpy()

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        for i in range(self.iteration, self.iteration + n):
            self._step(i, *self._batch(i), 0)

    def _batch(self, i: int) -> tuple[Tensor, Tensor]:
        """Return samples (R, b, d) and labels (R, b) of the update from state `i`.

        A single network has no axis R.
        """
        if self._fresh:
            return self._fresh_batch(i)
        epoch, step = divmod(i, self._batches[0].steps_per_epoch)
        if epoch != self._epoch:
            orders = np.stack([batches.order(epoch) for batches in self._batches])  # (R, n)
            orders += self._firsts
            if self._single:
                (orders,) = orders
            picked = torch.from_numpy(orders).to(self.device)
            self._picked = torch.split(picked, self._batches[0].batch_size, -1)
            self._epoch = epoch

        x, y = self._samples
        chosen = self._picked[step]
        if self._single:  # which `index_select` does in less time
            return x.index_select(0, chosen), y.index_select(0, chosen)
        return x[chosen], y[chosen]

    def _fresh_batch(self, i: int) -> tuple[Tensor, Tensor]:
        """Return new samples for the update from state `i`, as `_batch` does."""
        drawn = [fresh.at(i)[:2] for fresh in self._fresh]
        new_x, new_y = drawn[0]
        if not self._single:
            new_x, new_y = map(np.stack, zip(*drawn, strict=True))
        x, y = self._samples
        return torch.from_numpy(new_x).to(x), torch.from_numpy(new_y).to(y)

    def _step(self, i: int, x: Tensor, y: Tensor, axis: int | None) -> Tensor:
        """Do the update from state `i`, from samples with replicas at an `axis`.

        Return the losses (R,) before it.
        """
        if not self._single:
            gradients, losses = self._gradients(x, y, axis)
            self._update("all", i, gradients, losses)
            return losses

        seen = None
        if self._layers is not None and self.full_batch:  # batches leave their losses to `losses`
            seen = self._total()
        drawn: AbstractContextManager[None] = nullcontext()
        if self._layers is not None:
            drawn = self._layers.seeded(layers_seed(self.problems[0].config.seed, i))
        with drawn:
            loss, slopes = total_and_gradients(
                self._module,
                self.criterion,
                x,
                y,
                list(self._trained.values()),
                self._training_block,
            )
        self._update("all", i, dict(zip(self._trained, slopes, strict=True)), loss)
        return loss if seen is None else seen

    def _gradients(self, x: Tensor, y: Tensor, axis: int | None) -> tuple[Tensors, Tensor]:
        """Return gradients (R, ...) and losses (R,) of all replicas."""
        if self.mapped:
            return self._mapped(self._both, x, y, axis)  # type: ignore[no-any-return]
        losses, gradients = zip(*self._alone(x, y, axis, range(len(self.problems))), strict=True)
        stacks = map(torch.stack, zip(*gradients, strict=True))
        return dict(zip(self._trained, stacks, strict=True)), torch.stack(losses)

    def _alone(
        self, x: Tensor, y: Tensor, axis: int | None, replicas: Iterable[int]
    ) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Yield loss and gradients of some replicas, by the operations of a network alone."""
        for samples in self._one_by_one(x, y, axis, replicas):
            yield total_and_gradients(
                self._module,
                self.criterion,
                *samples,
                [self._named[name] for name in self._trained],
                self._block,
            )

    def _one_by_one(
        self, x: Tensor, y: Tensor, axis: int | None, replicas: Iterable[int]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Put the weights of each of some replicas into the module; yield its samples."""
        for r in replicas:
            with torch.no_grad():
                for name, stack in self._weights.items():
                    self._named[name].copy_(stack[r])
            yield (x, y) if axis is None else (x[r], y[r])

    def _maps_bit_for_bit(self) -> bool:
        """Return whether operations for all replicas leave each the bits that it has alone.

        Gradients and losses of some replicas are compared, at weights from which no sum is exact by
        chance; with batches, for the first and the last update of an epoch, which may be smaller.
        """
        before = self.state_dict()
        R = len(self.problems)
        replicas = np.unique(np.linspace(0, R - 1, min(R, _TRIED)).astype(int)).tolist()
        first = self.problems[0]
        outputs = len(replicas) * (first.batch_size or first.dataset.n) * first.outputs
        states = min(_MOST_STATES, max(2, _COMPARED // outputs))
        updates = [0, self._batches[0].steps_per_epoch - 1] if self._batches else [0]
        rng = torch.Generator().manual_seed(0)
        agree = True
        with self._computing(self._threads):
            for k in range(states):
                for w in self._weights.values():
                    w.add_(torch.randn(w.shape, generator=rng, dtype=w.dtype), alpha=_JITTER)
                agree = agree and self._agree(updates[k % len(updates)], replicas)
        self.load_state_dict(before)
        return agree

    def _agree(self, i: int, replicas: Sequence[int]) -> bool:
        """Return whether replicas have the bits of networks alone in the update from state `i`.

        The weights are the current ones.
        """
        x, y = self._data
        axis = self._axis
        if not self.full_batch:
            x, y = self._batch(i)
            axis = 0
        try:
            gradients, losses = self._mapped(self._both, x, y, axis)
            looked = self._mapped(self._value, *self._data, self._axis)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            return False  # `torch.func.vmap` does not know an operation, such as a branch on values
        clipped = self._clip(gradients, 1)
        for r, (loss, slopes) in zip(replicas, self._alone(x, y, axis, replicas), strict=True):
            alone = self._clip(dict(zip(self._trained, slopes, strict=True)), 0)
            if not all(torch.equal(clipped[name][r], g) for name, g in alone.items()):
                return False
            if not torch.equal(losses[r], loss):
                return False
        return torch.equal(looked[replicas], self._totals(replicas))

    def _totals(self, replicas: Iterable[int]) -> Tensor:
        """Return the losses of some replicas by the operations of a network alone."""
        of_each = self._one_by_one(*self._data, self._axis, replicas)
        return torch.stack(
            [total(self._module, self.criterion, *samples, self._block) for samples in of_each]
        )

    def _mapped(self, function: Callable[..., Any], x: Tensor, y: Tensor, axis: int | None) -> Any:
        at_once = max(1, self._block // x.shape[-2])  # replicas
        mapped = vmap(function, in_dims=(0, 0, axis, axis), chunk_size=at_once)
        return mapped(self._trained, self._fixed, x, y)

    def _update(self, part: str, i: int, gradients: Mapping[str, Tensor], loss: Tensor) -> None:
        """Do the update of the weights of a part from state `i`."""
        with torch.no_grad():
            gradients = self._clipped(gradients)
            sizes = self._step_sizes(i)
            for group in self._groups[part]:
                lr = group.factor * sizes
                if group.factor or group.updater is None:  # Rprop moves by a step of 0, too
                    group.step(gradients, loss, lr=lr, iteration=i, counted_from=self._counted_from)
            self._average(i)

    def _average(self, i: int) -> None:
        """Move the averages of the weights, after the update from state `i`."""
        kept = self.optimizers[0].average  # replicas have equal ones
        if kept is None:
            return
        share = 1.0 - kept.decay
        if i == 0 and kept.start == "first_update":
            share = 1.0
        for mean, weight in self._averaged:
            mean.lerp_(weight, share)

    def _clipped(self, gradients: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return gradients clipped as `Descent.clipped` says, of each replica by itself."""
        if self.mapped or self._single or self.optimizers[0].clip is None:
            return self._clip(gradients, 0 if self._single else 1)
        each = [
            self._clip({name: g[r] for name, g in gradients.items()}, 0)
            for r in range(len(self.problems))
        ]
        return {name: torch.stack([clipped[name] for clipped in each]) for name in gradients}

    def _clip(self, gradients: Mapping[str, Tensor], first: int) -> Mapping[str, Tensor]:
        """Return clipped gradients whose weights have their axes from the `first` on."""
        optimizer = self.optimizers[0]
        if optimizer.clip is None:
            return gradients
        if optimizer.clip_by == "value":
            most = optimizer.clip
            return {name: g.clamp(-most, most) for name, g in gradients.items()}
        moved = [g for name, g in gradients.items() if self._factors.get(name, 1.0)]
        if not moved:
            return gradients
        squares = [g.square().flatten(first).sum(-1) for g in moved]
        norm = torch.stack(squares).sum(0).sqrt()
        factor = (optimizer.clip / (norm + CLIP_EPS)).clamp(max=1.0)  # () or (R,)
        return {
            name: g * factor.reshape(factor.shape + (1,) * (g.ndim - factor.ndim))
            for name, g in gradients.items()
        }

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        with self._computing(self._looking_threads):
            return self._total().double().reshape(-1).cpu().numpy()

    def _total(self) -> Tensor:
        with torch.no_grad():
            if self.mapped:
                return self._mapped(self._value, *self._data, self._axis)  # type: ignore[no-any-return]
            if not self._single:
                return self._totals(range(len(self.problems)))
            if self._layers is None:
                return total(self._module, self.criterion, *self._data, self._block)
            self._module.eval()
            try:
                loss = total(self._module, self.criterion, *self._data, self._block)
            finally:
                self._module.train()
            return loss

    def _copied(self, view: Any) -> NDArray[Any]:
        return super()._copied(view.detach().cpu().numpy())

    def _set(self, view: Any, array: NDArray[Any]) -> None:
        view.copy_(torch.from_numpy(np.array(array)).reshape(view.shape))

    def _own(self) -> Iterator[tuple[str, WeightGroup]]:
        """Yield each group whose memory has names of its own, with their place in a checkpoint."""
        for part, groups in self._groups.items():
            for k, group in enumerate(groups):
                if group.slots is None:
                    yield f"{MEMORY}{part}.{k}/", group

    def held(self, prefix: str = "") -> StateDict:
        """Return copies of the state; see `SideBySide.held`."""
        held = super().held(prefix)
        R = len(self.problems)
        for name, buffer in (
            buffers_of(self._module).items() if PARAMETER.startswith(prefix) else ()
        ):
            # without modes, those of replicas stay as they are
            held[f"{PARAMETER}{name}"] = self._copied(buffer.expand(R, *buffer.shape))
        for place, group in self._own() if MEMORY.startswith(prefix) else ():
            for key, tensor in group.memory.items():
                held[f"{place}{key}"] = self._copied(tensor)
        return held

    def _remember(self, memory: StateDict) -> list[str]:
        """Take over memory; see `SideBySide._remember`."""
        begun = super()._remember(memory)
        for place, group in self._own():
            group.memory = {
                key.removeprefix(place): torch.from_numpy(np.array(array)).to(self.device)
                for key, array in memory.items()
                if key.startswith(place)
            }
            if not group.memory and group.updater is None:
                begun.append("of its own")
        return list(dict.fromkeys(begun))

    def _of_weight(self, name: str) -> dict[str, Any]:
        """Return the optimizer's memory of a weight by slot; see `SideBySide`."""
        slots = super()._of_weight(name)
        for _, group in self._own():
            for key, tensor in group.memory.items():
                owner, _, slot = key.rpartition("/")  # see `StateMemory`
                if owner == name:
                    slots[slot] = self._copied(tensor).reshape(len(self.problems), -1)
        return slots

    def _diagonals(self, updates: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Return preconditioners.

        NaN of replicas that have halted where the memory of an update that is no formula has run
        on.
        """
        diagonals: dict[str, NDArray[Any]] = {}
        for updater in self.updaters():
            diagonals |= {name: whole[None] for name, whole in updater.preconditioner().items()}
        if not diagonals:
            diagonals = super()._diagonals(updates)
        for whole in diagonals.values() if any(self._own()) else ():
            whole[[halt is not None and not self._single for halt in self.halted_at]] = np.nan
        return diagonals

    def follow(self, before: Stepper) -> list[str]:
        """Go on at the state of another stepper; see `Stepper.follow`."""
        begun = super().follow(before)
        others = before.updaters() if isinstance(before, AutogradStepper) else []
        for updater in self.updaters():
            begun += updater.follow(others)
        return list(dict.fromkeys(begun))

    def updaters(self) -> list[TorchUpdater]:
        """Return the objects of torch that move the weights."""
        return [group.updater for _, group in self._own() if group.updater is not None]

    def state_dict(self) -> StateDict:
        """Return the state; see `SideBySide.state_dict`."""
        state = super().state_dict()
        for place, group in self._own():
            if group.updater is not None:
                for key, tensor in group.updater.kept().items():
                    state[f"{place}{key}"] = self._copied(tensor)
        return state

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from a former `state_dict()`."""
        known = dict(state)
        for group in chain(*self._groups.values()):
            for name in group.weights if group.slots else ():
                # checkpoints of before have all slots together, by replicas of equal step
                former = [a for key, a in state.items() if key.endswith(f"/{name}/memory")]
                if former:
                    shape = self.problems[0].shapes[name]
                    rows = np.concatenate([a.reshape(len(a), -1, *shape) for a in former], axis=1)
                    for slot, row in zip(group.slots or (), rows, strict=True):
                        known[f"{MEMORY}{slot}/{name}"] = row
        super().load_state_dict(known)
        if self._single:
            buffers = {
                name: state[f"{PARAMETER}{name}"].reshape(buffer.shape)
                for name, buffer in buffers_of(self._module).items()
            }
            put_buffers(self._module, buffers)
        for _, group in self._own():
            if group.updater is not None and group.memory:
                group.updater.put(group.memory)
                group.memory = {}
