"""Clustering, agreement, the PAR's convex program, Theorem 5.1 and Lemma 6.1, by hand and
against trained networks.
"""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.sarussi2021.theory import agreement, clustering
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

from dynamics_cli.measures.two_layer import outputs

X = np.array([[2.0, 0.3], [1.5, -0.4], [2.5, 1.0], [-2.0, 0.5], [-1.0, -0.7]])
Y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
W = np.array([[2.0, 1.0], [2.0, -1.0]])
U = np.array([[-1.0, 0.5], [-1.0, -0.5]])


def test_equation_8_against_a_general_solver():
    alpha = 0.2
    found = agreement.agreement_directions(X, Y, alpha, Y, -Y)
    rows = [
        np.r_[x, -alpha * x] if y > 0 else np.r_[-alpha * x, x] for x, y in zip(X, Y, strict=True)
    ]
    general = minimize(
        lambda z: z @ z,
        np.r_[1.0, 0, -1, 0],
        jac=lambda z: 2 * z,
        constraints={
            "type": "ineq",
            "fun": lambda z: np.array(rows) @ z - 1,
            "jac": lambda z: np.array(rows),
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert_allclose(found.joint, general.x, atol=1e-6)
    assert found.solution.kkt_residual < 1e-12
    assert agreement.patterns_hold(X, found, Y, -Y)


def test_assumption_4_against_linear_programs():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 12))
        d = int(rng.integers(2, 5))
        x = rng.standard_normal((n, d)) + 0.8
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        x[y < 0] *= -1
        for j, wrong in enumerate(agreement.wrongly_classifiable(x, y)):
            rows = np.concatenate([x[y == -y[j]], x[[j]]])
            found = linprog(
                np.zeros(d), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=[(None, None)] * d
            )
            assert wrong == (found.status == 0), (seed, j)


def test_a_network_that_gets_a_positive_point_wrong_has_no_more_margin_than_assumption_3_asks_for():
    rng = np.random.default_rng(0)
    alpha = 0.3
    v = 0.2
    k = 5
    bound = agreement.margin_of_assumption_3(X, alpha, v, k)
    largest = 0.0
    for _ in range(3000):
        w, u = rng.standard_normal((2, k, 2))
        w = (
            w * np.sign(-w @ X[0])[:, None]
        )  # all neurons w get the first point, a positive one, wrong
        H = np.concatenate([w, u])
        h = outputs(X[:1], H, v * np.repeat([1.0, -1.0], k), alpha)
        largest = max(largest, float((h * Y[:1]).min() / np.linalg.norm(H)))
    assert 0.1 * bound < largest <= bound
    # attained but for the term in beta: neurons w at 0, all neurons u along -x
    far = X[np.linalg.norm(X, axis=1).argmax()]
    H = np.concatenate([np.zeros((k, 2)), np.repeat(-far[None], k, axis=0)])
    h = outputs(far[None], H, v * np.repeat([1.0, -1.0], k), alpha)
    assert h.min() / np.linalg.norm(H) == pytest.approx(bound, rel=1e-12)


def test_theorem_5_1_on_random_networks():
    rng = np.random.default_rng(1)
    largest = 0.0
    for _ in range(100):
        W, U = rng.standard_normal((2, 1, 3)) + rng.uniform(0, 1) * rng.standard_normal((2, 6, 3))
        x = rng.standard_normal((2000, 3))
        assert clustering.violations(x, W, U, 0.2) == 0
        largest = max(largest, clustering.tightness(x, W, U, 0.2))
    assert 0 < largest < 2
    assert clustering.linear_classifier(
        np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    ).tolist() == [1.0, -1.0]
    assert clustering.tightness(np.eye(2), np.ones((2, 2)), -np.ones((2, 2)), 0.2) == 0.0


@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.7])
def test_the_sharp_constant_is_attained_and_never_exceeded(alpha):
    assert clustering.signs_differ(*_of(clustering.sharpest(alpha)), alpha).all()
    assert not clustering.signs_differ(*_of(clustering.sharpest(alpha, short=-1e-9)), alpha).any()
    rng = np.random.default_rng(0)
    for _ in range(200):
        w, u = rng.standard_normal((2, 3, 2)) * rng.uniform(0, 1, (2, 3, 1))
        assert clustering.tightness(
            rng.standard_normal((500, 2)), w, u, alpha
        ) <= clustering.sharp_constant(alpha)


def test_a_linear_network_is_in_the_linear_regime_of_the_sharp_constant():
    rng = np.random.default_rng(2)
    w, u = rng.standard_normal((2, 20, 5))
    x = rng.standard_normal((300, 5))
    assert clustering.outside_linear_regime(x, w, u).all()  # the 2 of Theorem 5.1 knows no slope
    assert not clustering.outside_linear_regime(x, w, u, clustering.sharp_constant(1.0)).any()
    alpha = 0.2
    sharp = clustering.outside_linear_regime(x, w, u, clustering.sharp_constant(alpha))
    differ = clustering.signs_differ(x, w, u, alpha)
    assert differ.any()
    assert sharp[differ].all()


def _of(found):
    w, u, x = found
    return x, w, u


def test_steps_of_the_proof_of_theorem_5_1_can_fail(monkeypatch):
    """With half of the radius neurons of a group have both signs beyond it."""
    rng = np.random.default_rng(0)
    W, U = (centre + 0.3 * rng.standard_normal((6, 3)) for centre in rng.standard_normal((2, 1, 3)))
    x = rng.standard_normal((2000, 3))
    assert clustering.steps_violated(x, W, U) == (0, 0)
    half = clustering.cluster_radius(W, U) / 2
    monkeypatch.setattr(clustering, "cluster_radius", lambda *groups: half)
    assert clustering.steps_violated(x, W, U)[1] > 0
