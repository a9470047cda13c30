"""What Theorems 3.2 and 5.1 predict of any run whose classes are learned by neurons of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics_cli.config.bases import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.two_layer import preactivations
from dynamics_cli.theory.assumptions import flow_violations, times_of

from .modes import hinge_mode, logistic_mode


class IndependentModes(Theory, kind="independent_modes"):
    """Logit of each class where one neuron is active on one point of it alone (Tachet des Combes et al. 2018)."""

    example = """\
dataset: {kind: points, x: [[1.0, 0.0], [0.0, 2.0]], y: [1, -1]}
architecture: {kind: two_layer, width: 2}
initialization: {kind: independent_modes, y: [[0.2], [0.4]], z: [[0.2], [0.2]]}
loss: {kind: logistic}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 24000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless two ReLU layers learn signs by logistic or hinge loss."""
        net, loss = run.config.architecture, run.config.loss
        if net.kind != "two_layer" or net.activation.kind != "relu" or loss.kind not in ("logistic", "hinge"):
            return None
        samples = run.dataset()
        found = flow_violations(run, squared=False)
        if samples.n != 2 or set(samples.y) != {1.0, -1.0}:
            found.append(f"each class is one point: there are {samples.n} points")
        gram = samples.x @ samples.x.T
        if np.abs(gram - np.diag(np.diag(gram))).max() > 1e-9 * gram.max():
            found.append("inputs of the classes are orthogonal: they are not")
        active = preactivations(samples.x, run.state(0)["hidden_weight"]) > 0
        if (active.sum(1) != 1).any() or (active.sum(0) > 1).any():
            found.append("each class has one neuron of its own (H1 to H3): not at the start")
        return found

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the logits of all points over the snapshots."""
        samples, start, steps = run.dataset(), run.state(0), np.asarray(run.snapshot_iterations, np.float64)
        z = preactivations(samples.x, start["hidden_weight"])  # (n, m)
        own, t = z.argmax(axis=1), times_of(run, run.snapshot_iterations)
        mode = logistic_mode if run.config.loss.kind == "logistic" else hinge_mode
        weight = run.config.loss.sample_weight(samples.n)
        paths = [
            mode(t, z[k, j], start["output_weight"][j], np.linalg.norm(x), p=weight, label=int(y))
            for k, (j, x, y) in enumerate(zip(own, samples.x, samples.y, strict=True))
        ]
        measured = np.array([run.network(i)(samples.x) for i in range(len(steps))])
        return {"logits": Curve("logits of the points", steps, measured, np.stack([one.u for one in paths], axis=1))}
