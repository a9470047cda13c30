"""Two networks trained against each other: updates by hand, chunks, resumption, what is refused."""

import numpy as np
import pytest
import torch

from dynamics_cli.config import load_config
from dynamics_cli.kinds import stream
from dynamics_cli.training.batches import Batches
from dynamics_cli.training.problem import build_problem
from tests.cases import read
from tests.training.problems import assert_weights, stepper_of

SMALL = read("""
name: small
dataset: {kind: mixture, n: 50}
architecture: {kind: gan, noise_dim: 3, generator_widths: [5, 4], discriminator_widths: [6]}
initialization: {kind: default_scaled}
loss: {kind: logistic}
optimizer: {kind: adam, lr: 0.01, batch_size: 8, iterations: 40, beta1: 0.5, beta2: 0.9}
""")


def problem(loss="logistic", updates=1, **settings):
    architecture = {**SMALL["architecture"], "discriminator_updates": updates}
    return build_problem(
        load_config({**SMALL, "architecture": architecture, "loss": {"kind": loss}, **settings})
    )


def networks(p, player, x, depth):
    for k in range(1, depth + 1):
        x = x @ p[f"{player}_weight_{k}"].T + p[f"{player}_bias_{k}"]
        x = x.clamp(min=0) if k < depth else x
    return x


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_first_iteration_is_two_adam_steps_of_the_losses_written_out(loss):
    """Adam's first step is lr g / (|g| + eps), whatever the betas."""
    asked = problem(loss, dtype="float64")
    p = {
        name: torch.from_numpy(value.copy()).requires_grad_()
        for name, value in asked.initial_parameters().items()
    }
    real = torch.from_numpy(asked.dataset.x[Batches(asked).at(0)])

    def noise(k):
        return torch.from_numpy(
            stream(0, "noise", 0, k).standard_normal((8, 3), dtype=np.float32)
        ).double()

    def step(player, value):
        names = [name for name in p if name.startswith(player)]
        for name, g in zip(
            names, torch.autograd.grad(value, [p[name] for name in names]), strict=True
        ):
            p[name] = (p[name] - 0.01 * g / (g.abs() + 1e-8)).detach().requires_grad_()

    fake = networks(p, "generator", noise(0), 3).detach()
    on_real, on_fake = (networks(p, "discriminator", x, 2) for x in (real, fake))
    if loss == "hinge":
        step("discriminator", (1 - on_real).clamp(min=0).mean() + (1 + on_fake).clamp(min=0).mean())
    else:
        step("discriminator", (-on_real.sigmoid().log() - (1 - on_fake.sigmoid()).log()).mean())
    fooled = networks(p, "discriminator", networks(p, "generator", noise(1), 3), 2)
    step("generator", -fooled.mean() if loss == "hinge" else -fooled.sigmoid().log().mean())

    trained = stepper_of(asked, "torch")
    trained.advance(1)
    expected = {name: value.detach().numpy() for name, value in p.items()}
    assert_weights(trained.parameters(), expected, rtol=1e-6, atol=1e-9)
