"""Replicas of any architecture side by side: autograd's gradients of stacked weights, by `torch.func.vmap`.

The operations of an update are asked for once for all replicas, as batched products and convolutions of groups. That
rounds differently from one network by itself: losses agree as those of two backends do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from dynamics_cli.config.bases import Architecture, Descent, Loss
from dynamics_cli.optimizers import descent
from dynamics_cli.training.batches import Fresh, batches_of
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.autograd import TorchStepper, at_most, most_threads, network_of
from dynamics_cli.training.steppers.base import Floats, State
from dynamics_cli.training.steppers.side_by_side import SideBySide, Weights

Tensors = dict[str, Tensor]
ELEMENTWISE = (
    descent.GradientDescent, descent.StochasticGradientDescent, descent.Adam, descent.AdamW, descent.RMSprop,
    descent.SignDescent,
)  # fmt: skip
"""Optimizers that move every weight by itself, so that those of all replicas can be moved at once."""
MOST_WORK = 2**25
"""Multiply-adds of an update of one network beyond which the work itself takes the time, not the asking for it."""


def stackable(problem: Problem) -> bool:
    """Return whether networks of this problem and others like it can be trained by `StackedStepper`, with a gain."""
    config, samples = problem.config, problem.batch_size or problem.dataset.n
    architecture, optimizer = config.architecture, config.optimizer
    return (
        type(optimizer) in ELEMENTWISE
        and getattr(optimizer, "label_noise", None) is None
        and architecture.kind != "gan"  # which has a stepper of its own
        and not architecture.centered  # where every replica has a function of its own
        and getattr(architecture, "slope", None) is None
        and samples * problem.multiply_adds <= MOST_WORK
        and problem.dataset.n <= problem.block_samples("cpu")
        and _maps(_Key((architecture, problem.loss, problem.dataset.d)))
    )


class _Key(tuple[Any, ...]):
    """An architecture, a loss and the columns of samples, by what they say of themselves."""

    def __hash__(self) -> int:
        return hash((type(self[0]), self[0].model_dump_json(), type(self[1]), self[2]))


@lru_cache(64)
def _maps(key: _Key) -> bool:
    """Return whether `torch.func.vmap` knows all that a network and a loss do; it knows no randomness, for instance."""
    architecture, loss, d = key
    assert isinstance(architecture, Architecture)
    shapes = architecture.shapes(d)
    initial = {name: np.zeros(shape) for name, shape in shapes.items()}
    model = architecture.network(d, initial, torch.float32)
    both = grad_and_value(_value_of(model, loss))
    weights = {name: torch.zeros(2, *shape) for name, shape in shapes.items()}
    y = torch.zeros(1, dtype=torch.long if loss.labels == "classes" else torch.float32)
    try:
        vmap(both, in_dims=(0, 0, None, None))(weights, {}, torch.zeros(1, d), y)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def _value_of(model: torch.nn.Module, loss: Loss) -> Any:
    def value(trained: Tensors, fixed: Tensors, x: Tensor, y: Tensor) -> Tensor:
        return loss.total(functional_call(model, {**trained, **fixed}, (x,)), y)  # type: ignore[no-any-return]

    return value


class StackedStepper(SideBySide, TorchStepper):
    """Trains networks whose configs differ in seeds, data, initial weights and steps; weights are (R, ...)."""

    backend = "torch"

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        SideBySide.__init__(self, problems)
        TorchStepper.__init__(self, first, network_of(first, "cpu"), "cpu")
        self.stop_below = None
        starts = [problem.initial_parameters() for problem in problems]
        self._weights = {name: torch.from_numpy(np.stack([one[name] for one in starts])) for name in first.shapes}
        trained = {name for name, p in self._module.named_parameters() if p.requires_grad}
        self._trained = {name: w for name, w in self._weights.items() if name in trained}
        self._fixed = {name: w for name, w in self._weights.items() if name not in trained}
        labels = torch.long if first.loss.labels == "classes" else self._dtype
        self._x, self._y = torch.from_numpy(self.x), torch.from_numpy(self.y).to(labels)  # (Q, n, d), (Q, n)
        self._slices: dict[str, slice] = {}  # replicas of one step, which an optimizer updates together
        numbered = [(p.config.optimizer, r) for r, p in enumerate(problems)]
        for _, group in groupby(numbered, lambda one: one[0].model_dump_json(exclude={"stop_below"})):
            (optimizer, start), *others = group
            assert isinstance(optimizer, Descent)
            name = f"{optimizer.kind}@{start}"
            self._slices[name] = slice(start, start + 1 + len(others))
            own = {weight: w[self._slices[name]] for weight, w in self._trained.items()}
            self._add_optimizer(name, optimizer, own)
        self._fresh = [Fresh(problem) for problem in problems] if first.fresh else []
        self._batches = [] if self.full_batch or first.fresh else [batches_of(problem) for problem in problems]
        self._epoch, self._permuted = -1, torch.empty(0, dtype=torch.long)
        n, batch = first.dataset.n, first.batch_size or first.dataset.n
        block = first.block_samples("cpu")
        self._value = _value_of(self._module, first.loss)
        self._both = grad_and_value(self._value)
        self._at_once, self._looked_at_once = max(1, block // batch), max(1, block // n)  # replicas
        self._most_threads = most_threads(first, len(problems) * batch)

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `SideBySide.run`."""
        resting, before = [halt is not None for halt in self.halted_at], self.state_dict()
        losses = self._descend(n, np.where(resting, 0, n))
        halting = ~np.isfinite(losses) | (losses <= self.levels[:, None])
        done = np.where(halting.any(axis=1), halting.argmax(axis=1), n)
        if (done[~np.array(resting)] < n).any():
            # a state that halts is not updated: do the updates again, each replica up to its own halt
            self.load_state_dict(before)
            self._descend(int(done.max()), done)
        return losses, done

    def _descend(self, n: int, most: NDArray[np.int64]) -> Weights:
        """Do `n` updates, of replica r the first `most[r]`; return losses (R, n)."""
        shared, first = len(self._x) == 1, self.iteration
        x, y = (self._x[0], self._y[0]) if shared else (self._x, self._y)
        losses = [torch.empty(len(self.problems), 0)]
        with at_most(self._most_threads):
            for t in range(n):
                still = torch.from_numpy(np.flatnonzero(most <= t))
                kept = [w[still] for w in self._trained.values()] if len(still) else []
                losses.append(self._step(x, y, None if shared else 0)[:, None])
                for w, value in zip(self._trained.values(), kept, strict=False):
                    w[still] = value
        self.iteration = first
        return torch.cat(losses, 1).numpy()

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        first = self.iteration
        with at_most(self._most_threads):
            for _ in range(n):
                self._step(*self._batch(), 0)
        self.iteration = first

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Return the samples (R, b, d) and labels (R, b) of the next update."""
        if self._fresh:
            drawn = [fresh.at(self.iteration) for fresh in self._fresh]
            x, y = (np.stack([one[k] for one in drawn]) for k in (0, 1))
            return torch.from_numpy(x), torch.from_numpy(y).to(self._y)
        epoch, step = divmod(self.iteration, self._batches[0].steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._permuted = epoch, torch.from_numpy(np.stack([b.order(epoch) for b in self._batches]))
        b = self._batches[0].batch_size
        samples = self._permuted[:, step * b : (step + 1) * b]  # (R, b)
        if len(self._x) == 1:
            return self._x[0][samples], self._y[0][samples]
        replicas = torch.arange(len(samples))[:, None]
        return self._x[replicas, samples], self._y[replicas, samples]

    def _step(self, x: Tensor, y: Tensor, axis: int | None) -> Tensor:
        """Do one update from samples with an axis of replicas or without; return the losses (R,) before it."""
        both = vmap(self._both, in_dims=(0, 0, axis, axis), chunk_size=self._at_once)
        gradients, losses = both(self._trained, self._fixed, x, y)
        gradients = [gradients[name].contiguous() for name in self._trained]
        for name, own in self._slices.items():
            self._update(name, [gradient[own] for gradient in gradients], losses[own])
        self.iteration += 1
        return losses  # type: ignore[no-any-return]

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,)."""
        shared = len(self._x) == 1
        data, axis = ((self._x[0], self._y[0]), None) if shared else ((self._x, self._y), 0)
        value = vmap(self._value, in_dims=(0, 0, axis, axis), chunk_size=self._looked_at_once)
        with torch.no_grad(), at_most(self._most_threads):
            return value(self._trained, self._fixed, *data).double().numpy()  # type: ignore[no-any-return]

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return copies of the current weights, by name, (R, ...)."""
        return {name: w.numpy().copy() for name, w in self._weights.items()}

    def state_dict(self) -> State:
        """Return weights, the state of the optimizers, the iteration and where replicas halted."""
        return {**TorchStepper.state_dict(self), **self._progress()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        TorchStepper.load_state_dict(self, state)
        self._go_on(state)

    def _write(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        for name, w in self._weights.items():
            w.copy_(torch.from_numpy(np.array(parameters[name])))
