"""The theory and the measures against the runs of the loop that Boursier et al. released
(skipped where absent).
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.theory.growth import (
    aligned_mass,
    growth_loss,
    logistic_growth,
)
from numpy.testing import assert_allclose

from dynamics_cli.measures.neurons import norms

LR = 1e-3


def start_and_end(run):
    return (run["hidden_weight_0"], run["output_weight_0"]), (
        run["hidden_weight_T"],
        run["output_weight_T"],
    )


@pytest.mark.parametrize(
    ("name", "tolerance"),
    # the released loop computes the norms of high_dim in float32, where their squares (5e-43) are
    # denormal: 2 % off
    [("orthogonal", 1e-5), ("five_points", 1e-5), ("five_points_large", 1e-5), ("high_dim", 0.025)],
)
def test_runs_start_balanced_and_stay_so(reference, name, tolerance):
    (W_0, a_0), (W, a) = start_and_end(reference(name))
    assert_allclose(norms(W_0), np.abs(a_0), rtol=tolerance)
    # 0 along the flow (Lemma 1), of the order of the step here
    drift = (
        a**2 - norms(W) ** 2 - (a_0**2 - norms(W_0) ** 2)
    )  # 0 along the flow (Lemma 1), of the order of the step here
    assert np.abs(drift).max() < 2e-3 * max(1.0, np.max(a**2))


def test_the_whole_loss_curve_of_figure_3_from_the_initial_weights(reference):
    """Closed forms only: Eq. 10 for the alignment, then two logistic growths. Error of order
    lambda and the step.
    """
    run = reference("orthogonal")
    x = run["x"]
    y = run["y"]
    W = run["hidden_weight_0"]
    a = run["output_weight_0"]
    t = LR * run["iteration"]
    u = [logistic_growth(t, aligned_mass(x, y, W, a, s), x, y, s, loss_factor=2.0) for s in (1, -1)]
    assert np.abs(growth_loss(*u, x, y, loss_factor=2.0) - run["loss"]).max() < 0.01
