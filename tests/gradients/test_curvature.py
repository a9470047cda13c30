"""Lanczos iterations, compiled and of products in Python; states that live side by side."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.gradients.derivatives import ByEngine, derivatives_of
from dynamics_cli.gradients.engine.records import LAYER
from dynamics_cli.gradients.lanczos import largest_eigenvalues, quadrature
from tests.recording.test_instruments import moved, problem_of


@pytest.mark.parametrize("m", [1, 2, 7, 30])
def test_rules_of_symmetric_matrices(m):
    """A start of m eigenvectors is decomposed after m iterations."""
    rng = np.random.default_rng(m)
    values = np.linspace(-1, 2, m)
    vectors = np.linalg.qr(rng.standard_normal((150, m)))[0]
    parts = rng.uniform(0.5, 1, m)
    nodes, weights = quadrature(lambda v: vectors @ (values * (vectors.T @ v)), vectors @ parts, m)
    assert_allclose(nodes, values, atol=1e-13)
    assert_allclose(weights, parts**2 / (parts @ parts), atol=1e-9)


def test_an_error_of_a_product_is_raised_and_nan_stays():
    def fail(v):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        largest_eigenvalues(fail, np.ones(20))
    assert np.isnan(largest_eigenvalues(lambda v: v * np.nan, np.ones(20))[0]).all()


def test_eigenvalues_beyond_the_space_of_the_start():
    values, vectors, *_ = largest_eigenvalues(
        lambda v: np.arange(9.0) * v, np.eye(9)[3] + np.eye(9)[5], 4
    )
    assert_allclose(values, [8, 7, 6, 5], atol=1e-12)
    assert_allclose(np.abs(vectors), np.eye(9)[:, [8, 7, 6, 5]], atol=1e-6)


@pytest.mark.parametrize("k", [1, 2])
def test_an_eigenvalue_that_passes_the_wanted_ones_is_followed(k):
    """From the vectors alone, and a random part of 1 %, iterations end 1e-3 below the largest."""
    P = 1000
    rng = np.random.default_rng(0)
    still = np.concatenate(
        [[2.0] * (k - 1), [1.0, 0.0, 0.5, 0.4], 0.1 * rng.standard_normal(P - k)]
    )[:P]
    start = rng.standard_normal((P, k))
    for rival in np.linspace(0.98, 1.02, 60):
        values = still.copy()
        values[k] = rival
        found = largest_eigenvalues(lambda v, values=values: values * v, start, k)
        assert_allclose(found.values[-1], max(1.0, rival), rtol=1e-9)
        start = found.near + 1e-2 / P**0.5 * rng.standard_normal((P, k))


REPEATED = np.concatenate([[5.0] * 3, [4.0] * 2, [-6.0] * 4, np.linspace(0, 3, 191)])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("start", ["one vector", "eigenvectors", "zeros"])
def test_eigenvalues_that_occur_several_times_are_found_as_often(k, start):
    rng = np.random.default_rng(k)
    vectors = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    A = (vectors * REPEATED) @ vectors.T
    starts = {
        "one vector": rng.standard_normal(200),
        "eigenvectors": vectors[:, 60 : 60 + k] + 1e-3 * rng.standard_normal((200, k)),
        "zeros": np.concatenate([rng.standard_normal((200, 1)), np.zeros((200, k - 1))], 1),
    }
    found, directions, residual, *_ = largest_eigenvalues(lambda v: A @ v, starts[start], k)
    assert residual <= 1e-6
    assert_allclose(found, np.sort(REPEATED)[: -k - 1 : -1], rtol=1e-8)
    assert_allclose(directions.T @ directions, np.eye(k), atol=1e-12)
    assert_allclose(A @ directions, directions * found, atol=1e-5)


@pytest.mark.parametrize("k", [1, 3])
def test_iterations_start_again_until_the_residual_is_reached(k):
    values = np.arange(2000.0)  # eigenvalues close to the largest, relative to the width
    found, _, residual, *_ = largest_eigenvalues(lambda v: values * v, np.ones(2000), k, limit=100)
    assert residual <= 1e-6
    assert_allclose(found, values[: -k - 1 : -1], rtol=1e-9)


@pytest.mark.filterwarnings("default:an eigenvalue is less accurate")
@pytest.mark.parametrize("k", [1, 3])
def test_where_rounding_of_products_limits_the_residual_a_warning_says_so(k):
    values = np.arange(300.0)
    rng = np.random.default_rng(0)

    def product(v):
        return values * v + 0.1 * rng.standard_normal(300)

    with pytest.warns(UserWarning, match="less accurate than asked"):
        found, _, residual, *_ = largest_eigenvalues(product, np.ones(300), k, limit=50)
    assert residual > 1e-6
    assert_allclose(found, values[: -k - 1 : -1], rtol=0.05)


@pytest.mark.parametrize("case", ["tanh", "centred", "softmax", "frozen"])
def test_one_compiled_call_finds_what_products_from_python_do(case):
    derivatives = derivatives_of(moved(problem_of(case)))
    assert isinstance(derivatives, ByEngine)
    start = np.random.default_rng(2).standard_normal(derivatives.size)
    values, vectors, *_ = derivatives.largest(start, 3)
    expected, along, *_ = largest_eigenvalues(derivatives.hessian_product, start, 3)
    assert_allclose(values, expected, rtol=1e-10)
    assert_allclose(np.abs(vectors.T @ along), np.eye(3), atol=1e-6)


def test_states_of_one_problem_do_not_share_what_they_work_on():
    problem = problem_of("tanh")
    v = np.random.default_rng(1).standard_normal(derivatives_of(moved(problem)).size)
    apart = [derivatives_of(moved(problem, seed)).hessian_product(v) for seed in (0, 1)]
    first, second = (derivatives_of(moved(problem, seed)) for seed in (0, 1))
    for _ in range(2):
        assert_array_equal([first.hessian_product(v), second.hessian_product(v)], apart)


def test_inputs_by_columns_are_those_by_rows():
    """Data sets may give arrays in either order of memory."""
    products = []
    for order in ("C", "F"):
        problem = problem_of("tanh")
        problem = replace(
            problem, dataset=replace(problem.dataset, x=np.array(problem.dataset.x, order=order))
        )
        derivatives = derivatives_of(moved(problem))
        products.append(derivatives.hessian_product(np.ones(derivatives.size)))
    assert_array_equal(*products)


def test_a_record_takes_all_of_its_fields_and_no_others():
    for fields in ({"inputs": 1}, {**dict.fromkeys(LAYER.types, 1), "input": 1}):
        with pytest.raises(TypeError, match="Layer: wrong or missing fields"):
            LAYER(**fields)
