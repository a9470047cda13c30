import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from dynamics_cli.plotting.panels import inputs
from dynamics_cli.plotting.scene import tint
from dynamics_cli.plotting.style import PALETTE

VALUES = st.lists(
    st.floats(-1e8, 1e8).filter(lambda v: v == 0 or abs(v) > 1e-9) | st.just(float("nan")),
    max_size=5,
)


@given(left=VALUES, right=VALUES)
def test_common_zero_contains_all_values_and_levels_the_zeros(left, right):
    limits = inputs.common_zero(left, right)
    shares = [-low / (high - low) for low, high in limits]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    for values, (low, high) in zip((left, right), limits, strict=True):
        assert low < 0 < high
        assert all(low < v < high for v in values if np.isfinite(v))


def test_tint_and_window():
    assert tint("#000000", 1.0) == (0, 0, 0)
    assert tint(PALETTE.positive, 0.0) == to_rgb("white")
    x0, x1, y0, y1 = inputs.data_window([[1.0, 0.0], [3.0, 1.0]])
    assert x1 - x0 == pytest.approx(y1 - y0)
    assert x0 < 0
    assert x1 > 3
