"""Compiled Lanczos iterations and their tridiagonal eigenproblem against NumPy; states that live side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynamics_cli.engine.curvature import REAL, eigen
from dynamics_cli.engine.native import address_of
from dynamics_cli.engine.records import LAYER
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.recording.derivatives import ByEngine, derivatives_of
from tests.recording.test_instruments import moved, problem_of


def rule_of(alpha: Any, beta: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, ascending, and the first entries of the eigenvectors."""
    m = len(alpha)
    values, scratch, first = np.empty(m), np.empty(m), np.eye(1, m)[0]
    at = [address_of(one) for one in (alpha, beta, values, scratch, first)]
    eigen(REAL).call(*at[:2], m, *at[2:], 1)
    return values, first


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("m", [1, 2, 7, 120])
def test_eigenvalues_of_tridiagonal_matrices(m: int, scale: float) -> None:
    rng = np.random.default_rng(m)
    alpha, beta = scale * rng.standard_normal((2, m))
    beta[m // 2] = 0.0  # two blocks
    values, vectors = np.linalg.eigh(np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1))
    found, first = rule_of(alpha, beta)
    np.testing.assert_allclose(found, values, rtol=0, atol=1e-14 * scale * m)
    np.testing.assert_allclose(first**2, vectors[0] ** 2, atol=1e-11)
    assert np.isnan(rule_of(np.append(alpha, np.nan), np.append(beta, scale))[0]).all()


@pytest.mark.parametrize("case", ["tanh", "NTK scaling, centred", "softmax", "frozen"])
@pytest.mark.parametrize("whole", [True, False])
def test_one_compiled_call_finds_what_products_from_python_do(case: str, whole: bool) -> None:
    derivatives = derivatives_of(moved(problem_of(case)))
    assert isinstance(derivatives, ByEngine)
    start = np.random.default_rng(2).standard_normal(derivatives.size)
    values, vectors = derivatives.largest(start, 3, whole=whole)
    product = derivatives.hessian_product if whole else derivatives.gauss_newton_product
    expected, along, _ = largest_eigenvalues(product, start, 3)
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
        problem = replace(problem, dataset=replace(problem.dataset, x=np.array(problem.dataset.x, order=order)))
        derivatives = derivatives_of(moved(problem))
        products.append(derivatives.hessian_product(np.ones(derivatives.size)))
    np.testing.assert_array_equal(*products)


def test_a_record_takes_all_of_its_fields_and_no_others() -> None:
    for fields in ({"inputs": 1}, {**dict.fromkeys(LAYER.types, 1), "input": 1}):
        with pytest.raises(TypeError, match="Layer: wrong or missing fields"):
            LAYER(**fields)
