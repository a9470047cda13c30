"""Two networks trained against each other.

A generator and a discriminator each have an Adam of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dynamics_cli.kinds import Floats, Problem, stream
from dynamics_cli.training.steppers.autograd import AutogradStepper

_LOOKED_AT = 2000
"""Real points, and as many samples of fixed noise, over which the recorded loss is taken."""


class AdversarialStepper(AutogradStepper):
    """Some updates of the discriminator, then one of the generator, are an iteration.

    Every update of the discriminator has new batches.

    Batches come from `Batches`, noise is a function of (seed, iteration, update): nothing depends
    on earlier draws. The recorded loss is the discriminator's on fixed points and noise.
    """

    def __init__(self, problems: Sequence[Problem], device: str) -> None:
        (problem,) = problems
        architecture: Any = problem.config.architecture
        super().__init__(problems, device)
        # as a function the discriminator; `generate` makes points of noise
        self._model: Any = self._module
        self._seed = problem.config.seed
        self._noise_dim = architecture.noise_dim
        self._rounds = architecture.discriminator_updates
        self._x = self._data[0]  # (n, d)

    def run_batches(self, n: int) -> None:
        """Do `n` iterations."""
        for i in range(self.iteration, self.iteration + n):
            for k in range(self._rounds):
                self._move("discriminator", i, self._loss_of_discriminator(i, k))
            self._move("generator", i, self._loss_of_generator(i))

    def _loss_of_discriminator(self, i: int, k: int) -> Tensor:
        chosen = self._batches[0].at(self._rounds * i + k)
        real = self._x[torch.from_numpy(chosen).to(self.device)]  # (b, d)
        with torch.no_grad():
            fake = self._model.generate(self._noise(len(chosen), i, k))
        return self._discriminator_loss(real, fake)

    def _loss_of_generator(self, i: int) -> Tensor:
        noise = self._noise(self._batches[0].batch_size, i, self._rounds)
        logits: Tensor = self._model(self._model.generate(noise))  # (b,)
        if self.criterion.of_critic:
            return -logits.mean()
        loss: Tensor = self.criterion.total(logits, torch.ones_like(logits))
        return loss

    def _discriminator_loss(self, real: Tensor, fake: Tensor) -> Tensor:
        logits = self._model(torch.cat([real, fake]))  # (2 b,)
        ones = logits.new_ones(len(real))
        on_real = logits[: len(real)]
        on_fake = logits[len(real) :]
        loss: Tensor = self.criterion.total(on_real, ones) + self.criterion.total(on_fake, -ones)
        return loss

    def _move(self, player: str, i: int, loss: Tensor) -> None:
        weights = {name: w for name, w in self._trained.items() if name.startswith(player)}
        if not weights:  # all of them are frozen
            return
        gradients = torch.autograd.grad(loss, list(weights.values()))
        clipped = self._clip(dict(zip(weights, gradients, strict=True)), 0)
        self._update(player, i, clipped, loss)

    def _noise(self, count: int, *position: int) -> Tensor:
        """Return Gaussian noise (count, noise_dim)."""
        rng = stream(self._seed, "noise", *position)
        noise = torch.from_numpy(rng.standard_normal((count, self._noise_dim), dtype=np.float32))
        return noise.to(self._x)

    def losses(self) -> Floats:
        """Return the discriminator's loss (1,) on first real points and samples of fixed noise."""
        with torch.no_grad(), self._computing(self._looking_threads):
            real = self._x[:_LOOKED_AT]
            loss = self._discriminator_loss(real, self._model.generate(self._noise(len(real))))
        return np.array([float(loss)])
