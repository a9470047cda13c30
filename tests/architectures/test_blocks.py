"""Networks evaluated some samples at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynamics_cli import memory as blocks
from dynamics_cli.kinds import get_kind
from dynamics_cli.memory import block_samples

NETWORKS: list[tuple[dict[str, Any], int]] = [
    ({"kind": "two_layer", "width": 5, "activation": "relu"}, 4),
    ({"kind": "fully_connected", "widths": [5, 6], "outputs": 3}, 7),
    ({"kind": "residual", "width": 5}, 7),
    ({"kind": "convolutional", "image": [1, 6, 5], "convolutions": [[3, 3, 1, 1]], "widths": [4], "outputs": 2}, 30),
    ({"kind": "vgg16", "image": [1, 8, 8], "width_multiplier": 1 / 64}, 64),
    ({"kind": "gan", "noise_dim": 2, "generator_widths": [5], "discriminator_widths": [6]}, 2),
]


def test_a_block_holds_to_both_limits_and_has_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MULTIPLY_ADDS", 1000)
    monkeypatch.setattr(blocks, "NUMBERS", 100)
    assert block_samples(100, 1) == 10
    assert block_samples(1, 30) == 3
    assert block_samples(100, 1, "cuda") == 10 * blocks.ON_GPU
    assert block_samples(5000, 5000) == 1
    assert block_samples(0, 0) == 100


@pytest.fixture(params=NETWORKS, ids=lambda network: network[0]["kind"])
def network(request: pytest.FixtureRequest) -> tuple[Any, int]:
    section, d = request.param
    return get_kind("architecture", section["kind"])(**section), d


def test_a_network_gives_the_same_in_blocks(network: tuple[Any, int], monkeypatch: pytest.MonkeyPatch) -> None:
    config, d = network
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) for name, shape in config.shapes(d).items()}
    h, x = config.function(weights), rng.standard_normal((11, d))
    whole = h(x)
    monkeypatch.setattr(blocks, "MULTIPLY_ADDS", 1)  # a sample at a time
    np.testing.assert_allclose(h(x), whole, rtol=1e-11, atol=1e-13)
    assert h(x[:0]).shape == whole[:0].shape
