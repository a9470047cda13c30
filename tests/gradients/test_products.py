"""Products of tiles: right for every size, with bits that do not depend on how rows are cut."""

from itertools import product as pairs

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.gradients.engine.products import dots, product


def multiplied(A, B, start=None, *, turned=False):
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
    rows = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 100
    sizes = rows, (1, 6, 40), (1, 2, 7, 8, 9, 15, 17, 24, 31, 33, 64, 127)
    for n, K, m in pairs(*sizes):
        A, B, row = (rng.standard_normal(shape).astype(dtype) for shape in ((n, K), (K, m), (m,)))
        exact = A.astype(np.float64) @ B.astype(np.float64)
        bound = 2 * K * eps * (abs(A.astype(np.float64)) @ abs(B.astype(np.float64)) + abs(row))
        assert np.all(abs(multiplied(A, B) - exact) <= bound)
        assert np.all(abs(multiplied(A, B, row) - exact - row) <= bound)
        assert_array_equal(multiplied(np.ascontiguousarray(A.T), B, turned=True), multiplied(A, B))


@pytest.mark.parametrize("m", [77, 300])  # the second is so large that parts of B are copied
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_how_rows_and_columns_are_cut(dtype, m):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 80)).astype(dtype)
    B = rng.standard_normal((80, m)).astype(dtype)
    row = rng.standard_normal(m).astype(dtype)
    for start in (None, row):
        whole = multiplied(A, B, start)
        for first, last in ((0, 1), (3, 10), (50, 199)):
            part = np.ascontiguousarray(A[first:last])
            assert_array_equal(multiplied(part, B, start), whole[first:last])
            some = slice(m - 7 * last % m, m - 7 * last % m + 9)
            added = None if start is None else start[some]
            columns = np.ascontiguousarray(B[:, some])
            assert_array_equal(multiplied(A, columns, added), whole[:, some])


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
