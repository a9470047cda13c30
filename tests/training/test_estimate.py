"""What a run is said to need: the work of a network, and the parts of the time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dynamics_cli.kinds import get_kind
from dynamics_cli.training.backends import Choice
from dynamics_cli.training.estimate import Estimate, estimate
from tests.training.problems import random_problem

CONVOLUTIONS = [[6, 3, 1, 1], [5, 4, 2, 1]]


@pytest.mark.parametrize(
    ("architecture", "d"),
    [
        ({"kind": "convolutional", "image": [2, 9, 10], "convolutions": CONVOLUTIONS, "widths": [7]}, 180),
        ({"kind": "vgg16", "image": [3, 17, 12], "width_multiplier": 0.05, "outputs": 3}, 612),
        ({"kind": "fully_connected", "widths": [5, 6], "bias": False}, 7),
        ({"kind": "residual", "width": 5}, 7),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_the_work_of_a_network_is_what_torch_counts(architecture: dict[str, Any], d: int) -> None:
    config: Any = get_kind("architecture", architecture["kind"])(**architecture)
    with torch.device("meta"):
        model, x = config.build(d), torch.empty(1, d)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    assert config.multiply_adds(config.shapes(d), d) == counter.get_total_flops() // 2


def needs(**settings: Any) -> Estimate:
    return estimate(random_problem(**settings), Choice("cpu", "compiled", 1e-6))


def test_recorded_states_take_their_time() -> None:
    optimizer = {"kind": "gd", "lr": 0.1, "iterations": 1000}
    few, many = (needs(optimizer=optimizer, record={"snapshots": {"kind": "every", "interval": k}}) for k in (1000, 1))
    assert (few.snapshots, many.snapshots) == (2, 1001)
    each = (many.seconds - few.seconds) / 999
    assert 2e-5 < each < 1e-3  # measured: 6e-5 to 1e-4 for networks this small
    assert few.seconds == pytest.approx(1000e-6 + 2 * each)


def test_losses_over_the_training_set_take_their_time() -> None:
    """Full-batch losses come with the updates; those of a stochastic optimizer are looked at once an epoch."""
    sgd = {"kind": "sgd", "lr": 0.1, "iterations": 600, "batch_size": 1}
    once, always = needs(optimizer=sgd), needs(optimizer=sgd, record={"loss_every": 1})
    full = needs(optimizer={"kind": "gd", "lr": 0.1, "iterations": 600})
    assert full.seconds < once.seconds < always.seconds
    assert (always.seconds - once.seconds) / (600 - 100) == pytest.approx((once.seconds - full.seconds) / 101)


def test_activations_beyond_the_cache_take_their_time() -> None:
    """One update at width 200 000 took 34 ms (10 samples, 20 columns) and 64 ms (20, 2) of one core of a busy Xeon."""
    for n, d, measured in ((10, 20, 0.034), (20, 2, 0.064)):
        optimizer, record = {"kind": "gd", "lr": 1e-3, "iterations": 100}, {"parameters": "none", "measures": []}
        problem = random_problem(n=n, d=d, width=200_000, optimizer=optimizer, record=record)
        problem = replace(problem, config=problem.config.model_copy(update={"dtype": "float32"}))
        seconds = estimate(problem, Choice("cpu", "torch", 1e-3)).seconds / 100
        assert measured / 2.5 < seconds < 2.5 * measured
        assert estimate(problem, Choice("cpu", "compiled", 1e-3)).seconds < 0.5
