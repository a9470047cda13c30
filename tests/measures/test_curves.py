import numpy as np
import pytest

from dynamics_cli.measures.curves import (
    Plateau,
    crossing,
    farthest,
    find_plateaus,
    power,
)

STEPS = np.arange(0, 20001, 10)
# two logistic drops, 1 -> 1/2 at 6 000 and 1/2 -> 0 at 12 000, like Figure 3 of Boursier et al.
# 2022
CURVE = 1.0 - 0.5 / (1 + np.exp(-(STEPS - 6000) / 100)) - 0.5 / (1 + np.exp(-(STEPS - 12000) / 100))


def test_a_crossing_is_interpolated_and_missing_where_the_curve_never_rises_to_the_level():
    times = np.array([0.0, 1.0, 3.0, 4.0])
    assert crossing(times, np.array([0.0, 1.0, 5.0, 0.0]), 2.0) == 1.5
    assert np.isnan(crossing(times, np.array([0.0, 1.0, 1.5, 0.0]), 2.0))
    assert np.isnan(crossing(times, np.array([2.0, 1.0, 3.0, 0.0]), 2.0))


def test_the_farthest_ratio_is_so_by_its_logarithm():
    assert farthest([1.5, 0.6, 1.0]) == 0.6
    assert farthest(np.array([[1.2], [1.1]])) == 1.2
    assert np.isnan(farthest([1.2, np.nan]))
    assert np.isnan(farthest([]))


def test_a_power_is_the_slope_of_the_logarithms():
    assert power([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    assert np.isnan(power([1, 2, 4], [3, 0, 48]))


def test_both_saddles_are_found_with_value_and_extent():
    first, second = find_plateaus(STEPS, CURVE, floor=1e-3)
    assert first.value == pytest.approx(1.0, abs=1e-6)
    assert first.first == 0
    # 1 % below 1 where the drop has done 2 % of its 1/2: at 6000 + 100 ln(0.02 / 0.98)
    assert abs(first.last - (6000 + 100 * np.log(0.02 / 0.98))) < 30
    assert second.value == pytest.approx(0.5, abs=1e-4)
    assert 6300 < second.first < 6600
    assert 11400 < second.last < 11700
    assert second.length == second.last - second.first


def test_an_exponential_decay_has_no_plateau_and_a_constant_is_one():
    assert find_plateaus(STEPS, np.exp(-STEPS / 500)) == []
    assert find_plateaus(STEPS, np.full(len(STEPS), 0.3)) == [Plateau(0.3, 0, 20000)]


def test_plateaus_of_a_noisy_curve_agree_with_brute_force():
    rng = np.random.default_rng(3)
    values = np.repeat([1.0, 0.6, 0.2], 40) * np.exp(rng.normal(0, 0.02, 120))
    found = find_plateaus(np.arange(120), values, relative_tolerance=0.1, minimum_fraction=0.1)
    longest = max(
        (
            (i, j)
            for i in range(120)
            for j in range(i, 120)
            if values[i : j + 1].max() <= 1.1 * values[i : j + 1].min()
        ),
        key=lambda pair: pair[1] - pair[0],
    )
    assert max(found, key=lambda p: p.length).length == longest[1] - longest[0]
    for p in found:
        window = values[p.first : p.last + 1]
        assert window.max() <= 1.1 * window.min()
        assert p.value == np.median(window)
    assert [p.first for p in found] == sorted(p.first for p in found)
