"""Formulas: what is traced has the values and derivatives of autograd, and what is no formula
says so.
"""

import ctypes

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dynamics_cli.formulas.algebra import EACH, NotAFormulaError, symbol
from dynamics_cli.formulas.units import activation_unit, loss_curvature_unit, loss_unit
from dynamics_cli.kinds import Minibatch, all_kinds, formulas

UNARY = ("exp", "expm1", "log1p", "sqrt", "tanh", "erf", "sigmoid", "softplus", "abs", "sin", "cos")
BUNDLED = [
    cls(slope=0.3) if name == "leaky_relu" else cls()
    for name, cls in all_kinds("activation").items()
]
LOSSES = [cls() for cls in all_kinds("loss").values()]


def drawn(rng, z, depth):
    """Return an expression of `z`, at random, finite for |z| < 2."""
    if depth == 0 or rng.random() < 0.1:
        return z if rng.random() < 0.7 else float(rng.uniform(-2, 2))
    a, b = (drawn(rng, z, depth - 1) for _ in range(2))
    way = rng.integers(9)
    if way < 3:
        name = UNARY[rng.integers(len(UNARY))]
        a = a * a + 0.5 if name in ("sqrt", "log1p") else formulas.tanh(a)
        return getattr(formulas, name)(a + 0 * z)
    if way < 7:
        return [a + b, a - b, a * b, a / (1.5 + b * b)][way - 3]
    if way == 7:
        return formulas.where(z + 0 * z > 0.1, a + 0 * z, b + 0 * z)
    return formulas.maximum(a + 0 * z, formulas.minimum(b + 0 * z, z))


@pytest.mark.parametrize("seed", range(60))
def test_derivatives_of_random_formulas_are_those_of_autograd(seed):
    z = np.random.default_rng(seed).uniform(-2, 2, 50)
    table = {}
    at = symbol(table, "z", EACH)
    traced = formulas.constant(table, drawn(np.random.default_rng(seed), at, 4))
    tensor = torch.from_numpy(z).requires_grad_()
    value = drawn(np.random.default_rng(seed), tensor, 4) + 0 * tensor
    slope = formulas.along(traced, {at: 1.0})
    bend = None
    bend = formulas.along(slope, {at: 1.0})
    (first,) = torch.autograd.grad(value.sum(), tensor, create_graph=True)
    second = (
        torch.autograd.grad(first.sum(), tensor)[0]
        if first.requires_grad
        else torch.zeros_like(tensor)
    )
    found = formulas.evaluated([traced, slope, formulas.gradient(traced, at), bend], {"z": z})
    for ours, theirs in zip(found, (value, first, first, second), strict=True):
        assert_allclose(ours + 0 * z, theirs.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigma", BUNDLED, ids=lambda sigma: sigma.kind)
def test_compiled_activations_are_those_of_numpy(sigma, dtype):
    z = np.random.default_rng(0).uniform(-4, 4, 101).astype(dtype)
    unit = activation_unit(sigma, np.dtype(dtype), 2)
    arrays = [z.copy(), np.empty_like(z), np.empty_like(z)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_void_p)(
        unit.native.address
    )
    function(*(one.ctypes.data for one in arrays), len(z), unit.numbers.ctypes.data)
    exact = z.astype(np.float64)
    expected = [np.asarray(sigma.value(exact)), sigma.derivative(exact), sigma.derivative(exact, 2)]
    for ours, theirs in zip(arrays, expected, strict=True):
        assert_allclose(ours, theirs, rtol=40 * np.finfo(dtype).eps, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_derivatives_of_losses_compiled_or_not_are_those_of_autograd(loss):
    rng = np.random.default_rng(1)
    n = 50
    C = 3 if loss.many_outputs or loss.vector_labels else 1
    f = 2 * rng.standard_normal((n, C))
    v = rng.standard_normal((n, C))
    labels = (
        rng.standard_normal((n, C)) if loss.labels == "real" else rng.choice([-1.0, 1.0], (n, C))
    )
    labels = rng.integers(0, C, n) if loss.labels == "classes" else labels
    at = torch.from_numpy(f).requires_grad_()
    values = loss.values(at, torch.from_numpy(labels))
    (slope,) = torch.autograd.grad(0.5 * values.sum(), at, create_graph=True)
    bent = (
        torch.autograd.grad((slope * torch.from_numpy(v)).sum(), at)[0]
        if slope.requires_grad
        else 0 * at
    )
    for h, y in ((f, labels), (at.detach(), torch.from_numpy(labels))):
        assert_allclose(
            0.5 * loss.derivatives(h, y), slope.detach().numpy(), rtol=1e-13, atol=1e-15
        )
    delta = np.empty_like(f)
    out = np.empty_like(f)
    given = labels.astype(np.float64)
    of_loss = loss_unit(loss, f.dtype)
    of_curvature = loss_curvature_unit(loss, f.dtype)
    f_at, y_at, v_at, numbers = (array.ctypes.data for array in (f, given, v, of_loss.numbers))
    summed = of_loss.native.call(f_at, y_at, v_at, delta.ctypes.data, n, C, 0.5, numbers, 0.0)
    assert summed == pytest.approx(float(values.detach().sum()), rel=1e-14)
    assert_allclose(delta, slope.detach().numpy(), rtol=1e-13, atol=1e-15)
    of_curvature.native.call(f_at, y_at, v_at, out.ctypes.data, n, C, 0.5, numbers, 0.0)
    assert_allclose(out, bent.detach().numpy(), rtol=1e-13, atol=1e-15)


def test_what_is_no_formula_says_why():
    """It is trained by autograd then."""
    for value, why in (
        (lambda z: z if z > 0 else 0.1 * z, "cannot branch"),
        (lambda z: [z], "not list"),
        (lambda z: z - np.mean(z), "cannot be made an array"),
    ):
        z = symbol({}, "z", EACH)
        with pytest.raises(NotAFormulaError, match=why):
            formulas.constant(z.table, value(z))


def test_an_update_by_tensors_is_no_formula():
    """Nor is an optimizer that says nothing at all."""

    class Own(Minibatch):
        def update(self, parameters, gradients, **_):
            """Do nothing."""

    assert not Own(lr=0.1, iterations=3).by_formula
