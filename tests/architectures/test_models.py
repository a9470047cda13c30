"""Networks: outputs by hand, PyTorch and NumPy evaluation agree, the derivative at the kink, replicas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dynamics_cli.architectures.fully_connected import FullyConnected
from dynamics_cli.architectures.two_layer import TwoLayer

ACTIVATIONS = [("relu", None), ("leaky_relu", 0.2), ("linear", None)]


def two_layer(activation="relu", slope=None, width=3):
    return TwoLayer(width=width, activation=activation, slope=slope)


def test_two_layer_by_hand():
    h = two_layer("leaky_relu", 0.5, width=2).function(
        {"hidden_weight": np.array([[1.0, -1.0], [2.0, 0.0]]), "output_weight": np.array([3.0, -1.0])},
    )
    # <w_1, x> = -1 -> -0.5, <w_2, x> = 4 -> 4
    np.testing.assert_allclose(h(np.array([[2.0, 3.0]])), [3 * -0.5 - 4])


@pytest.mark.parametrize(("activation", "slope"), ACTIVATIONS)
def test_torch_and_numpy_agree(activation, slope):
    config = two_layer(activation, slope)
    model = config.build(4).double()
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)))
    x = rng.standard_normal((6, 4))
    parameters = {name: p.detach().numpy() for name, p in model.named_parameters()}
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach(), config.function(parameters)(x), rtol=1e-13)


@pytest.mark.parametrize(("activation", "slope", "at_zero"), [("relu", None, 0.0), ("leaky_relu", 0.2, 0.2)])
def test_derivative_at_the_kink(activation, slope, at_zero):
    model = two_layer(activation, slope, width=1).build(1)
    model.output_weight.data.fill_(1.0)
    model(torch.ones(1, 1)).sum().backward()  # hidden weight 0: the pre-activation is exactly 0
    assert model.hidden_weight.grad.item() == pytest.approx(at_zero)


def test_replicas_are_independent_networks():
    config = two_layer(width=5)
    model = config.build(2).double()
    rng = np.random.default_rng(1)
    W, a = rng.standard_normal((4, 5, 2)), rng.standard_normal((4, 5))
    x = rng.standard_normal((7, 2))
    model.hidden_weight.data, model.output_weight.data = torch.from_numpy(W), torch.from_numpy(a)
    together = model(torch.from_numpy(x)).detach().numpy()
    for r in range(4):
        alone = config.function({"hidden_weight": W[r], "output_weight": a[r]})(x)
        np.testing.assert_allclose(together[r], alone, rtol=1e-13)


def test_fixed_output_weights_are_not_trained():
    config = TwoLayer(width=2, train_output=False)
    names = {name for name, p in config.build(3).named_parameters() if p.requires_grad}
    assert names == {"hidden_weight"}


@pytest.mark.parametrize(("outputs", "shape"), [(1, (6,)), (3, (6, 3))])
def test_fully_connected_shapes_and_function(outputs, shape):
    config = FullyConnected(widths=[5, 4], outputs=outputs)
    model = config.build(2).double()
    assert [name for name, _ in model.named_parameters()] == [
        "weight_1", "bias_1", "weight_2", "bias_2", "weight_3", "bias_3"
    ]  # fmt: skip
    rng = np.random.default_rng(2)
    for parameter in model.parameters():
        parameter.data = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)))
    x = rng.standard_normal((6, 2))
    W1, b1, W2, b2, W3, b3 = (p.detach().numpy() for p in model.parameters())
    by_hand = np.maximum(np.maximum(x @ W1.T + b1, 0) @ W2.T + b2, 0) @ W3.T + b3
    outputs_numpy = config.function({n: p.detach().numpy() for n, p in model.named_parameters()})(x)
    assert outputs_numpy.shape == shape
    np.testing.assert_allclose(outputs_numpy, by_hand.reshape(shape), rtol=1e-13)
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach(), by_hand.reshape(shape), rtol=1e-13)
