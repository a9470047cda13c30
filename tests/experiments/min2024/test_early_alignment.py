"""Constants, bounds and paths of Min et al. 2024, and the single neuron of its Appendix E."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.min2024.digits import growth
from dynamics_cli._bundled.experiments.min2024.theory import early_alignment
from dynamics_cli._bundled.experiments.min2024.theory.caratheodory import CaratheodoryNeuron
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.theory.sphere_flow import sphere_flow


def two_points(angle):
    return np.array([[1.0, 0.0], [np.sin(angle), np.cos(angle)]]), np.ones(2)


@pytest.mark.parametrize("angle", [0.001, 0.1, 1.0])
def test_constants_of_two_points(angle):
    found = early_alignment.alignment_constants(*two_points(angle), np.empty((0, 2)), np.empty(0))
    mu = np.sin(angle)
    assert found.xi == pytest.approx(mu**2)
    assert found.zeta == pytest.approx((1 + mu) / 2)
    assert found.t1 == pytest.approx(16 * np.log(2) * mu**-2.5, rel=1e-6)


def random_path(rng, n_plus, n_minus):
    path = [(int(rng.integers(n_plus + 1)), int(rng.integers(1, n_minus + 1)))]
    while path[-1] != (n_plus, 0):
        plus, minus = path[-1]
        if minus and rng.random() < 0.5 and plus + minus > 1:
            minus -= int(rng.integers(1, minus + (plus > 0)))
        elif plus < n_plus:
            plus += int(rng.integers(1, n_plus - plus + 1))
        if (plus, minus) != path[-1]:
            path.append((plus, minus))
    return np.array(path)


def test_correspondence_bounds_every_edge_once():
    rng = np.random.default_rng(1)
    largest = early_alignment.maximal_path(5, 4)
    bounds = early_alignment.edge_times(largest, 1.0)
    for _ in range(300):
        path = random_path(rng, 5, 4)
        assert early_alignment.is_path(path, 5, 4)
        partners = early_alignment.correspondence(path, 4)
        assert len(set(partners.tolist())) == len(partners)
        assert (early_alignment.edge_times(path, 1.0) <= bounds[partners]).all()
        assert not early_alignment.is_path(path[::-1], 5, 4) or len(path) == 1
    assert early_alignment.correspondence(largest, 4).tolist() == list(range(9))


def test_directions_turn_under_a_constant_force_as_the_flow_does():
    rng = np.random.default_rng(2)
    x = np.abs(rng.standard_normal((4, 3)))  # all active, and they stay so
    W = np.abs(rng.standard_normal((5, 3)))
    units = W / np.linalg.norm(W, axis=1, keepdims=True)
    flow = sphere_flow(x, np.ones(4), W, np.ones(5), [0.0, 0.3], loss_factor=4)
    forces = np.tile(x.sum(axis=0), (5, 1))
    turned = early_alignment.turned(units, forces, np.full((5, 1), 0.3))
    assert_allclose(turned, flow.directions[1], atol=1e-12)
    still = early_alignment.turned(units, 0 * forces, np.full((5, 1), 0.3))
    assert_array_equal(still, units)


def test_bounds_of_the_lemmas_by_hand():
    x = np.array([[2.0, 0.0], [0.0, 1.0]])
    W = 1e-3 * np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    found = early_alignment.data_constants(x, np.array([1.0, -1.0]), W, scale=1e-3)
    assert found.validity == pytest.approx(np.log(1 / (2 * 1e-3)) / 16)
    assert found.norm == pytest.approx(2e-3 * 9 / 2)
    assert found.output == pytest.approx(2e-3 * 2 * 2 * 9)
    assert found.deviation == pytest.approx(4e-3 * 2 * 2 * 4 * 9)
    assert found.fewest == 1


def test_growth_is_the_rate_of_the_norms():
    times = np.arange(10.0)
    assert growth(times, np.exp(2 * 0.7 * times), until=6.5) == pytest.approx(0.7)
    assert np.isnan(growth(times, np.exp(times), until=1.5))
    assert np.isnan(growth(times, np.exp(times), until=np.nan))


def all_times(plus, minus, n_plus, n_minus):
    """Return the travel time of each path from (k_+, k_-), enumerated one by one."""
    if (plus, minus) == (n_plus, 0):
        return [0.0]
    ends = [(a, b) for a in range(plus, n_plus + 1) for b in range(minus + 1)]
    further = [end for end in ends if end not in {(plus, minus), (0, 0)}]
    return [
        1 / (plus + minus) + rest for a, b in further for rest in all_times(a, b, n_plus, n_minus)
    ]


@pytest.mark.parametrize(("n_plus", "n_minus"), [(1, 1), (2, 3), (3, 2)])
def test_longest_times_are_those_of_all_paths(n_plus, n_minus):
    found = early_alignment.longest_times(n_plus, n_minus)
    for plus in range(n_plus + 1):
        for minus in range(plus == 0, n_minus + 1):
            each = all_times(plus, minus, n_plus, n_minus)
            assert found[plus, minus] == pytest.approx(max(each))
    largest = early_alignment.maximal_path(n_plus, n_minus)
    assert found.max() == pytest.approx(early_alignment.edge_times(largest, 4.0).sum())


@pytest.mark.parametrize("leaves_at", [0.0, 0.7, np.inf])
def test_solutions_that_leave_at_any_time(leaves_at):
    one = CaratheodoryNeuron(np.array([1.0, 0.0]), 1.0)
    coarse = np.linspace(0.0, 1.5, 1501)
    fine = np.linspace(0.0, 1.5, 15001)
    start = np.array([0.0, 1.0, 1.0])
    path = one.leave(start, leaves_at, fine)
    # balanced at first, so v^2 - ||w||^2 stays 0
    assert path[:, 2] ** 2 - np.sum(path[:, :2] ** 2, axis=1) == pytest.approx(
        np.zeros(15001), abs=1e-8
    )
    if np.isfinite(leaves_at):
        small = one.defect(fine, path)
        assert small < 1e-4
        assert one.defect(coarse, one.leave(start, leaves_at, coarse)) == pytest.approx(
            10 * small, rel=0.2
        )
