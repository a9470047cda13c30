"""The theory and the measures against the runs of the loop that Boursier et al. released (skipped where absent)."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.growth import (
    aligned_mass,
    growth_loss,
    intermediate_saddle,
    logistic_growth,
)

from dynamics_cli.measures.clusters import cluster_directions, distinct_kinks, significant
from dynamics_cli.measures.curves import escape_iteration, find_plateaus, orders_fallen, plateau_at
from dynamics_cli.measures.neurons import angle_of, balancedness, norms, parameter_norm_squared, relative_movement
from dynamics_cli.measures.spectra import explained_variance
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.theory.ntk import ntk_regression
from experiments.boursier2022.theory.alignment import S_minus_1, S_plus_1, labels_differ, orthogonality
from experiments.boursier2022.theory.minimum_norm import minimum_norm_value

LR = 1e-3


def start_and_end(run):
    return (run["hidden_weight_0"], run["output_weight_0"]), (run["hidden_weight_T"], run["output_weight_T"])


@pytest.mark.parametrize(
    ("name", "tolerance"),
    # the released loop computes the norms of high_dim in float32, where their squares (5e-43) are denormal: 2 % off
    [("orthogonal", 1e-5), ("five_points", 1e-5), ("five_points_large", 1e-5), ("high_dim", 0.025)],
)
def test_runs_start_balanced_and_stay_so(reference, name, tolerance):
    (W_0, a_0), (W, a) = start_and_end(reference(name))
    np.testing.assert_allclose(norms(W_0), np.abs(a_0), rtol=tolerance)
    drift = balancedness(W, a) - balancedness(W_0, a_0)  # 0 along the flow (Lemma 1), of the order of the step here
    assert np.abs(drift).max() < 2e-3 * max(1.0, np.max(a**2))


def test_figures_2_and_3(reference):
    run = reference("orthogonal")
    x, y, steps, losses = run["x"], run["y"], run["iteration"], run["loss"]
    (W_0, a_0), (W, a) = start_and_end(run)
    assert orthogonality(x) < 1e-6
    assert labels_differ(x, y)
    assert S_plus_1(x, y, W_0, a_0).any()
    assert S_minus_1(x, y, W_0, a_0).any()
    assert parameter_norm_squared(W, a) == pytest.approx(minimum_norm_value(x, y), rel=1e-4)
    assert minimum_norm_value(x, y) == pytest.approx(2.683282, abs=5e-7)
    np.testing.assert_allclose(distinct_kinks(W), [-0.5, 2.0], atol=1e-3)
    groups = cluster_directions(W, signs=a)
    np.testing.assert_allclose(sorted(angle_of(groups.directions)), [26.565, 116.565], atol=0.01)
    assert escape_iteration(steps, losses, 1.0) == pytest.approx(5500, rel=0.1)
    assert escape_iteration(steps, losses, 0.5) == pytest.approx(11500, rel=0.1)
    plateau = plateau_at(steps, losses, 8000, tolerance=5e-4)
    assert plateau.value == pytest.approx(intermediate_saddle(x, y, loss_factor=2.0).loss, abs=5e-4)
    assert plateau.first <= 7000
    assert plateau.last >= 9000


def test_the_whole_loss_curve_of_figure_3_from_the_initial_weights(reference):
    """Closed forms only: Eq. 10 for the alignment, then two logistic growths. Error of order lambda and the step."""
    run = reference("orthogonal")
    x, y, W, a = run["x"], run["y"], run["hidden_weight_0"], run["output_weight_0"]
    t = LR * run["iteration"]
    u = [logistic_growth(t, aligned_mass(x, y, W, a, s), x, y, s, loss_factor=2.0) for s in (1, -1)]
    assert np.abs(growth_loss(*u, x, y, loss_factor=2.0) - run["loss"]).max() < 0.01


def test_figure_4(reference):
    run = reference("five_points")
    plateau = plateau_at(run["iteration"], run["loss"], 94000, tolerance=1e-4)
    assert plateau.value == pytest.approx(0.0636, abs=1e-4)
    assert plateau.first <= 80000
    assert plateau.last >= 120000
    assert len(find_plateaus(run["iteration"], run["loss"], floor=1e-2)) == 2
    W, a = run["hidden_weight_T"], run["output_weight_T"]
    assert cluster_directions(W, signs=a).count == 4
    assert len(distinct_kinks(W, within=(-1.5, 2.0))) == 2


def test_figure_5(reference):
    run = reference("five_points_large")
    (W_0, a_0), (W, a) = start_and_end(run)
    x, y = run["x"], run["y"]
    assert orders_fallen(run["loss"]) >= 4
    assert find_plateaus(run["iteration"], run["loss"], floor=1e-6) == []
    assert np.median(relative_movement(W, W_0)) < 0.1
    assert len(distinct_kinks(W)) > 20
    grid = np.column_stack([np.linspace(-1.5, 2, 200), np.ones(200)])
    interpolator, final = ntk_regression(x, y, W_0, a_0), outputs(grid, W, a)
    np.testing.assert_allclose(interpolator(x), y, atol=1e-9)
    moved = np.abs(final - outputs(grid, W_0, a_0)).max()
    assert np.abs(interpolator(grid) - final).max() < 0.1 * moved


def test_figure_7(reference):
    W = reference("high_dim")["hidden_weight_T"]
    assert explained_variance(W)[:2].sum() == pytest.approx(0.756, abs=1e-3)
    assert significant(W).sum() > 2
