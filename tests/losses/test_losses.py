"""Losses: values against closed forms, derivatives against differences and autograd, no
overflow.
"""

import numpy as np
import pytest
import torch
from mpmath import mp
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.formulas.native import address_of
from dynamics_cli.formulas.units import loss_curvature_unit
from dynamics_cli.kinds import all_kinds
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.losses.squared import HalfMse, Mse

LOSSES = all_kinds("loss")


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
    h = 5 * rng.standard_normal((7, 4))
    y = rng.integers(0, 4, 7)
    tensor = torch.from_numpy(h).requires_grad_()
    reference = torch.nn.functional.cross_entropy(tensor, torch.from_numpy(y), reduction="none")
    assert_allclose(CrossEntropy().values(h, y), reference.detach(), rtol=1e-13)
    (expected,) = torch.autograd.grad(reference.sum(), tensor)
    assert_allclose(CrossEntropy().derivatives(h, y), expected, rtol=1e-12, atol=1e-15)
    assert_array_equal(CrossEntropy().predictions(h), h.argmax(1))


@pytest.mark.parametrize("xp", ["numpy", "torch"])
def test_logistic_does_not_overflow(xp):
    z = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    h = z if xp == "numpy" else torch.from_numpy(z)
    y = np.ones(5) if xp == "numpy" else torch.ones(5, dtype=torch.float64)
    assert_allclose(Logistic().values(h, y), [1e4, 800, np.log(2), 0, 0], atol=1e-300)
    assert_allclose(Logistic().derivatives(h, y), [-1, -1, -0.5, 0, 0], atol=1e-300)


MARGINS = [0.0, 0.5, 20, 40, 60, 87, 100, 300, 500, 709, 720, 1e4, 1e6]


def exact_bend(kind, z, v):
    """Return the second derivative along `v` at the margin `z`, of classes at the outputs `(z,
    0, 0)`, class 0.
    """
    z = mp.mpf(z)
    v = [mp.mpf(x) for x in v]
    if kind == "cross_entropy":
        shares = [1, mp.exp(-z), mp.exp(-z)] if z > 0 else [mp.exp(z), 1, 1]
        p = [share / sum(shares) for share in shares]
        mean = mp.fdot(p, v)
        return [share * (x - mean) for share, x in zip(p, v, strict=True)]
    bends = {
        "mse": mp.mpf(2),
        "half_mse": mp.mpf(1),
        "hinge": mp.mpf(0),
        "logistic": 1 / (2 + mp.exp(z) + mp.exp(-z)),
        "exponential": mp.exp(-z),
    }
    return [bends[kind] * x for x in v]


def bend_by(way, loss, h, y, v):
    """Return second derivatives along `v` (n, C) by torch's double backward pass, or by the
    compiled unit.
    """
    if way == "compiled":
        unit = loss_curvature_unit(loss, v.dtype)
        out = np.zeros_like(v)
        arrays = [np.array(array, v.dtype) for array in (h, y, v)]
        addresses = [address_of(array) for array in (*arrays, out)]
        unit.native.call(*addresses, *v.shape, 1.0, address_of(unit.numbers), 0.0)
        return out
    at = torch.from_numpy(h)
    along = torch.from_numpy(v)
    at = (at if loss.many_outputs else at[:, 0]).requires_grad_()
    labels = torch.from_numpy(y).to(torch.long if loss.many_outputs else at.dtype)
    (slope,) = torch.autograd.grad(loss.values(at, labels).sum(), at, create_graph=True)
    if not slope.requires_grad:
        return np.zeros_like(v)
    (bend,) = torch.autograd.grad((slope * along.view_as(slope)).sum(), at)
    return bend.numpy().reshape(v.shape)


@pytest.mark.parametrize("way", ["torch", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", LOSSES)
def test_second_derivatives_hold_at_every_margin(kind, dtype, way):
    """Up to a rounding error; at right classifications, where the numbers are small, to a
    relative one.
    """
    loss = LOSSES[kind]()
    C = 3 if LOSSES[kind].many_outputs else 1
    z = np.array([*MARGINS, *(-margin for margin in MARGINS)], dtype)
    h = np.zeros((len(z), C), dtype)
    h[:, 0] = z
    y = np.zeros(len(z)) if C == 3 else np.ones(len(z))
    v = np.random.default_rng(0).uniform(0.5, 1.5, h.shape).astype(dtype)
    info = np.finfo(dtype)
    with np.errstate(over="ignore"), mp.workdps(40):
        rows = [
            exact_bend(kind, margin, along)
            for margin, along in zip(z.tolist(), v.tolist(), strict=True)
        ]
        exact = np.array([[float(min(x, mp.mpf("1e400"))) for x in row] for row in rows], dtype)
        actual = bend_by(way, loss, h, y, v)
    for right in (True, False):
        small = float(info.tiny if right and C == 1 else 10 * info.eps)
        assert_allclose(
            actual[(z > 0) == right],
            exact[(z > 0) == right],
            rtol=300 * float(info.eps),
            atol=small,
        )
