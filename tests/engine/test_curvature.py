"""Lanczos iterations, compiled and of products in Python; states that live side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynamics_cli.engine.records import LAYER
from dynamics_cli.measures.lanczos import largest_eigenvalues, quadrature
from dynamics_cli.recording.derivatives import ByEngine, derivatives_of
from tests.recording.test_instruments import moved, problem_of


@pytest.mark.parametrize("m", [1, 2, 7, 30])
def test_rules_of_symmetric_matrices(m: int) -> None:
    """A start of m eigenvectors is decomposed after m iterations."""
    rng = np.random.default_rng(m)
    values, vectors = np.linspace(-1, 2, m), np.linalg.qr(rng.standard_normal((150, m)))[0]
    parts = rng.uniform(0.5, 1, m)
    nodes, weights = quadrature(lambda v: vectors @ (values * (vectors.T @ v)), vectors @ parts, m)
    np.testing.assert_allclose(nodes, values, atol=1e-13)
    np.testing.assert_allclose(weights, parts**2 / (parts @ parts), atol=1e-9)


def test_an_error_of_a_product_is_raised_and_nan_stays() -> None:
    def fail(v: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        largest_eigenvalues(fail, np.ones(20))
    assert np.isnan(largest_eigenvalues(lambda v: v * np.nan, np.ones(20))[0]).all()


def test_eigenvalues_beyond_the_space_of_the_start() -> None:
    values, vectors, _ = largest_eigenvalues(
        lambda v: np.arange(9.0) * v, np.eye(9)[3] + np.eye(9)[5], 4
    )
    np.testing.assert_allclose(values, [8, 7, 6, 5], atol=1e-12)
    np.testing.assert_allclose(np.abs(vectors), np.eye(9)[:, [8, 7, 6, 5]], atol=1e-6)


@pytest.mark.parametrize("case", ["tanh", "centred", "softmax", "frozen"])
def test_one_compiled_call_finds_what_products_from_python_do(case: str) -> None:
    derivatives = derivatives_of(moved(problem_of(case)))
    assert isinstance(derivatives, ByEngine)
    start = np.random.default_rng(2).standard_normal(derivatives.size)
    values, vectors = derivatives.largest(start, 3)
    expected, along, _ = largest_eigenvalues(derivatives.hessian_product, start, 3)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(np.abs(vectors.T @ along), np.eye(3), atol=1e-6)


def test_states_of_one_problem_do_not_share_what_they_work_on() -> None:
    problem = problem_of("tanh")
    v = np.random.default_rng(1).standard_normal(derivatives_of(moved(problem)).size)
    apart = [derivatives_of(moved(problem, seed)).hessian_product(v) for seed in (0, 1)]
    first, second = (derivatives_of(moved(problem, seed)) for seed in (0, 1))
    for _ in range(2):
        np.testing.assert_array_equal([first.hessian_product(v), second.hessian_product(v)], apart)


def test_inputs_by_columns_are_those_by_rows() -> None:
    """Data sets may give arrays in either order of memory."""
    products = []
    for order in ("C", "F"):
        problem = problem_of("tanh")
        problem = replace(
            problem, dataset=replace(problem.dataset, x=np.array(problem.dataset.x, order=order))
        )
        derivatives = derivatives_of(moved(problem))
        products.append(derivatives.hessian_product(np.ones(derivatives.size)))
    np.testing.assert_array_equal(*products)


def test_a_record_takes_all_of_its_fields_and_no_others() -> None:
    for fields in ({"inputs": 1}, {**dict.fromkeys(LAYER.types, 1), "input": 1}):
        with pytest.raises(TypeError, match="Layer: wrong or missing fields"):
            LAYER(**fields)
