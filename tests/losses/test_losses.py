"""Losses: values against closed forms, derivatives against differences and autograd, no overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dynamics_cli.kinds import State, all_kinds, get_kind
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.losses.squared import HalfMse, Mse
from dynamics_cli.training.backends import Choice, build_stepper, choose
from tests.kinds.cases import X, problem_of

LOSSES: dict[str, Any] = all_kinds("loss")


@pytest.mark.parametrize(("loss", "h", "y", "value"), [
    (Mse(), 3.0, 1.0, 4.0), (HalfMse(), 3.0, 1.0, 2.0), (Logistic(), 0.0, 1.0, np.log(2)),
    (Logistic(), 2.0, -1.0, np.log1p(np.exp(2))), (Exponential(), 2.0, 1.0, np.exp(-2)),
    (Hinge(), 0.25, 1.0, 0.75), (Hinge(), 2.0, 1.0, 0.0),
])  # fmt: skip
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


def test_a_missing_label_is_the_same_as_none() -> None:
    """Of the three labels the one that is missing pulls the network nowhere; sums do not see it at all."""
    scaled = {"kind": "two_layer", "width": 4, "output_scale": 5.0}
    two = {"kind": "points", "x": [X[0], X[2]], "y": [1.0, 1.0]}
    without = problem_of(dataset=two, architecture=scaled, loss={"kind": "mse", "reduction": "sum"})
    masked = problem_of(architecture=scaled, loss={"kind": "mse", "reduction": "sum", "missing": -1.0})
    fast = problem_of(loss={"kind": "mse", "missing": -1.0})
    assert choose([fast]).backend == "compiled"
    ends = [build_stepper([one], Choice("cpu", "torch")) for one in (without, masked)]
    for end in ends:
        end.advance(40)
    np.testing.assert_allclose(*[end.parameters()["hidden_weight"] for end in ends], rtol=1e-12)


@pytest.mark.parametrize("kind", ["mse", "logistic"])
@pytest.mark.parametrize("architecture", [{"kind": "two_layer", "width": 4}, {"kind": "residual", "width": 4}])
def test_a_loss_divided_by_the_scale_squared_is_so_everywhere(kind: str, architecture: dict[str, Any]) -> None:
    """`F = R(alpha h) / alpha^2` (Chizat et al. 2019, Eq. 2): values, steps, measures; noise by `alpha^4`."""
    alpha, scaled = 5.0, {**architecture, "output_scale": 5.0}
    start = {"kind": "unbalanced", "scale": 0.3}
    divided = problem_of(
        architecture=scaled, initialization=start, loss={"kind": kind, "divide_by": "output_scale_squared"}
    )
    slow = {"lr": 0.1 / alpha**2}
    whole = problem_of(architecture=scaled, initialization=start, loss={"kind": kind}, optimizer=slow)
    steppers = [build_stepper([one], choose([one])) for one in (divided, whole)]
    losses = [stepper.advance(40) for stepper in steppers]
    np.testing.assert_allclose(losses[0], losses[1] / alpha**2, rtol=1e-9)
    ends = [stepper.parameters() for stepper in steppers]
    for name in divided.shapes:
        np.testing.assert_allclose(ends[0][name], ends[1][name], rtol=1e-9, err_msg=name)
    powers = {"sharpness": 2, "hessian_trace": 2, "gauss_newton": 2, "gradient_norm": 2, "gradient_noise": 4}
    for name, power in powers.items():
        states = [State(one, ends[0], ends[0].copy, 40) for one in (divided, whole)]
        small, large = (get_kind("measure", name)().measure(state) for state in states)
        assert small * alpha**power == pytest.approx(large, rel=1e-6), name
