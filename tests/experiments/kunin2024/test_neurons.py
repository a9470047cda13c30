"""Kunin et al. 2024: the exact solution against an integrator, and the figures on trained neurons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.kunin2024.relu import PLANE, PRINTED, SMALL, factors
from dynamics_cli._bundled.experiments.kunin2024.theory.single_neuron import (
    kernel_distance,
    last_distance,
    single_neuron,
    start,
)
from scipy.integrate import solve_ivp

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.falsify import Change, check_changes, check_complete
from tests.experiments.helpers import check_pure, evidence_of, one_run, titles, verdicts


@pytest.mark.parametrize("delta", [-4.0, -0.5, 0.0, 1e-6, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_exact_solution_solves_the_flow(delta: float, sign: int) -> None:
    w, a = start(delta, [0.3, -0.8, 0.2])
    w, a, beta, t = sign * w, sign * a, np.array([0.5, 0.5, -1.0]), np.linspace(0, 6, 13)

    def slope(_: float, v: np.ndarray) -> np.ndarray:
        r = beta - v[3] * v[:3]
        return np.append(v[3] * r, v[:3] @ r)

    found = solve_ivp(slope, (0, 6), [*w, a], method="DOP853", t_eval=t, rtol=1e-11, atol=1e-13).y
    exact = single_neuron(t, w, a, beta)
    np.testing.assert_allclose(exact[0], found[:3].T, atol=1e-8)
    np.testing.assert_allclose(exact[1], found[3], atol=1e-8)
    late = single_neuron([1e4], w, a, beta)
    np.testing.assert_allclose(late[1][:, None] * late[0], [beta], atol=1e-9)
    with pytest.raises(ValueError, match="something to learn"):
        single_neuron(t, w, a, [0.0, 0.0, 0.0])


def test_the_kernel_distance_ends_at_the_values_of_an_independent_derivation() -> None:
    for delta, limit in {-2.0: 0.7133, -1.0: 0.4864, 0.0: 0.2, 1.0: 0.0501, 2.0: 0.0124, -4.0: 0.8947}.items():
        assert last_distance(delta, 1.0) == pytest.approx(limit, abs=1e-4)
        w, a = start(delta, [-1.0, 0.0])
        path = single_neuron([0.0, 500.0], w, a, [0.0, 1.0])
        np.testing.assert_allclose(kernel_distance(*path, w, a), [0.0, limit], atol=1e-4)


@pytest.mark.parametrize(
    ("figure", "panels"),
    [
        pytest.param(
            "kunin2024-fig1", ["(a) Rich", "(b) Upstream", "(c) Lazy", "(d) Downstream"], marks=pytest.mark.long
        ),
        pytest.param("kunin2024-fig3", ["(a) Size", "(b) Alignment", "(c) Kernel distance"], marks=pytest.mark.long),
        ("kunin2024-fig4", ["(a) White inputs", "(b) One sample"]),
    ],
)
def test_all_claims_are_reproduced(figure: str, panels: list[str], outputs: Path) -> None:
    loaded = load_figure(figure)
    evidence = evidence_of(loaded)
    assert set(verdicts(loaded.claims(evidence)).values()) == {"reproduced"}
    assert titles(check_pure(loaded, evidence, outputs))[: len(panels)] == panels


def test_every_neuron_starts_at_one_scale_and_imbalance_and_the_network_at_0() -> None:
    for tau, delta in ((0.1, 0.9999), (0.1, -0.9999), (2.0, 0.0)):
        scales = f"initialization.scales={list(factors(tau, delta))}"
        run = one_run("kunin2024/circle.yaml", f"initialization.scale={tau}", scales, "optimizer.iterations=1")
        w, a = run.state(0)["hidden_weight"], run.state(0)["output_weight"]
        norms = np.linalg.norm(w, axis=1)
        np.testing.assert_allclose(np.abs(a) * norms, tau**2, rtol=1e-9)
        np.testing.assert_allclose(a**2 - norms**2, delta, atol=1e-9)
        np.testing.assert_array_equal(w[:25], w[25:])
        assert np.abs(run.network(0)(run.dataset().x)).max() < 1e-14


COARSE = ("optimizer={kind: gd, lr: 0.2, iterations: 100}",)
MOMENTUM = ("optimizer={kind: gd, lr: 0.01, iterations: 2000, momentum: 0.9}",)
BALANCED = ("initialization={kind: values, hidden_weight: [[-1.0, 0.0]], output_weight: [1.0]}",)
NARROW = tuple(f"map 0 {j}" for j in SMALL[1])
CHANGES = {
    "kunin2024-fig1": [
        Change("steps of 0.02", ("optimizer.lr=0.02", "optimizer.iterations=5000"), ("conserved",), tuple(PLANE)),
        Change("downstream starts", ("initialization.scales=[10.0, 0.1]",), ("signs", "aligned"), ("rich", "upstream")),
        Change(
            "balanced starts",
            ("initialization.scales=[1.0, 1.0]",),
            ("upstream", "flips-up", "flips-down", "where", *(id for id in PRINTED if id != "distance")),
            NARROW,
        ),
        Change(
            "upstream starts",
            ("initialization.scales=[0.1, 10.0]",),
            ("lazy-first", "rich-later", "distance"),
            NARROW,
        ),
    ],
    "kunin2024-fig3": [
        Change("steps of 0.2", COARSE, ("conserved", "exact")),
        Change("momentum", MOMENTUM, ("exact", "conserved")),
        Change("a balanced start", BALANCED, ("distances", "lazy-first", "rich-later", "sooner", "never")),
    ],
    "kunin2024-fig4": [
        Change("momentum", MOMENTUM, ("exact", "ends")),
        Change(
            "an early end",
            ("optimizer.until=2.0",),
            ("one-solution", "ends", "fits"),
            untrained="where a sample is fitted the predictor is at its end",
        ),
    ],
}


@pytest.mark.long
@pytest.mark.parametrize("figure", CHANGES)
def test_every_claim_fails_under_a_named_change(figure: str) -> None:
    check_changes(figure, CHANGES[figure])
    check_complete(figure, CHANGES[figure])
