"""Chizat et al. 2019: the linearised model against one that is really trained, and the figures."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.chizat2019.scaling import distances, features

from dynamics_cli.architectures.two_layer import TwoLayer
from tests.experiments.helpers import one_run


def test_the_linearised_model_is_the_one_that_descent_trains() -> None:
    run = one_run(
        "chizat2019/scaled.yaml", "architecture.output_scale=3.0", "optimizer.iterations=40",
        "record.snapshots={kind: every, interval: 1}", "optimizer.lr=0.02",
    )  # fmt: skip
    net, samples, start = run.config.architecture, run.dataset(), run.state(0)
    assert isinstance(net, TwoLayer)
    J = features(net, start["hidden_weight"], start["output_weight"], samples.x)
    step = np.zeros(J.shape[1])
    gap = []
    for i in range(41):
        w = np.concatenate([(run.state(i)[name] - start[name]).ravel() for name in ("hidden_weight", "output_weight")])
        gap.append(float(np.linalg.norm(w - step)))
        step = step - 0.02 * 3.0 / samples.n * J.T @ (3.0 * J @ step - samples.y)
    assert distances(run)["weights"] == pytest.approx(max(gap), rel=1e-9)


def test_gradients_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    W, a, x = rng.standard_normal((3, 2)), rng.standard_normal(3), rng.standard_normal((4, 2))
    net = TwoLayer(width=3, activation={"kind": "tanh"})  # type: ignore[arg-type]
    J, h = features(net, W, a, x), 1e-6

    def f(W: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.tanh(x @ W.T) @ a

    change = rng.standard_normal(9)
    ends = [f(W + s * h * change[:6].reshape(3, 2), a + s * h * change[6:]) for s in (1, -1)]
    np.testing.assert_allclose(J @ change, (ends[0] - ends[1]) / (2 * h), rtol=1e-7)


def test_labels_times_100_and_outputs_times_s_are_other_weights_and_steps() -> None:
    """Weights `c w` of a network of degree 2 learn `c^2 y` as w learn y, at the step of w (see width.yaml)."""
    rng = np.random.default_rng(0)
    x, y, (W, b), s = rng.standard_normal((5, 3)), rng.standard_normal(5), rng.standard_normal((2, 4, 3)), 0.25
    b, c = b[:, 0], np.sqrt(s / 100)

    def step(W: np.ndarray, b: np.ndarray, s: float, y: np.ndarray, lr: float) -> tuple[np.ndarray, np.ndarray]:
        z = np.maximum(x @ W.T, 0)
        error = (s * z @ b - y) * s / len(x)
        return W - lr * ((error[:, None] * (z > 0) * b).T @ x), b - lr * z.T @ error

    released = step(W, b, s, 100 * y, 0.05 / s**2)
    for ours, theirs in zip(step(c * W, c * b, 1.0, y, 100 * 0.05 / s), released, strict=True):
        np.testing.assert_allclose(ours, c * theirs, rtol=1e-12)
