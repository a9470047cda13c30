"""Values and derivatives of activations, for NumPy and for torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dynamics_cli.architectures.activations import LeakyRelu, Linear, Relu
from dynamics_cli.architectures.fully_connected import FullyConnected
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.config.bases import Activation
from dynamics_cli.config.registry import all_kinds

Z = np.array([[-3.0, -0.5, 0.25], [0.0, 1e-300, 2.0]])
EXAMPLES: list[tuple[Activation, list[list[float]], list[list[float]]]] = [
    (Relu(), [[0, 0, 0.25], [0, 1e-300, 2]], [[0, 0, 1], [0, 1, 1]]),
    (LeakyRelu(slope=0.5), [[-1.5, -0.25, 0.25], [0, 1e-300, 2]], [[0.5, 0.5, 1], [0.5, 1, 1]]),
    (LeakyRelu(slope=2.0), [[-6, -1, 0.25], [0, 1e-300, 2]], [[2, 2, 1], [2, 1, 1]]),
    (Linear(), Z.tolist(), [[1, 1, 1], [1, 1, 1]]),
]
ALL = pytest.mark.parametrize(
    "sigma", [example[0] for example in EXAMPLES], ids=lambda one: f"{one.kind}-{one.negative_slope}"
)


def test_every_bundled_activation_is_here() -> None:
    bundled = {cls for cls in all_kinds("activation").values() if cls.__module__.startswith("dynamics_cli.")}
    assert bundled == {type(sigma) for sigma, _, _ in EXAMPLES}


@pytest.mark.parametrize(("sigma", "values", "derivatives"), EXAMPLES)
def test_values_and_derivatives_also_at_the_kink(
    sigma: Activation, values: list[list[float]], derivatives: list[list[float]]
) -> None:
    np.testing.assert_array_equal(sigma.value(Z), values)
    np.testing.assert_array_equal(sigma.derivative(Z), derivatives)
    np.testing.assert_array_equal(sigma.value(torch.from_numpy(Z)), values)
    np.testing.assert_array_equal(sigma.derivative(torch.from_numpy(Z)), derivatives)


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_are_those_of_autograd(sigma: Activation, dtype: str) -> None:
    """Also at the kink, where torch and the flow must not go apart."""
    z = np.concatenate([np.random.default_rng(0).standard_normal(100), [0.0]]).astype(dtype)
    tensor = torch.from_numpy(z).requires_grad_()
    value = sigma.value(tensor)
    (expected,) = torch.autograd.grad(value.sum(), tensor)
    for derivative in (sigma.derivative(tensor.detach()).numpy(), sigma.derivative(z)):
        np.testing.assert_array_equal(derivative, expected)
        assert derivative.dtype == dtype
    assert sigma.value(z).dtype == dtype
    np.testing.assert_allclose(sigma.value(z), value.detach(), rtol=1e-6 if dtype == "float32" else 1e-15)


@ALL
def test_the_negative_slope_says_the_whole_function(sigma: Activation) -> None:
    alpha = sigma.negative_slope
    assert alpha is not None
    np.testing.assert_allclose(sigma.value(Z), np.maximum(Z, 0) + alpha * np.minimum(Z, 0), rtol=1e-15)


def test_ways_to_write_a_slope_are_the_same_architecture() -> None:
    beside = TwoLayer(width=3, activation="leaky_relu", slope=0.2)  # type: ignore[arg-type]
    within = TwoLayer(width=3, activation={"kind": "leaky_relu", "slope": 0.2})  # type: ignore[arg-type]
    assert beside == within == TwoLayer(width=3, activation=LeakyRelu(slope=0.2))
    assert beside.sigma == LeakyRelu(slope=0.2)
    assert beside.model_dump()["activation"] == "leaky_relu"
    assert FullyConnected(widths=[2]).sigma == Relu()
