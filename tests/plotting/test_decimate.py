import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynamics_cli.plotting.time_axis import decimate

VALUES = hnp.arrays(
    np.float64,
    st.integers(1, 400),
    elements=st.floats(-1e6, 1e6) | st.just(np.nan) | st.just(np.inf),
)


@settings(deadline=None, max_examples=150)
@given(y=VALUES, columns=st.integers(1, 20), seed=st.integers(0, 99))
def test_extremes_endpoints_and_gaps_of_every_column_survive(y, columns, seed):
    x = np.sort(np.random.default_rng(seed).integers(0, 500, len(y))).astype(float)
    kept_x, kept_y = decimate(x, y, columns=columns)
    assert (np.diff(kept_x) >= 0).all()
    assert len(kept_x) <= 12 * columns
    assert kept_x[0] == x[0]
    assert kept_x[-1] == x[-1]
    assert np.array_equal(kept_y[[0, -1]], y[[0, -1]], equal_nan=True)
    finite = y[np.isfinite(y)]
    kept_finite = kept_y[np.isfinite(kept_y)]
    assert len(finite) == 0 or (finite.min(), finite.max()) == (
        kept_finite.min(),
        kept_finite.max(),
    )
    assert np.isfinite(y).all() == np.isfinite(kept_y).all()
    pairs = set(zip(x.tolist(), np.nan_to_num(y, nan=7e7).tolist(), strict=True))
    assert pairs >= set(zip(kept_x.tolist(), np.nan_to_num(kept_y, nan=7e7).tolist(), strict=True))


def test_log_columns_keep_the_start():
    x = np.arange(100_000.0)
    kept_x, _ = decimate(x, x % 3, columns=200)
    assert set(range(2, 10)) <= set(kept_x.tolist())
    assert len(kept_x) <= 2400


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0, 1], [0], "same length"),
        ([1, 0], [0, 0], "must not decrease"),
        ([0, np.nan], [0, 0], "must be finite"),
    ],
)
def test_bad_curves_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        decimate(x, y)
