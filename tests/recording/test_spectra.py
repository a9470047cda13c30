"""Lanczos iterations and their quadrature against dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.gradients.derivatives import ByEngine, Derivatives, derivatives_of
from dynamics_cli.gradients.lanczos import quadrature
from dynamics_cli.measures.spectra import mean_density
from dynamics_cli.recording import kernel
from tests.dense import dense_of
from tests.recording.test_instruments import instrument, moved, problem_of


def counting(monkeypatch):
    """Return a list that grows by each product with the Hessian."""
    counted = []
    for made in (Derivatives, ByEngine):
        product = made.hessian_product

        def counts(self, v, product=product):
            counted.append(self)
            return product(self, v)

        monkeypatch.setattr(made, "hessian_product", counts)
    return counted


BOTH = pytest.mark.parametrize("case", ["linear vectors", "softmax"])


def test_the_quadrature_of_a_start_and_the_density_of_all():
    state = moved(problem_of("softmax"))
    H = dense_of(state).H
    product = derivatives_of(state).hessian_product
    start = np.random.default_rng(3).standard_normal(len(H))
    nodes, weights = quadrature(product, start, 8)
    v = start / np.linalg.norm(start)
    for power in range(16):  # a Gauss rule of 8 nodes is exact up to degree 15
        moment = v @ np.linalg.matrix_power(H, power) @ v
        assert np.sum(weights * nodes**power) == pytest.approx(moment, rel=1e-8)

    values = np.linalg.eigvalsh(H)
    at = np.linspace(values[0], values[-1], 40)
    width = 0.05 * np.ptp(values)
    bells = np.exp(-(((at[:, None] - values) / width) ** 2) / 2)
    exact = bells.mean(1) / width / np.sqrt(2 * np.pi)
    # the mean over a basis is the whole trace
    units = np.stack([quadrature(product, one, len(H)) for one in np.eye(len(H))])
    assert_allclose(mean_density(units, at, width), exact, rtol=1e-6)
    found = instrument("spectral_density", probes=200, steps=30).measure(state)
    assert found.shape == (200, 2, 30)
    assert_allclose(np.nansum(found[:, 1], axis=1), 1.0, rtol=1e-12)
    assert np.abs(mean_density(found, at, width) - exact).max() < 0.08 * exact.max()
    again = instrument("spectral_density", probes=2, steps=30)
    assert_array_equal(again.measure(state), again.measure(state))


@BOTH
def test_eigenvalues_of_the_last_layer_occur_as_often_as_there_are_outputs(case):
    """Of the squared error each occurs three times; the first k do not depend on how many are
    asked for.
    """
    state = moved(problem_of(case))
    dense = dense_of(state)
    last = slice(-sum(dense.sizes[2:]), None)
    exact = np.linalg.eigvalsh(dense.H[last, last])[::-1]
    if case == "linear vectors":
        assert_allclose(exact[:3], exact[0], rtol=1e-12)
    for top in (1, 2, 3, 4, 7, len(exact)):
        state.memory.clear()
        sharpness = instrument("sharpness", top=top, blocks={"last": "*_2"})
        for _ in range(2):  # from random vectors, then from those of the state before
            found = np.ravel(sharpness.measure(state))
            assert_allclose(found, exact[:top], rtol=1e-6, atol=1e-9)


@BOTH
def test_eigenvalues_of_a_kernel_that_is_not_formed(case, monkeypatch):
    state = moved(problem_of(case))
    J = dense_of(state).J
    exact = np.linalg.eigvalsh(J @ J.T)[::-1]
    monkeypatch.setattr(kernel, "KERNEL", 5)
    found = instrument("kernel_eigenvalues", top=len(J) + 3).measure(state)
    assert_allclose(found, [*exact, *[np.nan] * 3], rtol=1e-6, atol=1e-8)


@BOTH
@pytest.mark.parametrize("kind", ["sharpness", "smallest_eigenvalue"])
@pytest.mark.parametrize("top", [1, 2])
def test_a_coarse_tolerance_takes_fewer_products_and_keeps_its_bound(case, kind, top, monkeypatch):
    state = moved(problem_of(case))
    exact = np.linalg.eigvalsh(dense_of(state).H)
    wanted = exact[-1] if kind == "sharpness" else exact[0]
    size = np.abs(exact).max()
    counted = counting(monkeypatch)
    products = []
    errors = []
    for tolerance in (None, 1e-4, 1e-2):
        state.memory.clear()
        counted.clear()
        found = instrument(kind, top=top, tolerance=tolerance).measure(state)
        errors.append(abs(np.ravel(found)[0] - wanted) / size)
        assert errors[-1] <= (tolerance or 1e-6)
        products.append(len(counted))
    if products[0]:
        assert products[0] > products[2]
    else:  # a compiled call multiplies by itself
        assert errors[0] < errors[2]
