"""Exact solutions against integrated equations, and the figures on runs that are really trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.saxe2014.silent_alignment import final_alignment
from dynamics_cli._bundled.experiments.saxe2014.theory.modes import (
    descent,
    half_time,
    infinite_depth,
    strength,
    time_between,
)
from scipy.integrate import solve_ivp

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.falsify import Change, check_changes, check_complete
from tests.experiments.helpers import check_pure, evidence_of, verdicts

TWO, THREE = tuple(f"2 {s}" for s in ("0.1", "0.0316", "0.01", "0.001")), ("3 0.1", "3 0.0316")
DEEPER = ("4 matrices", "5 matrices")
DEEP = tuple(role for role in load_figure("saxe2014-fig4").configs if role.endswith("/n"))
NEAR_FLOW = tuple(role for role in load_figure("saxe2014-fig4").configs if not role.endswith("/n"))
SLOW = "optimizer.lr=0.00625"  # 0.1/n at 16 matrices, at which none diverges
ORTHOGONAL, GAUSSIAN = (
    tuple(role for role in load_figure("saxe2014-fig6a").configs if role.startswith(f"{start}, n = 16"))
    for start in ("orthogonal", "Gaussian")
)
SHORT = "500 iterations fit the strong modes alone, in the figure's own runs too"
# fmt: off
CHANGES = {
    "fig3": [
        Change("a start a hundred times as strong", ("initialization.scale=1.0e-4",),
               ("exact", "exact-half"), ("decoupled", "decoupled, half the step"), SHORT),
        Change("the same step twice", ("optimizer.lr=2.5e-4", "optimizer.iterations=1000"), ("exact-order",),
               ("decoupled",), SHORT),
        Change("weights ten times as large", ("initialization.scale=2.5e-3",), ("random",), ("linear",)),
        Change("large weights", ("initialization.scale=2.0", "optimizer.lr=1e-4", "optimizer.iterations=2000"),
               ("order",), ("linear",)),
        Change("no tanh", ("architecture.activation=linear",), ("tanh",), ("tanh",)),
    ],
    "fig4": [
        Change("a start ten times as strong", ("initialization.scale=0.01",), ("trained",), NEAR_FLOW),
        Change("three iterations", ("optimizer.iterations=3",), ("saturates-networks", "steps"), DEEP, "too few"),
    ],
    "silent-alignment": [
        Change("weights 31.6 times as large", ("initialization.scales=[31.6, 31.6]",),
               ("half", "slope", "same", "silent"), TWO),
        Change("inputs that are not white", ("dataset.n=40",), ("final-2",), TWO),
        Change("inputs that are not white", ("dataset.n=40",), ("final-3",), THREE),
        Change("weights four times as large", ("initialization.scale=0.4",), ("final-4", "final-5"), DEEPER),
        Change("white inputs after all", ("dataset.anisotropy=0.0",), ("anisotropic",),
               tuple(f"gamma {gamma}" for gamma in (0.0, 0.25, 0.5, 0.75, 1.0))),
        Change("balanced orthogonal weights", ("initialization.kind=balanced_product",),
               ("three-half", "three-aligned", "three-first"), THREE),
        Change("lazy weights", ("initialization.scale=3.0", "optimizer.lr=0.005", "optimizer.iterations=20000"),
               ("relu-last", "relu-first"), ("relu",)),
    ],
    "fig6a": [
        Change("Gaussian weights at one step", ("initialization.kind=lecun", SLOW), ("flat", "sooner"), ORTHOGONAL),
        Change("orthogonal weights", ("initialization.kind=orthogonal",), ("grows",), GAUSSIAN),
    ],
}
# fmt: on


@pytest.mark.long
@pytest.mark.parametrize("figure", CHANGES)
def test_claims_come_out_and_can_fail(figure: str, outputs: Path) -> None:
    one = load_figure(f"saxe2014-{figure}")
    evidence = evidence_of(one)
    assert set(verdicts(one.claims(evidence)).values()) == {"reproduced"}
    check_pure(one, evidence, outputs)
    check_changes(one.id, CHANGES[figure])
    check_complete(one.id, CHANGES[figure])


def test_the_figure_of_theory() -> None:
    one = load_figure("saxe2014-fig2")
    assert set(verdicts(one.claims(one.evidence({}))).values()) == {"reproduced"}


def test_strengths_and_times_against_the_integrated_equation() -> None:
    for n in (2, 3, 7):
        flow = solve_ivp(
            lambda _, u, n=n: n * u ** (2 - 2 / n) * (3 - u), (0, 9), [0.01], rtol=1e-11, dense_output=True
        )
        for t in (0.4, 0.7):
            assert time_between(0.01, flow.sol(t)[0], 3.0, n) == pytest.approx(t, rel=1e-4)
            if n == 2:
                assert strength(t, 3.0, 0.01) == pytest.approx(flow.sol(t)[0], rel=1e-4)
    assert strength(half_time(3.0, 0.01), 3.0, 0.01) == pytest.approx(1.5)
    assert infinite_depth(1e-3, 0.99, 1.0) == pytest.approx(1e6 * time_between(1e-3, 0.99, 1.0, 10**6), rel=1e-4)
    with pytest.raises(ValueError, match="u < s"):
        time_between(0.1, 1.0, 1.0, 2)


def test_descent_counts_its_updates() -> None:
    a, count = 0.1, 0
    while a * a < 0.9:  # n = 2, a balanced mode of strength 1
        a, count = a + 0.05 * a * (1 - a * a), count + 1
    assert descent(2, [0.05, 40.0], 0.01, 0.9, 1.0).tolist() == [count, np.inf]


def test_the_final_alignment_is_that_of_the_final_kernel() -> None:
    """K = (L - 1) beta beta^T + I in whitened coordinates, labels along beta (A, Eq. 10)."""
    rng, D = np.random.default_rng(0), 30
    x = np.sqrt(D) * np.linalg.qr(rng.standard_normal((D, D)))[0]
    beta = rng.standard_normal(D)
    beta /= np.linalg.norm(beta)
    y = x @ beta
    for L in (2, 3, 4, 5):
        K = x @ ((L - 1) * np.outer(beta, beta) + np.eye(D)) @ x.T
        assert final_alignment(L) == pytest.approx(y @ K @ y / (np.linalg.norm(K) * (y @ y)))
