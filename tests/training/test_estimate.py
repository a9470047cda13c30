"""The multiply-adds of networks."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dynamics_cli.kinds import get_kind

CONVOLUTIONS = [[6, 3, 1, 1], [5, 4, 2, 1]]


@pytest.mark.parametrize(
    ("architecture", "d"),
    [
        (
            {
                "kind": "convolutional",
                "image": [2, 9, 10],
                "convolutions": CONVOLUTIONS,
                "widths": [7],
            },
            180,
        ),
        ({"kind": "vgg16", "image": [3, 17, 12], "width_multiplier": 0.05, "outputs": 3}, 612),
        ({"kind": "fully_connected", "widths": [5, 6], "bias": False}, 7),
        ({"kind": "residual", "width": 5}, 7),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_the_work_of_a_network_is_what_torch_counts(architecture, d):
    config = get_kind("architecture", architecture["kind"])(**architecture)
    with torch.device("meta"):
        model = config.build(d)
        x = torch.empty(1, d)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    assert config.multiply_adds(config.shapes(d), d) == counter.get_total_flops() // 2
