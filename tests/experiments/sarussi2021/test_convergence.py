"""The bound of Theorem 4.1 against SGD in float64, written out here."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.sarussi2021.theory.convergence import PULL, epochs_bound

ALPHA = 0.5
V = 0.5
LR = 0.2
X = np.array([[1.0, 0.3], [0.8, -0.2], [-1.0, 0.1], [-0.7, -0.3]])
Y = np.array([1.0, 1.0, -1.0, -1.0])


def epochs_until(epsilon, W):
    """Return the epochs of SGD, without replacement, after which the mean loss is at most
    epsilon.
    """
    a = V * np.array([1.0, -1.0])
    rng = np.random.default_rng(0)
    for epoch in range(1, 2000):
        for i in rng.permutation(len(Y)):
            z = W @ X[i]
            h = a @ np.where(z > 0, z, ALPHA * z)
            pull = Y[i] / (1 + np.exp(Y[i] * h))
            W = W + LR * pull * (a * np.where(z > 0, 1, ALPHA))[:, None] * X[i]
        z = X @ W.T
        if np.logaddexp(0, -Y * (np.where(z > 0, z, ALPHA * z) @ a)).mean() <= epsilon:
            return epoch
    raise AssertionError("never")


@pytest.mark.parametrize("scale", [0.01, 3.0])
@pytest.mark.parametrize("epsilon", [0.3, 0.03])
def test_sgd_is_within_the_bound(epsilon, scale):
    W0 = scale * np.random.default_rng(1).standard_normal((2, 2))
    bound = epochs_bound(epsilon, X, Y, W0, alpha=ALPHA, v=V, lr=LR)
    assert epochs_until(epsilon, W0) <= bound


def test_the_bound_grows_like_one_over_epsilon_squared_and_with_the_start():
    def bound(epsilon, scale):
        return float(epochs_bound(epsilon, X, Y, scale * np.ones((2, 2)), alpha=ALPHA, v=V, lr=LR))

    assert bound(1e-5, 0.0) / bound(1e-4, 0.0) == pytest.approx(100, rel=0.01)
    assert bound(0.1, 10.0) > bound(0.1, 0.0)
    z = np.linspace(0, 5, 100_001)
    assert (z / (1 + np.exp(z))).max() == pytest.approx(PULL, abs=1e-9)
