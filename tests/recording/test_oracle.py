"""Curvature against curvlinops-for-pytorch (Dangel et al.), which knows nothing of this program,
in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from curvlinops import GGNLinearOperator, HessianLinearOperator, hutchinson_trace
from curvlinops.papyan2020traces.spectrum import fast_lanczos
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from dynamics_cli.gradients.derivatives import ByAutograd, ByEngine, derivatives_of
from dynamics_cli.gradients.lanczos import quadrature
from dynamics_cli.kinds import State, get_kind
from dynamics_cli.measures.spectra import mean_density
from dynamics_cli.recording import kernel
from tests.cases import problem_of

LOSSES = {
    "mse": (nn.MSELoss(), 3.0),
    "cross_entropy": (nn.CrossEntropyLoss(), 1.0),
}  # theirs is a mean over outputs too


@pytest.fixture(scope="module", params=LOSSES)
def both(request):
    """A state, and its Hessian and Gauss-Newton matrix as operators of a network that is written
    down here.
    """
    kind = request.param
    dataset = {
        "kind": "linear_map",
        "inputs": 4,
        "outputs": 3,
        "singular_values": [2.0, 1.0],
        "n": 9,
        "noise": 0.5,
    }
    rng = np.random.default_rng(0)
    classes = {
        "kind": "points",
        "x": rng.standard_normal((9, 4)).tolist(),
        "y": [float(k % 3) for k in range(9)],
    }
    problem = problem_of(
        dataset=dataset if kind == "mse" else classes,
        architecture={
            "kind": "fully_connected",
            "widths": [6, 5],
            "activation": "tanh",
            "outputs": 3,
        },
        initialization={"kind": "default_scaled", "factor": 2.0},
        loss={"kind": kind},
    )
    start = problem.initial_parameters()
    model = nn.Sequential(
        nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)
    ).double()
    with torch.no_grad():
        for layer, module in enumerate(module for module in model if isinstance(module, nn.Linear)):
            module.weight.copy_(torch.from_numpy(start[f"weight_{layer + 1}"]))
            module.bias.copy_(torch.from_numpy(start[f"bias_{layer + 1}"]))
    loss, factor = LOSSES[kind]
    y = problem.dataset.y if kind == "mse" else problem.dataset.y.astype(np.int64)
    data = [(torch.from_numpy(problem.dataset.x), torch.from_numpy(y))]
    weights = list(model.parameters())
    operators = [
        cls(model, loss, weights, data) for cls in (HessianLinearOperator, GGNLinearOperator)
    ]
    return State(problem, start, lambda: start, 0), *operators, factor


def dense(operator: Any) -> np.ndarray:
    return (operator @ torch.eye(operator.shape[1], dtype=torch.float64)).numpy()


def test_eigenvalues_and_traces(both):
    state, hessian, ggn, factor = both
    H = factor * dense(hessian)
    G = factor * dense(ggn)
    values = np.linalg.eigvalsh(H)[::-1]

    def measured(kind, **settings):
        state.memory.clear()
        return get_kind("measure", kind)(**settings).measure(state)

    assert_allclose(measured("sharpness", top=4), values[:4], rtol=1e-6)
    assert_allclose(measured("hessian_spectrum"), values, atol=1e-10)
    assert measured("hessian_trace") == pytest.approx(np.trace(H), rel=1e-9)
    torch.manual_seed(0)
    theirs = factor * float(hutchinson_trace(hessian, 50))
    ours = measured("hessian_trace", probes=2000)
    assert ours == pytest.approx(np.trace(H), rel=0.05)
    assert theirs == pytest.approx(ours, rel=0.3)
    assert measured("gauss_newton") == pytest.approx(np.linalg.eigvalsh(G)[-1], rel=1e-8)


@pytest.mark.parametrize("kind", [ByEngine, ByAutograd])
def test_products_with_both_matrices(both, kind):
    state, hessian, ggn, factor = both
    own = derivatives_of(state)
    assert isinstance(own, ByEngine)
    mine = own if kind is ByEngine else ByAutograd(state)
    v = np.random.default_rng(1).standard_normal(hessian.shape[1])
    for product, operator in ((mine.hessian_product, hessian), (mine.gauss_newton_product, ggn)):
        assert_array_equal(product(np.stack([v, -v], 1)[:, 0]), product(v))  # a column of a matrix
        assert_allclose(product(v), factor * (operator @ torch.from_numpy(v)).numpy(), atol=1e-10)


def test_the_quadrature_of_a_start_and_the_density_of_all(
    both,
):
    state, hessian, _, factor = both
    product = derivatives_of(state).hessian_product
    P = hessian.shape[1]
    torch.manual_seed(3)
    start = torch.randn(P, dtype=torch.float64).numpy()
    torch.manual_seed(3)
    nodes, vectors = fast_lanczos(hessian, 8)
    rule = quadrature(product, start, 8)
    assert_allclose(rule, [factor * nodes.numpy(), vectors.numpy()[0] ** 2], rtol=1e-6, atol=1e-9)

    H = factor * dense(hessian)
    v = start / np.linalg.norm(start)
    for power in range(16):  # a Gauss rule of 8 nodes is exact up to degree 15
        moment = v @ np.linalg.matrix_power(H, power) @ v
        assert np.sum(rule[1] * rule[0] ** power) == pytest.approx(moment, rel=1e-8)

    values = np.linalg.eigvalsh(H)
    at = np.linspace(values[0], values[-1], 40)
    width = 0.05 * np.ptp(values)
    exact = (
        np.exp(-(((at[:, None] - values) / width) ** 2) / 2).mean(1) / width / np.sqrt(2 * np.pi)
    )
    units = np.stack(
        [quadrature(product, one, P) for one in np.eye(P)]
    )  # the mean over a basis is the whole trace
    assert_allclose(mean_density(units, at, width), exact, rtol=1e-6)
    found = get_kind("measure", "spectral_density")(probes=200, steps=30).measure(state)
    assert found.shape == (200, 2, 30)
    assert_allclose(np.nansum(found[:, 1], axis=1), 1.0, rtol=1e-12)
    assert np.abs(mean_density(found, at, width) - exact).max() < 0.08 * exact.max()
    again = get_kind("measure", "spectral_density")(probes=2, steps=30)
    assert_array_equal(again.measure(state), again.measure(state))


def test_eigenvalues_of_the_last_layer_occur_as_often_as_there_are_outputs(
    both,
):
    """Of the squared error each occurs three times; the first k do not depend on how many are
    asked for.
    """
    state, hessian, _, factor = both
    last = slice(-18, None)  # weight and bias of three outputs and five inputs
    exact = np.linalg.eigvalsh(factor * dense(hessian)[last, last])[::-1]
    if factor == 3.0:
        assert_allclose(exact[:3], exact[0], rtol=1e-12)
    for top in (1, 2, 3, 4, 7, 18):
        state.memory.clear()
        sharpness = get_kind("measure", "sharpness")(top=top, blocks={"last": "*_3"})
        for _ in range(2):  # from random vectors, then from those of the state before
            found = np.ravel(sharpness.measure(state))
            assert_allclose(found, exact[:top], rtol=1e-6, atol=1e-9)


def test_eigenvalues_of_a_kernel_that_is_not_formed(both, monkeypatch):
    state = both[0]
    exact = np.linalg.eigvalsh(derivatives_of(state).kernel(9))[::-1]
    monkeypatch.setattr(kernel, "KERNEL", 5)
    found = get_kind("measure", "kernel_eigenvalues")(top=30).measure(state)
    assert_allclose(found, [*exact, *[np.nan] * 3], rtol=1e-6, atol=1e-8)
