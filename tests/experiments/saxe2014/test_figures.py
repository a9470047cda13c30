"""Exact solutions against integrated equations, and the figures on runs that are really trained."""

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.saxe2014.fig3 import MODES
from dynamics_cli._bundled.experiments.saxe2014.silent_alignment import final_alignment
from dynamics_cli._bundled.experiments.saxe2014.theory.modes import (
    half_time,
    infinite_depth,
    time_between,
)
from scipy.integrate import solve_ivp

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.helpers import by_id, evidence_of


def test_strengths_and_times_against_the_integrated_equation():
    for n in (2, 3, 7):
        flow = solve_ivp(
            lambda _, u, n=n: n * u ** (2 - 2 / n) * (3 - u),
            (0, 9),
            [0.01],
            rtol=1e-11,
            dense_output=True,
        )
        for t in (0.4, 0.7):
            assert time_between(0.01, flow.sol(t)[0], 3.0, n) == pytest.approx(t, rel=1e-4)
    assert half_time(3.0, 0.01) == pytest.approx(time_between(0.01, 1.5, 3.0, 2))
    assert infinite_depth(1e-3, 0.99, 1.0) == pytest.approx(
        1e6 * time_between(1e-3, 0.99, 1.0, 10**6), rel=1e-4
    )
    with pytest.raises(ValueError, match="u < s"):
        time_between(0.1, 1.0, 1.0, 2)


def test_the_final_alignment_is_that_of_the_final_kernel():
    """K = (L - 1) beta beta^T + I in whitened coordinates, labels along beta (A, Eq. 10)."""
    rng = np.random.default_rng(0)
    D = 30
    x = np.sqrt(D) * np.linalg.qr(rng.standard_normal((D, D)))[0]
    beta = rng.standard_normal(D)
    beta /= np.linalg.norm(beta)
    y = x @ beta
    for L in (2, 3, 4, 5):
        K = x @ ((L - 1) * np.outer(beta, beta) + np.eye(D)) @ x.T
        assert final_alignment(L) == pytest.approx(y @ K @ y / (np.linalg.norm(K) * (y @ y)))


def test_a_start_on_equation_12_is_not_later_than_it_but_by_the_error_of_steps():
    """Its mean delay is 0.0091, as in an independent program; a random start has 0.042."""
    figure = load_figure("saxe2014-fig3")
    evidence = evidence_of(figure)
    late = figure.numbers(evidence)
    assert late["mean delay, decoupled start"] == pytest.approx(0.0091, abs=1e-4)
    random = by_id(figure.claims(evidence))["random"]
    assert random.measured == pytest.approx(0.0418 - 0.0091, abs=2e-4)
    exact = evidence.paths["decoupled"].delays[np.array(MODES) - 1]
    euler = replace(evidence, delays={**evidence.delays, "linear": exact[None]})
    assert by_id(figure.claims(euler))["random"].verdict == "not reproduced"
