"""The reference stepper: PyTorch's autograd, for any architecture, loss and optimizer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dynamics_cli.architectures import build_model
from dynamics_cli.config.optimizer import Adam, GradientDescent, GradientFlow
from dynamics_cli.training.batches import Batches, batches_of
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.base import Floats, State, Stepper, first_halt
from dynamics_cli.training.totals import total, total_and_gradients

_ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class AutogradStepper(Stepper):
    """Gradients by `torch.autograd`, updates in place, losses gathered on the device."""

    backend = "autograd"

    def __init__(self, problem: Problem, device: str) -> None:
        self.device = device
        self.full_batch = problem.batch_size is None
        assert not isinstance(problem.config.optimizer, GradientFlow)
        self._config = problem.config.optimizer
        self._loss = problem.loss
        dtype = getattr(torch, problem.config.dtype)
        self._model = build_model(problem.config.architecture, problem.dataset.d).to(device=device, dtype=dtype)
        self._write(problem.initial_parameters())
        labels = torch.long if problem.loss.labels == "classes" else dtype
        self._x = torch.from_numpy(problem.dataset.x).to(device=device, dtype=dtype)  # (n, d)
        self._y = torch.from_numpy(problem.dataset.y).to(device=device, dtype=labels)  # (n,)
        self._block = problem.block_samples(device)
        self._trained: list[Tensor] = [p for p in self._model.parameters() if p.requires_grad]
        self._adam: torch.optim.Adam | None = None
        if isinstance(self._config, Adam):
            c = self._config
            self._adam = torch.optim.Adam(self._trained, lr=c.lr, betas=(c.beta1, c.beta2), eps=c.eps, fused=True)
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
        halt = first_halt(losses, self._config.stop_below)
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
            return float(total(self._model, self._loss, self._x, self._y, self._block))

    def parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return copies of the current weights, by name."""
        return {name: p.detach().cpu().numpy().copy() for name, p in self._model.named_parameters()}

    def state_dict(self) -> State:
        """Return weights, optimizer state and iteration."""
        state: State = {f"parameter/{name}": value for name, value in self.parameters().items()}
        state["iteration"] = np.array(self.iteration)
        if self._adam is not None:
            for k, p in enumerate(self._trained):
                for key, value in self._adam.state[p].items():
                    state[f"adam/{k}/{key}"] = value.detach().cpu().numpy().copy()
        return state

    def load_state_dict(self, state: State) -> None:
        """Go on from a former `state_dict()`."""
        self._write({key.removeprefix("parameter/"): v for key, v in state.items() if key.startswith("parameter/")})
        self.iteration = int(state["iteration"])
        if self._adam is not None:
            for k, p in enumerate(self._trained):
                self._adam.state[p] = {
                    key: torch.from_numpy(np.array(state[f"adam/{k}/{key}"])).to(self.device)
                    for key in _ADAM_STATE
                    if f"adam/{k}/{key}" in state
                }

    def _write(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                parameter.copy_(torch.from_numpy(np.array(parameters[name])))

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
        loss, gradients = total_and_gradients(self._model, self._loss, x, y, self._trained, self._block)
        with torch.no_grad():
            if self._adam is not None:
                for parameter, gradient in zip(self._trained, gradients, strict=True):
                    parameter.grad = gradient
                self._adam.step()
            elif isinstance(self._config, GradientDescent) and self._config.loss_scaled:
                for parameter, gradient in zip(self._trained, gradients, strict=True):
                    parameter.sub_(self._config.lr * (gradient / loss))
            else:
                torch._foreach_add_(self._trained, gradients, alpha=-self._config.lr)
        self.iteration += 1
        return loss
