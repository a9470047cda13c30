"""Chizat et al. 2019: the linearised model against one that is really trained, and the figures."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.chizat2019.scaling import distances, features

from dynamics_cli.architectures.two_layer import TwoLayer
from tests.experiments.helpers import one_run


def test_the_linearised_model_is_the_one_that_descent_trains():
    run = one_run(
        "chizat2019/scaled.yaml",
        "architecture.output_scale=3.0",
        "optimizer.iterations=40",
        "record.snapshots={kind: every, interval: 1}",
        "optimizer.lr=0.02",
    )
    net = run.config.architecture
    samples = run.dataset()
    start = run.state(0)
    assert isinstance(net, TwoLayer)
    J = features(net, start["hidden_weight"], start["output_weight"], samples.x)
    step = np.zeros(J.shape[1])
    gap = []
    for i in range(41):
        w = np.concatenate(
            [
                (run.state(i)[name] - start[name]).ravel()
                for name in ("hidden_weight", "output_weight")
            ]
        )
        gap.append(float(np.linalg.norm(w - step)))
        step = step - 0.02 * 3.0 / samples.n * J.T @ (3.0 * J @ step - samples.y)
    assert distances(run)["weights"] == pytest.approx(max(gap), rel=1e-9)
