"""The reference stepper: PyTorch's autograd, for any architecture, loss and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.config.bases import Descent
from dynamics_cli.config.streams import stream
from dynamics_cli.engine.units import Update, update_unit
from dynamics_cli.kinds.tracing import operations, sums
from dynamics_cli.training.batches import Fresh, batches_of
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.base import Floats, State, Stepper, first_halt, only
from dynamics_cli.training.totals import total, total_and_gradients


def network_of(problem: Problem, device: str) -> nn.Module:
    """Return the network of a problem with its initial weights, in the precision of the run."""
    dtype = getattr(torch, problem.config.dtype)
    return problem.config.architecture.network(problem.dataset.d, problem.initial_parameters(), dtype, device)


SMALL_WORK = 2**20
"""Multiply-adds of an iteration up to which one thread does it all."""


def most_threads(problem: Problem, samples: int) -> int:
    """Return how many threads an update from so many samples may take: so little work only loses by a second.

    But for convolutions, it has the same bits on one.
    """
    small = samples * problem.multiply_adds <= SMALL_WORK and not problem.convolutional
    return 1 if small else torch.get_num_threads()


@contextmanager
def at_most(most: int) -> Iterator[None]:
    """Have torch work on no more threads than `most`."""
    threads = torch.get_num_threads()
    if most >= threads:
        yield
        return
    try:
        torch.set_num_threads(most)
        yield
    finally:
        torch.set_num_threads(threads)


def update_in_place(
    unit: Update, parameters: Sequence[Tensor], gradients: Sequence[Tensor], *, lr: float, names: Sequence[str],
    state: MutableMapping[str, Tensor], iteration: int, loss: Tensor,
) -> None:  # fmt: skip
    """Update tensors on a CPU by the compiled formula of an optimizer; see `Descent.update`."""
    several = loss.ndim > 0  # of replicas
    for name, w, g in zip(names, parameters, gradients, strict=True):
        flat, slope = w if w.is_contiguous() else w.contiguous(), g.contiguous()
        memory = state.setdefault(f"{name}/memory", flat.new_zeros(len(unit.slots), flat.numel()))
        unit.apply(
            flat.data_ptr(), slope.data_ptr(), memory.data_ptr(), flat.numel(), lr, iteration,
            0.0 if several else float(loss),
        )  # fmt: skip
        if flat is not w:
            w.copy_(flat)


class TorchStepper(Stepper):
    """What steppers of a PyTorch model share: its weights and the state of its optimizers, as plain arrays."""

    def __init__(self, problem: Problem, model: nn.Module, device: str) -> None:
        """Take a model with the initial weights of a problem, on a device; there are no optimizers yet."""
        self.device, self.full_batch = device, problem.batch_size is None
        self.stop_below = problem.config.optimizer.stop_below
        self._iterations = problem.iterations
        self._loss = problem.loss
        self._dtype: torch.dtype = getattr(torch, problem.config.dtype)
        self._module = model
        self._optimizers: dict[str, tuple[Descent, float, list[str], list[Tensor], dict[str, Tensor]]] = {}
        self._compiled: dict[int, Callable[..., None]] = {}
        self._groups: dict[str, list[str]] = {}
        self._order: dict[str, list[str]] = {}
        self._factors = problem.step_factors()

    def _add_optimizer(self, name: str, optimizer: Descent, trained: Mapping[str, Tensor]) -> None:
        """Have weights trained by an optimizer; `name` is where the checkpoint keeps what it remembers.

        Weights of one step size are a group, which it updates together.
        """
        if self.device == "cpu" and operations(optimizer) is not None and not sums(optimizer):
            self._compiled[id(optimizer)] = partial(
                update_in_place, update_unit(optimizer, np.dtype(str(self._dtype)[6:]))
            )
        groups: dict[float, dict[str, Tensor]] = {}
        for weight, parameter in trained.items():
            groups.setdefault(self._factors.get(weight, 1.0), {})[weight] = parameter
        for k, (factor, group) in enumerate(groups.items()):
            self._optimizers[f"{name}.{k}" if k else name] = optimizer, factor, list(group), list(group.values()), {}
        self._order[name] = list(trained)
        self._groups[name] = [f"{name}.{k}" if k else name for k in range(len(groups))]

    def _update(self, name: str, gradients: Sequence[Tensor], loss: Tensor) -> None:
        """Do one update of the weights that an optimizer trains."""
        by_name = None if len(self._groups[name]) == 1 else dict(zip(self._order[name], gradients, strict=True))
        with torch.no_grad():
            for group in self._groups[name]:
                optimizer, factor, names, trained, memory = self._optimizers[group]
                lr = factor * optimizer.step_size(self.iteration, self._iterations)
                own = gradients if by_name is None else [by_name[weight] for weight in names]
                how = self._compiled.get(id(optimizer)) or optimizer.update
                how(trained, own, lr=lr, names=names, state=memory, iteration=self.iteration, loss=loss)

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return copies of the current weights, by name."""
        return {name: p.detach().cpu().numpy().copy() for name, p in self._module.named_parameters()}

    def state_dict(self) -> State:
        """Return weights, the state of the optimizers and the iteration."""
        state: State = {f"parameter/{name}": value for name, value in self.parameters().items()}
        state["iteration"] = np.array(self.iteration)
        for name, (*_, memory) in self._optimizers.items():
            for key, value in memory.items():
                state[f"{name}/{key}"] = value.detach().cpu().numpy().copy()
        return state

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        self._write({key.removeprefix("parameter/"): v for key, v in state.items() if key.startswith("parameter/")})
        self.iteration = int(state["iteration"])
        for name, (*_, memory) in self._optimizers.items():
            memory.clear()
            for key, value in state.items():
                if key.startswith(f"{name}/"):
                    memory[key.removeprefix(f"{name}/")] = torch.from_numpy(np.array(value)).to(self.device)

    def _write(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                parameter.copy_(torch.from_numpy(np.array(parameters[name])))


class AutogradStepper(TorchStepper):
    """Gradients by `torch.autograd`, updates in place, losses gathered on the device."""

    backend = "torch"

    def __init__(self, problems: Sequence[Problem], device: str) -> None:
        problem = only(problems, self.backend)
        optimizer = problem.config.optimizer
        assert isinstance(optimizer, Descent)
        super().__init__(problem, network_of(problem, device), device)
        self._optimizer = optimizer.kind
        labels = torch.long if problem.loss.labels == "classes" else self._dtype
        self._x = torch.from_numpy(problem.dataset.x).to(device=device, dtype=self._dtype)  # (n, d)
        self._y = torch.from_numpy(problem.dataset.y).to(device=device, dtype=labels)  # (n,)
        self._block = problem.block_samples(device)
        self._most_threads = most_threads(problem, problem.batch_size or problem.dataset.n)
        trained: dict[str, Tensor] = {name: p for name, p in self._module.named_parameters() if p.requires_grad}
        self._trained = list(trained.values())
        self._add_optimizer(self._optimizer, optimizer, trained)
        self._seed, self._label_noise = problem.config.seed, getattr(optimizer, "label_noise", None) or 0.0
        self._fresh = Fresh(problem) if problem.fresh else None
        self._batches = None if problem.batch_size is None or problem.fresh else batches_of(problem)
        self._epoch, self._picked = -1, tuple[Tensor, ...]()  # the samples of all updates of an epoch

    def advance(self, n: int) -> Floats:
        """Do `n` updates; see `Stepper.advance`."""
        if self.halted or n == 0:
            return np.empty(0)
        with at_most(self._most_threads):
            return self._advance(n)

    def _advance(self, n: int) -> Floats:
        if not self.full_batch:
            for _ in range(n):
                self._step_batch()
            return np.empty(0)
        before = self.state_dict()
        losses = self._run(n)
        halt = first_halt(losses, self.stop_below)
        if halt is None:
            return losses
        # the update of the halting state, and all after it, must not have happened
        k, reason = halt
        self.load_state_dict(before)
        self._run(k)
        self.halted = reason
        return losses[: k + 1]

    def loss(self) -> float:
        """Return the loss of the current state over the full training set."""
        with torch.no_grad():
            return float(total(self._module, self._loss, self._x, self._y, self._block))

    def _run(self, n: int) -> Floats:
        losses = [self._step(self._x, self._y) for _ in range(n)]
        return torch.stack(losses).double().cpu().numpy() if losses else np.empty(0)

    def _step_batch(self) -> None:
        if self._fresh is not None:
            x, y, _ = self._fresh.at(self.iteration)
            self._step(torch.from_numpy(x).to(self._x), torch.from_numpy(y).to(self._y))
            return
        assert self._batches is not None
        epoch, step = divmod(self.iteration, self._batches.steps_per_epoch)
        if epoch != self._epoch:
            order = torch.from_numpy(self._batches.order(epoch)).to(self.device)
            self._epoch, self._picked = epoch, torch.split(order, self._batches.batch_size)
        samples = self._picked[step]
        self._step(self._x.index_select(0, samples), self._y.index_select(0, samples))

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        """Do one update from the samples given; return their loss before it."""
        target = y if not self._label_noise else y + self._noise(y)
        loss, gradients = total_and_gradients(self._module, self._loss, x, target, self._trained, self._block)
        if target is not y and self.full_batch:
            loss = loss.new_tensor(self.loss())  # what is recorded is the loss of the labels themselves
        self._update(self._optimizer, gradients, loss)
        self.iteration += 1
        return loss

    def _noise(self, y: Tensor) -> Tensor:
        """Return what this update adds to the labels, a function of seed and iteration, of the shape of `y`."""
        noise = stream(self._seed, "label_noise", self.iteration).standard_normal(tuple(y.shape))
        return torch.from_numpy(self._label_noise * noise).to(y)
