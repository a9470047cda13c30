from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.analysis.curves import time_scale, value_scale

T = np.arange(1000)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1.0, 0.5, 0.06], "linear"),
        ([1.0, 0.5, 0.04], "log"),
        ([1.0, 1e-9, 0.0], "log"),
        ([1.0, 0.9, 0.0], "linear"),
        ([1.0, np.nan, 1e-4, np.inf], "log"),
        ([1.0, -1e-3], "linear"),
        ([0.0, 0.0], "linear"),
        ([np.nan], "linear"),
        ([], "linear"),
    ],
)
def test_a_log_axis_needs_positive_values_over_a_factor_of_twenty(values: list[float], scale: str) -> None:
    assert value_scale(values) == scale


def test_what_is_over_at_once_is_drawn_over_log_time() -> None:
    assert time_scale(T, np.exp(-T / 300)) == "linear"
    assert time_scale(T, 1 + np.exp(-T / 5)) == "log"
    assert time_scale(T, np.exp(-T / 5)) == "linear"  # its logarithm falls at a steady pace
    assert time_scale(T, np.ones(1000)) == "linear"


def test_curves_of_one_array_count_by_their_variation_and_arrays_alike() -> None:
    early, late = 1 + np.exp(-T / 5), 10 + 0.05 * T / 1000
    assert time_scale(T, np.stack([early, late], axis=1)) == "log"
    assert time_scale(T, early, late, late) == "linear"
    assert time_scale(T, early, np.ones(1000)) == "log"


def test_few_or_short_records_are_linear() -> None:
    assert time_scale(T[:7] * 1000, 1 + np.exp(-T[:7])) == "linear"
    assert time_scale(T[:100], 1 + np.exp(-T[:100])) == "linear"


def test_gaps_do_not_count() -> None:
    values = 1 + np.exp(-T / 5)
    values[500] = np.nan
    values[700] = np.inf
    assert time_scale(T, values) == "log"
