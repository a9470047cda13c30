"""Losses: values against closed forms, derivatives against differences and autograd, no overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.config.registry import all_kinds
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.losses.squared import HalfMse, Mse

LOSSES: dict[str, Any] = all_kinds("loss")
SCALAR = [name for name in LOSSES if name != "cross_entropy"]


def labels_for(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n) if LOSSES[name].labels == "real" else rng.choice([-1.0, 1.0], n)


@pytest.mark.parametrize(
    ("loss", "h", "y", "value"),
    [
        (Mse(), 3.0, 1.0, 4.0),
        (HalfMse(), 3.0, 1.0, 2.0),
        (Logistic(), 0.0, 1.0, np.log(2)),
        (Logistic(), 2.0, -1.0, np.log1p(np.exp(2))),
        (Exponential(), 2.0, 1.0, np.exp(-2)),
        (Hinge(), 0.25, 1.0, 0.75),
        (Hinge(), 2.0, 1.0, 0.0),
    ],
)
def test_values(loss, h, y, value):
    assert loss.values(np.array([h]), np.array([y]))[0] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", SCALAR)
def test_derivatives_are_those_of_autograd(name):
    rng = np.random.default_rng(0)
    loss = LOSSES[name]()
    h = 2 * rng.standard_normal(50)
    y = labels_for(name, 50, rng)
    tensor = torch.from_numpy(h).requires_grad_()
    (expected,) = torch.autograd.grad(loss.values(tensor, torch.from_numpy(y)).sum(), tensor)
    np.testing.assert_allclose(loss.derivatives(h, y), expected.numpy(), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(loss.derivatives(tensor.detach(), torch.from_numpy(y)), expected, rtol=1e-13, atol=1e-15)


def test_cross_entropy_is_that_of_torch():
    rng = np.random.default_rng(1)
    h, y = 5 * rng.standard_normal((7, 4)), rng.integers(0, 4, 7)
    tensor = torch.from_numpy(h).requires_grad_()
    reference = torch.nn.functional.cross_entropy(tensor, torch.from_numpy(y), reduction="none")
    np.testing.assert_allclose(CrossEntropy().values(h, y), reference.detach(), rtol=1e-13)
    (expected,) = torch.autograd.grad(reference.sum(), tensor)
    np.testing.assert_allclose(CrossEntropy().derivatives(h, y), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(CrossEntropy().predictions(h), h.argmax(1))


@pytest.mark.parametrize("xp", ["numpy", "torch"])
def test_logistic_does_not_overflow(xp):
    z = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    h = z if xp == "numpy" else torch.from_numpy(z)
    y = np.ones(5) if xp == "numpy" else torch.ones(5, dtype=torch.float64)
    np.testing.assert_allclose(Logistic().values(h, y), [1e4, 800, np.log(2), 0, 0], atol=1e-300)
    np.testing.assert_allclose(Logistic().derivatives(h, y), [-1, -1, -0.5, 0, 0], atol=1e-300)


@given(st.floats(-30, 30), st.sampled_from([-1.0, 1.0]))
def test_logistic_tends_to_exponential_for_large_margins(h, y):
    z = y * h
    value = Logistic().values(np.array([h]), np.array([y]))[0]
    assert 0 <= value <= Exponential().values(np.array([h]), np.array([y]))[0] * (1 + 1e-12)
    if z > 15:
        assert value == pytest.approx(np.exp(-z), rel=1e-6)


@pytest.mark.parametrize("name", SCALAR)
def test_reduction(name):
    rng = np.random.default_rng(2)
    h, y = rng.standard_normal((3, 5)), labels_for(name, 5, rng)
    mean, total = LOSSES[name](reduction="mean"), LOSSES[name](reduction="sum")
    assert mean.total(h, y).shape == (3,)
    np.testing.assert_allclose(mean.total(h, y) * 5, total.total(h, y))
    assert (mean.sample_weight(5), total.sample_weight(5)) == (0.2, 1.0)


def test_regression_losses_do_not_classify():
    with pytest.raises(TypeError, match="Mse does not classify"):
        Mse().predictions(np.zeros(2))
    np.testing.assert_array_equal(Hinge().predictions(np.array([-2.0, 0.5])), [-1, 1])
