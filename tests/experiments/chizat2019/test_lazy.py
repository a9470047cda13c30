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
