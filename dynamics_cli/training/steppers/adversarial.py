"""Two networks trained against each other: a generator and a discriminator, each with its own Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dynamics_cli.architectures._networks import GanNetwork
from dynamics_cli.architectures.gan import Gan
from dynamics_cli.config.bases import Minibatch
from dynamics_cli.config.streams import stream
from dynamics_cli.training.batches import Batches
from dynamics_cli.training.problem import Problem
from dynamics_cli.training.steppers.autograd import TorchStepper, network_of
from dynamics_cli.training.steppers.base import Floats, only

PLAYERS = ("discriminator", "generator")
_LOOKED_AT = 2000
"""Real points, and as many samples of fixed noise, over which the recorded loss is taken."""


class AdversarialStepper(TorchStepper):
    """An iteration is some updates of the discriminator, each on new batches, then one of the generator.

    Batches are those of `Batches`, noise is a function of (seed, iteration, update): nothing depends on what was drawn
    before. The recorded loss is the discriminator's on fixed points and noise.
    """

    backend = "torch"

    def __init__(self, problems: Sequence[Problem], device: str) -> None:
        problem = only(problems, "gan")
        architecture, optimizer = problem.config.architecture, problem.config.optimizer
        assert isinstance(architecture, Gan)
        assert isinstance(optimizer, Minibatch)
        assert problem.batch_size is not None
        super().__init__(problem, network_of(problem, device), device)
        self._model = cast(GanNetwork, self._module)
        self._seed, self._hinge = problem.config.seed, problem.config.loss.kind == "hinge"
        self._noise_dim, self._rounds = architecture.noise_dim, architecture.discriminator_updates
        self._x = torch.from_numpy(problem.dataset.x).to(device=device, dtype=self._dtype)  # (n, d)
        self._trained = {player: self._model.of(player) for player in PLAYERS}
        for player in PLAYERS:
            named = {name: p for name, p in self._model.named_parameters() if name.startswith(player)}
            self._add_optimizer(player, optimizer, named)
        self._batches = Batches(self._seed, problem.dataset.n, problem.batch_size, replacement=optimizer.replacement)

    def advance(self, n: int) -> Floats:
        """Do `n` iterations; no losses come with them."""
        for _ in range(n):
            for k in range(self._rounds):
                self._update_discriminator(k)
            self._update_generator()
            self.iteration += 1
        return np.empty(0)

    def _update_discriminator(self, k: int) -> None:
        chosen = self._batches.at(self._rounds * self.iteration + k)
        real = self._x[torch.from_numpy(chosen).to(self.device)]  # (b, d)
        with torch.no_grad():
            fake = self._model.generate(self._noise(len(chosen), self.iteration, k))
        self._step("discriminator", self._discriminator_loss(real, fake))

    def _update_generator(self) -> None:
        noise = self._noise(self._batches.batch_size, self.iteration, self._rounds)
        logits = self._model(self._model.generate(noise))  # (b,)
        loss = -logits.mean() if self._hinge else self._loss.total(logits, torch.ones_like(logits))
        self._step("generator", loss)

    def _discriminator_loss(self, real: Tensor, fake: Tensor) -> Tensor:
        ones = torch.ones(len(real), dtype=self._dtype, device=self.device)
        logits = self._model(torch.cat([real, fake]))  # (2 b,)
        on_real, on_fake = logits[: len(real)], logits[len(real) :]
        loss: Tensor = self._loss.total(on_real, ones) + self._loss.total(on_fake, -ones)
        return loss

    def _step(self, player: str, loss: Tensor) -> None:
        self._update(player, torch.autograd.grad(loss, self._trained[player]), loss)

    def _noise(self, count: int, *position: int) -> Tensor:
        """Return Gaussian noise (count, noise_dim)."""
        rng = stream(self._seed, "noise", *position)
        noise = torch.from_numpy(rng.standard_normal((count, self._noise_dim), dtype=np.float32))
        return noise.to(device=self.device, dtype=self._dtype)

    def loss(self) -> float:
        """Return the discriminator's loss on the first real points and as many samples of fixed noise."""
        with torch.no_grad():
            real = self._x[:_LOOKED_AT]
            return float(self._discriminator_loss(real, self._model.generate(self._noise(len(real)))))
