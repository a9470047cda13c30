"""Networks: by hand, as modules of torch and as functions of NumPy, as a whole and some samples
at a time.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from dynamics_cli import memory as blocks
from dynamics_cli.kinds import get_kind
from tests.cases import read

CONVOLUTIONAL = read("""
kind: convolutional
image: [1, 6, 6]
convolutions: [[3, 3, 1, 1], [2, 4, 2, 1]]
widths: [5]
""")


def relu(z):
    return np.maximum(z, 0.0)


def residual(x, first, *others):
    f = x @ first.T
    for W in others[:-1]:
        f = f + relu(f) @ W.T
    return (relu(f) @ others[-1].T)[:, 0]


def deep(x, *weights):
    W1, b1, W2, b2, W3, b3 = weights
    return np.squeeze(relu(relu(x @ W1.T + b1) @ W2.T + b2) @ W3.T + b3)


def of_torch(x, *weights):
    network = nn.Sequential(
        nn.Unflatten(1, (1, 6, 6)),
        nn.Conv2d(1, 3, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(3, 2, 4, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(18, 5),
        nn.ReLU(),
        nn.Linear(5, len(weights[-1])),
    ).double()
    network.load_state_dict(
        dict(zip(network.state_dict(), map(torch.from_numpy, weights), strict=True))
    )
    with torch.no_grad():
        return np.squeeze(network(torch.from_numpy(x)).numpy())


PRODUCT = {"kind": "matrix_product", "columns": 2, "depth": 2}

NETWORKS = [
    ({"kind": "two_layer", "width": 5, "activation": "relu"}, 4, lambda x, W, a: relu(x @ W.T) @ a),
    (
        {"kind": "two_layer", "width": 3, "activation": "leaky_relu", "slope": 0.2},
        4,
        lambda x, W, a: (relu(x @ W.T) - 0.2 * relu(-x @ W.T)) @ a,
    ),
    ({"kind": "two_layer", "width": 3, "activation": "linear"}, 4, lambda x, W, a: x @ W.T @ a),
    ({"kind": "two_layer", "width": 5, "outputs": 3}, 4, lambda x, W, a: relu(x @ W.T) @ a.T),
    ({"kind": "fully_connected", "widths": [5, 4]}, 2, deep),
    ({"kind": "fully_connected", "widths": [5, 6], "outputs": 3}, 7, deep),
    ({"kind": "residual", "width": 3, "depth": 4}, 2, residual),
    ({"kind": "residual", "width": 4, "depth": 2}, 3, lambda x, W, a: relu(x @ W.T) @ a[0]),
    ({"kind": "diagonal_linear", "depth": 3}, 2, lambda x, u, v: x @ (u**3 - v**3)),
    ({**PRODUCT, "rows": 3}, 2, lambda x, W1, W2: (W2 @ W1)[tuple(x.astype(int).T)]),
    (CONVOLUTIONAL, 36, of_torch),
    ({**CONVOLUTIONAL, "outputs": 3}, 36, of_torch),
    *(
        ({"kind": "vgg16", "image": image, "width_multiplier": 1 / 64}, int(np.prod(image)), None)
        for image in ([1, 8, 8], [3, 32, 32], [1, 28, 28], [2, 5, 9])
    ),
    (
        {"kind": "gan", "noise_dim": 2, "generator_widths": [5], "discriminator_widths": [6]},
        2,
        None,
    ),
]


@pytest.mark.parametrize(
    ("section", "d", "by_hand"),
    NETWORKS,
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_torch_numpy_and_a_calculation_by_hand_agree(
    section,
    d,
    by_hand,
    monkeypatch,
):
    config = get_kind("architecture", section["kind"])(**section)
    rng = np.random.default_rng(0)
    model = config.build(d).double()
    weights = {name: rng.standard_normal(shape) for name, shape in config.shapes(d).items()}
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == config.shapes(d)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    x = (
        rng.integers(0, 2, (11, d)).astype(float)
        if section.get("rows") == 3
        else rng.standard_normal((11, d))
    )
    h = config.function(weights)
    whole = h(x)
    digits = 1e-9 if "image" in section else 1e-13
    assert whole.shape == ((11, section["outputs"]) if section.get("outputs") else (11,))
    assert np.isfinite(whole).all()
    assert_allclose(model(torch.from_numpy(x)).detach(), whole, rtol=digits)
    if by_hand is not None:
        assert_allclose(whole, by_hand(x, *weights.values()), rtol=digits)
    monkeypatch.setattr(blocks, "MULTIPLY_ADDS", 1)  # a sample at a time
    assert_allclose(h(x), whole, rtol=1e-11, atol=1e-13)
    assert h(x[:0]).shape == whole[:0].shape
