"""The reference stepper: PyTorch's autograd, for any architecture, loss and optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dynamics_cli.architectures import build_model
from dynamics_cli.config.optimizer import Adam, GradientDescent, GradientFlow
from dynamics_cli.training.batches import Batches, batches_of
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.base import Floats, State, Stepper, first_halt, only
from dynamics_cli.training.totals import total, total_and_gradients

_ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class TorchStepper(Stepper):
    """What steppers of a PyTorch model share: its weights and the state of its optimizers, as plain arrays."""

    def __init__(self, problem: Problem, model: nn.Module, device: str) -> None:
        """Put the model with the initial weights of a problem on a device; there are no optimizers yet."""
        self.device, self.full_batch = device, problem.batch_size is None
        self.stop_below = problem.config.optimizer.stop_below
        self._loss = problem.loss
        self._dtype: torch.dtype = getattr(torch, problem.config.dtype)
        self._module = model.to(device=device, dtype=self._dtype)
        self._write(problem.initial_parameters())
        self._adams: dict[str, tuple[torch.optim.Adam, Sequence[Tensor]]] = {}

    def _add_adam(self, name: str, section: Adam, trained: Sequence[Tensor]) -> None:
        """Have weights trained by Adam; `name` is where its state is kept."""
        betas = (section.beta1, section.beta2)
        adam = torch.optim.Adam(trained, lr=section.lr, betas=betas, eps=section.eps, fused=True)
        self._adams[name] = adam, trained

    def _adam_step(self, name: str, gradients: Iterable[Tensor]) -> None:
        adam, trained = self._adams[name]
        for parameter, gradient in zip(trained, gradients, strict=True):
            parameter.grad = gradient
        adam.step()

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return copies of the current weights, by name."""
        return {name: p.detach().cpu().numpy().copy() for name, p in self._module.named_parameters()}

    def state_dict(self) -> State:
        """Return weights, the state of the optimizers and the iteration."""
        state: State = {f"parameter/{name}": value for name, value in self.parameters().items()}
        state["iteration"] = np.array(self.iteration)
        for name, (adam, trained) in self._adams.items():
            for k, p in enumerate(trained):
                for key, value in adam.state[p].items():
                    state[f"{name}/{k}/{key}"] = value.detach().cpu().numpy().copy()
        return state

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        self._write({key.removeprefix("parameter/"): v for key, v in state.items() if key.startswith("parameter/")})
        self.iteration = int(state["iteration"])
        for name, (adam, trained) in self._adams.items():
            for k, p in enumerate(trained):
                adam.state[p] = {
                    key: torch.from_numpy(np.array(state[f"{name}/{k}/{key}"])).to(self.device)
                    for key in _ADAM_STATE
                    if f"{name}/{k}/{key}" in state
                }

    def _write(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                parameter.copy_(torch.from_numpy(np.array(parameters[name])))


class AutogradStepper(TorchStepper):
    """Gradients by `torch.autograd`, updates in place, losses gathered on the device."""

    backend = "autograd"

    def __init__(self, problems: Sequence[Problem], device: str) -> None:
        problem = only(problems, self.backend)
        assert not isinstance(problem.config.optimizer, GradientFlow)
        super().__init__(problem, build_model(problem.config.architecture, problem.dataset.d), device)
        self._config = problem.config.optimizer
        labels = torch.long if problem.loss.labels == "classes" else self._dtype
        self._x = torch.from_numpy(problem.dataset.x).to(device=device, dtype=self._dtype)  # (n, d)
        self._y = torch.from_numpy(problem.dataset.y).to(device=device, dtype=labels)  # (n,)
        self._block = problem.block_samples(device)
        self._trained: list[Tensor] = [p for p in self._module.parameters() if p.requires_grad]
        if isinstance(self._config, Adam):
            self._add_adam("adam", self._config, self._trained)
        self._batches: Batches | None = None if problem.batch_size is None else batches_of(problem)

    def advance(self, n: int) -> Floats:
        """Do `n` updates; see `Stepper.advance`."""
        if self.halted or n == 0:
            return np.empty(0)
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
        losses = torch.empty(n, dtype=self._x.dtype, device=self.device)
        for k in range(n):
            losses[k] = self._step(self._x, self._y)
        return losses.double().cpu().numpy()

    def _step_batch(self) -> None:
        assert self._batches is not None
        samples = torch.from_numpy(self._batches.at(self.iteration)).to(self.device)
        self._step(self._x[samples], self._y[samples])

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        """Do one update from the samples given; return their loss before it."""
        loss, gradients = total_and_gradients(self._module, self._loss, x, y, self._trained, self._block)
        with torch.no_grad():
            if self._adams:
                self._adam_step("adam", gradients)
            elif isinstance(self._config, GradientDescent) and self._config.loss_scaled:
                for parameter, gradient in zip(self._trained, gradients, strict=True):
                    parameter.sub_(self._config.lr * (gradient / loss))
            else:
                torch._foreach_add_(self._trained, gradients, alpha=-self._config.lr)
        self.iteration += 1
        return loss
