"""Values and derivatives of activations, for NumPy and for torch."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.architectures.activations import (
    Cubic,
    Erf,
    Gelu,
    LeakyRelu,
    Linear,
    Quadratic,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
)
from dynamics_cli.formulas import tracing
from dynamics_cli.kinds import all_kinds, formulas

Z = np.array([[-3.0, -0.5, 0.25], [0.0, 1e-300, 2.0]])
KINKED = [
    (Relu(), [[0, 0, 0.25], [0, 1e-300, 2]], [[0, 0, 1], [0, 1, 1]]),
    (LeakyRelu(slope=0.5), [[-1.5, -0.25, 0.25], [0, 1e-300, 2]], [[0.5, 0.5, 1], [0.5, 1, 1]]),
    (LeakyRelu(slope=2.0), [[-6, -1, 0.25], [0, 1e-300, 2]], [[2, 2, 1], [2, 1, 1]]),
    (Linear(), Z.tolist(), [[1, 1, 1], [1, 1, 1]]),
]
# kind, keys, value and derivative at 1 by formulas of their own
S1 = 1 / (1 + math.exp(-1))
PHI1 = 0.5 * math.erfc(-math.sqrt(0.5))
DENSITY1 = math.exp(-0.5) / math.sqrt(2 * math.pi)
SMOOTH = [
    (Tanh(), (math.e**2 - 1) / (math.e**2 + 1), 1 / math.cosh(1) ** 2),
    (Erf(), math.erf(1), 2 / math.sqrt(math.pi) / math.e),
    (Erf(beta=2.0), math.erf(2), 4 / math.sqrt(math.pi) * math.exp(-4)),
    (Sigmoid(), S1, S1 / (1 + math.e)),
    (Softplus(), math.log(1 + math.e), S1),
    (Gelu(), PHI1, PHI1 + DENSITY1),
    (Silu(), S1, S1 + S1 / (1 + math.e)),
    (Quadratic(), 1, 2),
    (Cubic(), 1, 3),
]


def test_every_bundled_activation_is_here():
    bundled = {
        cls
        for cls in all_kinds("activation").values()
        if cls.__module__.startswith("dynamics_cli.")
    }
    assert bundled == {type(sigma) for sigma, *_ in (*KINKED, *SMOOTH)}


@pytest.mark.parametrize(("sigma", "values", "derivatives"), KINKED, ids=lambda one: str(one)[:30])
def test_values_and_derivatives_also_at_the_kink(sigma, values, derivatives):
    for z in (Z, torch.from_numpy(Z)):
        assert_array_equal(sigma.value(z), values)
        assert_array_equal(sigma.derivative(z), derivatives)
    alpha = sigma.negative_slope
    assert alpha is not None
    assert_allclose(values, np.maximum(Z, 0) + alpha * np.minimum(Z, 0), rtol=1e-15)


@pytest.mark.parametrize(("sigma", "value", "derivative"), SMOOTH, ids=lambda one: str(one)[:30])
def test_values_and_derivatives_at_1(sigma, value, derivative):
    assert sigma.value(np.ones(1))[0] == pytest.approx(value, rel=1e-14)
    assert sigma.derivative(np.ones(1))[0] == pytest.approx(derivative, rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [example[0] for example in SMOOTH], ids=str)
def test_second_derivatives_by_torch_hold_far_from_0(sigma, dtype):
    far = [30.0, 80.0, 100.0, 400.0, 709.0, 720.0, 1e4, 1e6]
    z = torch.tensor([*far, *(-x for x in far)], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(sigma.value(z).sum(), z, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), z)
    expected = tracing.slopes(sigma, z.detach().double().numpy(), 2)
    assert_allclose(bend, expected, rtol=1e-6, atol=100 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigma", [example[0] for example in (*KINKED, *SMOOTH)], ids=str)
def test_numpy_and_torch_agree_and_derivatives_are_those_of_autograd(sigma, dtype):
    """Also at the kink, where torch and the flow must not go apart."""
    exact = not sigma.smooth or isinstance(sigma, Linear)
    z = (
        np.append(np.random.default_rng(0).standard_normal(100), 0.0)
        if exact
        else np.linspace(-50, 50, 2001)
    )
    tensor = torch.from_numpy(z := z.astype(dtype)).requires_grad_()
    value = sigma.value(tensor)
    (expected,) = torch.autograd.grad(value.sum(), tensor, create_graph=True)
    bends = (
        torch.autograd.grad(expected.sum(), tensor)[0]
        if expected.requires_grad
        else torch.zeros_like(tensor)
    )
    digits = 5e-6 if dtype == "float32" else 1e-14
    near = 0.0 if exact else digits
    if exact:
        assert_allclose(sigma.value(z), value.detach(), rtol=1e-6 if dtype == "float32" else 1e-15)
    assert_allclose(sigma.value(z), value.detach(), rtol=digits, atol=digits)
    assert_allclose(sigma.derivative(z, 2), bends, rtol=2 * digits, atol=2 * digits)
    for derivative in (sigma.derivative(tensor.detach()).numpy(), sigma.derivative(z)):
        assert_allclose(derivative, expected.detach(), rtol=near, atol=near)
        assert derivative.dtype == sigma.value(z).dtype == dtype


def test_a_negative_slope_holds_for_the_value_beside_it_alone():
    class Own(Relu):
        def value(self, z):
            return formulas.softplus(z)

    assert Own().negative_slope is None
