"""Two networks trained against each other: updates by hand, chunks, resumption, kills."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli.config import load_config
from dynamics_cli.config.errors import ConfigError
from dynamics_cli.kinds import Problem, stream
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.batches import Batches
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from dynamics_cli.training.steppers.adversarial import AdversarialStepper
from tests.training.test_steppers import path_of

SMALL: dict[str, Any] = {
    "name": "small",
    "dataset": {"kind": "mixture", "n": 50},
    "architecture": {"kind": "gan", "noise_dim": 3, "generator_widths": [5, 4], "discriminator_widths": [6]},
    "initialization": {"kind": "default_scaled"},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "adam", "lr": 0.01, "batch_size": 8, "iterations": 40, "beta1": 0.5, "beta2": 0.9},
}


def problem(loss: str = "logistic", updates: int = 1, **settings: Any) -> Problem:
    architecture = {**SMALL["architecture"], "discriminator_updates": updates}
    return build_problem(load_config({**SMALL, "architecture": architecture, "loss": {"kind": loss}, **settings}))


def gan(asked: Problem) -> AdversarialStepper:
    made = build_stepper([asked], Choice("cpu", "torch", 0.0))
    assert isinstance(made, AdversarialStepper)
    return made


def networks(p: dict[str, torch.Tensor], player: str, x: torch.Tensor, depth: int) -> torch.Tensor:
    for k in range(1, depth + 1):
        x = x @ p[f"{player}_weight_{k}"].T + p[f"{player}_bias_{k}"]
        x = x.clamp(min=0) if k < depth else x
    return x


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_first_iteration_is_two_adam_steps_of_the_losses_written_out(loss):
    """Adam's first step is lr g / (|g| + eps), whatever the betas."""
    asked = problem(loss, dtype="float64")
    p = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in asked.initial_parameters().items()}
    real = torch.from_numpy(asked.dataset.x[Batches(0, 50, 8, replacement=False).at(0)])

    def noise(k: int) -> torch.Tensor:
        return torch.from_numpy(stream(0, "noise", 0, k).standard_normal((8, 3), dtype=np.float32)).double()

    def step(player: str, value: torch.Tensor) -> None:
        names = [name for name in p if name.startswith(player)]
        for name, g in zip(names, torch.autograd.grad(value, [p[name] for name in names]), strict=True):
            p[name] = (p[name] - 0.01 * g / (g.abs() + 1e-8)).detach().requires_grad_()

    fake = networks(p, "generator", noise(0), 3).detach()
    on_real, on_fake = (networks(p, "discriminator", x, 2) for x in (real, fake))
    if loss == "hinge":
        step("discriminator", (1 - on_real).clamp(min=0).mean() + (1 + on_fake).clamp(min=0).mean())
    else:
        step("discriminator", (-on_real.sigmoid().log() - (1 - on_fake.sigmoid()).log()).mean())
    fooled = networks(p, "discriminator", networks(p, "generator", noise(1), 3), 2)
    step("generator", -fooled.mean() if loss == "hinge" else -fooled.sigmoid().log().mean())

    trained = gan(asked)
    trained.advance(1)
    for name, value in trained.parameters().items():
        np.testing.assert_allclose(value, p[name].detach().numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("loss", "updates"), [("logistic", 1), ("hinge", 1), ("hinge", 3)])
def test_chunks_and_resumption_are_invisible(loss, updates, dtype):
    asked = problem(loss, updates, dtype=dtype)

    def make() -> AdversarialStepper:
        return gan(asked)

    whole = path_of(make, [40], through_state=False)
    assert path_of(make, [1, 2, 20, 17], through_state=False) == whole
    assert path_of(make, [7, 13, 20], through_state=True) == whole


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    config = problem("hinge").config.model_copy(update={"backend": "auto"})
    whole = obtain_run(plan_run(config, tmp_path / "whole")).run

    def stop(*_: object) -> None:
        raise Interrupted("stop", 2)

    with pytest.raises(Interrupted):
        obtain_run(plan_run(config, tmp_path / "stopped"), progress=stop)
    resumed = obtain_run(plan_run(config, tmp_path / "stopped"), resume=True).run
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(resumed.parameters[name], value)


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("loss", {"kind": "mse"}, "must be logistic"),
        ("dataset", {"kind": "orthonormal", "n": 2, "dim": 2}, "must be mixture"),
        ("dataset", {"kind": "mixture", "layout": "grid", "modes": 8}, "must be a square number"),
        ("optimizer", {"kind": "adam", "lr": 0.1, "iterations": 3}, "must be adam with a batch_size"),
        ("initialization", {"kind": "unbalanced", "scale": 1.0}, "must be default_scaled or file"),
    ],
)
def test_settings_that_make_no_sense_are_refused(section, value, message):
    with pytest.raises(ConfigError, match=message):
        load_config({**SMALL, section: value})
