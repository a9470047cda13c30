"""Losses: values against closed forms, derivatives against differences and autograd, no overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli.kinds import all_kinds
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.losses.squared import HalfMse, Mse

LOSSES: dict[str, Any] = all_kinds("loss")


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
