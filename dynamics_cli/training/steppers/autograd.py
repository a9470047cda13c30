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
    """Gradients by `torch.autograd`, updates in place."""

    compiles: ClassVar[bool] = True
    """Whether updates on a CPU are compiled where they are formulas."""

    def __init__(self, problems: Sequence[Problem], device: str, *, compiled: bool = False) -> None:
        """Put weights and data of one problem, or of several that are `stackable`, on a device.

        The network of one problem may be `compiled` by torch.
        """
        super().__init__(problems)
        first = problems[0]
        self.device = device
        self._module = initial_network(first, device)
        self._network: Any = torch.compile(self._module) if compiled else self._module
        """What computes the outputs by the weights of the module."""
        self._named: dict[str, Tensor] = dict(self._module.named_parameters())
        self._weights = self._named
        """Weights (R, ...) by name; a single network has those of its module."""
        if len(problems) > 1:
            starts = stacked(self._starts())
            self._weights = {
                name: torch.from_numpy(starts[name]).to(device) for name in self._named
            }
        elif first.start is not None:
            with torch.no_grad():
                for name, weight in first.starting_parameters().items():
                    self._named[name].copy_(torch.from_numpy(weight))
            put_buffers(self._module, first.start)
        trains = {name: w.requires_grad for name, w in self._named.items()}
        self._trained = {name: w for name, w in self._weights.items() if trains[name]}
        self._fixed = {name: w for name, w in self._weights.items() if not trains[name]}

        self._take_views()
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
        self.mapped = R > 1
        """Whether one operation computes for all replicas."""
        if self.mapped and device == "cpu":
            self.mapped = self._maps_bit_for_bit()

    def _take_views(self) -> None:
        """Make views of the weights, and of their averages, which begin here."""
        R = len(self.problems)
        shapes = self.problems[0].shapes
        for name, w in self._weights.items():
            self.views[f"{PARAMETER}{name}"] = w.detach().view(R, *shapes[name])
        self._averaged: list[tuple[Tensor, Tensor]] = []
        """Averages and weights of each replica, which rounds as it does alone."""
        before = [problem.start or {} for problem in self.problems]
        for average in self.problems[0].averages:
            weights = self.views[f"{PARAMETER}{average.removeprefix(AVERAGE)}"]
            averages = weights.clone()
            if average in before[0]:  # kept before a change too
                averages.copy_(torch.from_numpy(np.stack([start[average] for start in before])))
            self.views[f"{PARAMETER}{average}"] = averages
            self._averaged += zip(averages, weights, strict=True)

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
        moved = [name for name in self._weights if self._has_memory(name)]
        players = self.problems[0].config.architecture.players
        parts = {player: [name for name in moved if name.startswith(player)] for player in players}
        return parts or {"all": moved}

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
        losses = np.empty((len(self.problems), n), self.dtype)
        done = np.array([n if halt is None else 0 for halt in self.halted_at])
        for t in range(n):
            i = self.iteration + t
            if self._layers is None:
                gradients, seen = self._gradients(i, *self._data, self._axis)
            else:  # updates are those of training mode
                seen = self._total()
            losses[:, t] = seen.detach().cpu().numpy()
            going = np.isfinite(losses[:, t]) & (losses[:, t] > self.levels)
            np.minimum(done, np.where(going, n, t), out=done)
            if done.max() <= t:  # a state that halts is not updated
                break
            if self._layers is not None:
                gradients, seen = self._gradients(i, *self._data, self._axis)
            with self._keeping(np.flatnonzero(done <= t)):
                self._update("all", i, gradients, seen)
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

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        for i in range(self.iteration, self.iteration + n):
            self._update("all", i, *self._gradients(i, *self._batch(i), 0))

    def _batch(self, i: int) -> tuple[Tensor, Tensor]:
        """Return samples (R, b, d) and labels (R, b) of the update from state `i`."""
        x, y = self._samples
        if self._fresh:
            drawn = [fresh.at(i)[:2] for fresh in self._fresh]
            new_x, new_y = map(np.stack, zip(*drawn, strict=True))
            return torch.from_numpy(new_x).to(x), torch.from_numpy(new_y).to(y)
        epoch, step = divmod(i, self._batches[0].steps_per_epoch)
        if epoch != self._epoch:
            orders = np.stack([batches.order(epoch) for batches in self._batches])  # (R, n)
            orders += self._firsts
            picked = torch.from_numpy(orders).to(self.device)
            self._picked = torch.split(picked, self._batches[0].batch_size, -1)
            self._epoch = epoch
        chosen = self._picked[step]
        rows = chosen.flatten()
        of_batch = (samples.index_select(0, rows) for samples in (x, y))
        x, y = (samples.view(*chosen.shape, *samples.shape[1:]) for samples in of_batch)
        return x, y

    def _gradients(self, i: int, x: Tensor, y: Tensor, axis: int | None) -> tuple[Tensors, Tensor]:
        """Return clipped gradients (R, ...) and losses (R,) of the update from state `i`.

        Samples have their replicas at an `axis`. Those of a single network are without one.
        """
        if self.mapped:
            gradients, losses = self._mapped(self._both, x, y, axis)
            return self._clip(gradients, 1), losses
        drawn: AbstractContextManager[None] = nullcontext()
        if self._layers is not None and self._layers.draw:
            drawn = self._layers.seeded(layers_seed(self.problems[0].config.seed, i))
        with drawn:
            (first, *others) = self._alone(x, y, axis, range(len(self.problems)))
        if not others:
            return first
        gradients, losses = zip(first, *others, strict=True)
        return (
            {name: torch.stack([own[name] for own in gradients]) for name in self._trained},
            torch.stack(losses),
        )

    def _alone(
        self, x: Tensor, y: Tensor, axis: int | None, replicas: Iterable[int]
    ) -> Iterator[tuple[Tensors, Tensor]]:
        """Yield clipped gradients and loss of some replicas, by operations of a network alone."""
        trained = [self._named[name] for name in self._trained]
        for samples in self._one_by_one(x, y, axis, replicas):
            loss, gradients = total_and_gradients(
                self._network, self.criterion, *samples, trained, self._training_block
            )
            yield self._clip(dict(zip(self._trained, gradients, strict=True)), 0), loss

    def _one_by_one(
        self, x: Tensor, y: Tensor, axis: int | None, replicas: Iterable[int]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Put the weights of each of some replicas into the module; yield its samples."""
        for r in replicas:
            if self._weights is not self._named:
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
        given = (*self._data, self._axis) if self.full_batch else (*self._batch(i), 0)
        try:
            gradients, losses = self._gradients(i, *given)
            looked = self._total()
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            return False  # `torch.func.vmap` does not know an operation, such as a branch on values
        for r, (own, loss) in zip(replicas, self._alone(*given, replicas), strict=True):
            if not all(torch.equal(gradients[name][r], g) for name, g in own.items()):
                return False
            if not torch.equal(losses[r], loss):
                return False
        return torch.equal(looked[replicas], self._totals(replicas))

    def _mapped(self, function: Callable[..., Any], x: Tensor, y: Tensor, axis: int | None) -> Any:
        at_once = max(1, self._block // x.shape[-2])  # replicas
        mapped = vmap(function, in_dims=(0, 0, axis, axis), chunk_size=at_once)
        return mapped(self._trained, self._fixed, x, y)

    def _update(self, part: str, i: int, gradients: Mapping[str, Tensor], losses: Tensor) -> None:
        """Do the update of the weights of a part from state `i`, by clipped gradients."""
        with torch.no_grad():
            sizes = self._step_sizes(i)
            for group in self._groups[part]:
                lr = group.factor * sizes
                if group.factor or group.updater is None:  # Rprop moves by a step of 0, too
                    group.step(
                        gradients, losses, lr=lr, iteration=i, counted_from=self._counted_from
                    )
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

    def _clip(self, gradients: Tensors, first: int) -> Tensors:
        """Return gradients clipped as `Descent.clipped` says; weights have axes from `first` on."""
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
            return self._total().double().cpu().numpy()

    def _total(self) -> Tensor:
        """Return the losses (R,) in evaluation mode."""
        if self.mapped:
            with torch.no_grad():
                return self._mapped(self._value, *self._data, self._axis)  # type: ignore[no-any-return]
        return self._totals(range(len(self.problems)))

    @torch.no_grad()
    def _totals(self, replicas: Iterable[int]) -> Tensor:
        """Return the losses of some replicas by the operations of a network alone."""
        if self._layers is not None:
            self._module.eval()
        try:
            of_each = self._one_by_one(*self._data, self._axis, replicas)
            return torch.stack(
                [total(self._network, self.criterion, *samples, self._block) for samples in of_each]
            )
        finally:
            if self._layers is not None:
                self._module.train()

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
            whole[[halt is not None for halt in self.halted_at]] = np.nan
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
        buffers = {
            name: state[f"{PARAMETER}{name}"].reshape(-1, *buffer.shape)[0]
            for name, buffer in buffers_of(self._module).items()
        }
        put_buffers(self._module, buffers)
        for _, group in self._own():
            if group.updater is not None and group.memory:
                group.updater.put(group.memory)
                group.memory = {}
