"""Products of tiles: right for every size, with bits that do not depend on how rows are cut."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.gradients.engine.products import dots, product


def multiplied(A: Any, B: Any, start: Any = None, *, turned: bool = False) -> Any:
    """Return A B, plus `start` where there is one; with `turned` A^T B."""
    n, K = A.shape[::-1] if turned else A.shape
    m = B.shape[1]
    C = np.full((n, m), np.nan if start is None else start, A.dtype)
    unit = product(A.dtype).call
    steps = (1, n) if turned else (K, 1)
    unit(A.ctypes.data, *steps, B.ctypes.data, C.ctypes.data, n, K, m, int(start is not None))
    return C


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_every_size(dtype):
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    sizes = (1, 5, 6, 7, 100), (1, 40), (1, 2, 7, 8, 9, 15, 17, 33, 64, 127)
    for n, K, m in pairs(*sizes):
        A, B, row = (rng.standard_normal(shape).astype(dtype) for shape in ((n, K), (K, m), (m,)))
        exact = A.astype(np.float64) @ B.astype(np.float64)
        bound = 2 * K * eps * (abs(A.astype(np.float64)) @ abs(B.astype(np.float64)) + abs(row))
        assert np.all(abs(multiplied(A, B) - exact) <= bound)
        assert np.all(abs(multiplied(A, B, row) - exact - row) <= bound)
        assert_array_equal(multiplied(np.ascontiguousarray(A.T), B, turned=True), multiplied(A, B))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_how_rows_and_columns_are_cut(dtype):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 30)).astype(dtype)
    B = rng.standard_normal((30, 77)).astype(dtype)
    whole = multiplied(A, B)
    for first, last in ((0, 1), (3, 10), (50, 199)):
        assert_array_equal(multiplied(np.ascontiguousarray(A[first:last]), B), whole[first:last])
        columns = np.ascontiguousarray(B[:, first % 77 : first % 77 + 9])
        assert_array_equal(multiplied(A, columns), whole[:, first % 77 : first % 77 + 9])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dot_products_of_every_size(dtype):
    rng = np.random.default_rng(2)
    eps = np.finfo(dtype).eps
    unit = dots(np.dtype(dtype)).call
    for n, K in pairs((1, 5, 6, 7, 20), (1, 7, 8, 16, 17, 100, 1000)):
        A = rng.standard_normal((n, K)).astype(dtype)
        b = rng.standard_normal(K).astype(dtype)
        found = np.full(n + 1, 7, dtype)
        unit(A.ctypes.data, b.ctypes.data, n, K, found.ctypes.data)
        exact = A.astype(np.float64) @ b.astype(np.float64)
        assert np.all(abs(found[:n] - exact) <= 2 * K * eps * (abs(A) @ abs(b)))
        assert found[n] == 7
