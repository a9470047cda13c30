"""The layout of weights in the kernels of two-layer networks."""

from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.training.kernels.layout import aligned_zeros, pack, unpack


@pytest.mark.parametrize("m", [1, 3, 7, 8, 17])
def test_packing_is_undone(m):
    rng = np.random.default_rng(m)
    hidden, output = rng.standard_normal((3, m, 2)), rng.standard_normal((3, m))
    W, a = pack(hidden, output)
    assert W.ctypes.data % 64 == a.ctypes.data % 64 == 0
    assert W.shape[2] == (m if m < 8 else -(-m // 16) * 16)
    back = unpack(W, a, m)
    np.testing.assert_array_equal(back[0], hidden)
    np.testing.assert_array_equal(back[1], output)


def test_aligned_zeros_are_zeros():
    zeros = aligned_zeros((3, 5), np.dtype("float32"))
    assert (zeros.shape, zeros.dtype, zeros.any()) == ((3, 5), np.dtype("float32"), False)
