"""Checks that belong to one kind each: independent modes, two networks, gradient flow, written weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Problems = Callable[..., list[str]]

MODES = {"kind": "independent_modes", "y": [[1.0], [2.0, 3.0]], "z": [[1.0], [1.0, 1.0]]}
GAN = {
    "dataset": {"kind": "mixture", "layout": "grid", "modes": 9},
    "architecture": {"kind": "gan"},
    "initialization": {"kind": "default_scaled"},
    "loss": {"kind": "logistic"},
    "optimizer": {"kind": "adam", "lr": 1e-3, "iterations": 5, "batch_size": 4},
}


def modes(**keys: Any) -> dict[str, Any]:
    return {"initialization": {**MODES, **keys}, "architecture": {"kind": "two_layer", "width": 3}}


def deep(**keys: Any) -> dict[str, Any]:
    architecture = {"kind": "fully_connected", "widths": [3, 3], "bias": False, **keys}
    return {"initialization": MODES, "architecture": architecture}


def flow(**keys: Any) -> dict[str, Any]:
    return {"optimizer": {"kind": "gradient_flow", "until": 2.0, **keys}}


def values(width: int, **architecture: Any) -> dict[str, Any]:
    weights = {"kind": "values", "hidden_weight": [[1.0, 2.0]], "output_weight": [1.0]}
    return {"initialization": weights, "architecture": {"kind": "two_layer", "width": width, **architecture}}


CASES: list[tuple[dict[str, Any], list[str]]] = [
    (modes(), []),
    (deep(), []),
    (modes(z=[[1.0], [1.0]]), ["initialization.z: must have lists of the same lengths as y"]),
    (modes(y=[[1.0], [1.0], [1.0]], z=[[1.0], [1.0], [1.0]]),
     ["initialization.y: must have one list for each of 2 classes, not 3"]),
    (deep(activation="linear"), ["architecture.activation: must be relu for the initialization independent_modes"]),
    (deep(bias=True), ["architecture.bias: must be false for the initialization independent_modes"]),
    (deep(widths=[3, 4]), ["architecture.widths: must be 3, the number of neurons in initialization.y"]),
    (modes(y=[[1.0], [1.0]], z=[[1.0], [1.0]]),
     ["architecture.width: must be 2, the number of neurons in initialization.y"]),
    (GAN, []),
    (GAN | {"dataset": {"kind": "mixture", "layout": "grid", "modes": 8}},
     ["dataset.modes: must be a square number for the layout grid, not 8"]),
    (GAN | {"loss": {"kind": "exponential"}},
     ["loss.kind: must be logistic (cross-entropy of the discriminator) or hinge for architecture.kind gan"]),
    (GAN | {"dataset": {"kind": "points", "x": [[1.0, 2.0]], "y": [1.0]}},
     ["dataset.kind: must be mixture for architecture.kind gan"]),
    (GAN | {"optimizer": {"kind": "adam", "lr": 1e-3, "iterations": 5}},
     ["optimizer.kind: must be adam with a batch_size for architecture.kind gan"]),
    (flow(), []),
    (flow(spacing="geometric", first=0.1), []),
    (flow(spacing="geometric"), ["optimizer.first: is missing; geometric spacing needs the time of the first point"]),
    (flow(first=0.1), ["optimizer.first: belongs to spacing geometric, not to uniform"]),
    (flow(spacing="geometric", first=3.0), ["optimizer.first: must be below until = 2, not 3"]),
    (values(1), []),
    (
        values(2),
        [
            "initialization.hidden_weight: has 1 entries, architecture.width is 2",
            "initialization.output_weight: has 1 entries, architecture.width is 2",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "told"), CASES)
def test_kinds(changes: dict[str, Any], told: list[str], base: dict[str, Any], problems: Problems) -> None:
    assert problems(base | changes) == [f"<config>: {line}" for line in told]


def test_written_weights_need_a_two_layer_network(base: dict[str, Any], problems: Problems) -> None:
    changes = values(1) | {"architecture": {"kind": "fully_connected", "widths": [1]}}
    assert "<config>: initialization.kind: values needs architecture.kind two_layer" in problems(base | changes)


def test_a_gan_needs_weights_that_it_can_take(base: dict[str, Any], problems: Problems) -> None:
    told = problems(base | GAN | {"initialization": {"kind": "balanced", "scale": 1.0}})
    assert "<config>: initialization.kind: must be default_scaled or file for architecture.kind gan" in told
