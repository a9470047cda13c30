"""What Section 4.2 predicts of any run on orthogonal inputs: from saddle to saddle by two logistic growths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics_cli.config.bases import Curve, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.neurons import norms
from dynamics_cli.theory.assumptions import flow_violations, is_relu_network, loss_factor, plain_violations, times_of

from .alignment import check_assumptions, orthogonality
from .growth import aligned_mass, growth_loss, logistic_growth


class OrthogonalSaddles(Theory, kind="orthogonal_saddles"):
    """From saddle to saddle on orthogonal inputs: neurons along D+ and -D- grow logistically (Boursier et al. 2022)."""

    example = """\
initialization: {kind: balanced, scale: 1.0e-6}
optimizer: {kind: gd, lr: 1.0e-3, iterations: 20000}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless the network has one hidden layer of ReLUs and one output."""
        net = run.config.architecture
        if not is_relu_network(net):
            return None
        samples, start = run.dataset(), run.state(0)
        W, a = start["hidden_weight"], start["output_weight"]
        found = [*plain_violations(net), *flow_violations(run)]
        if (worst := orthogonality(samples.x)) > 1e-6:
            found.append(f"Assumption 1: inputs are orthogonal, two have the cosine {worst:.3g}")
        found += [str(check) for check in check_assumptions(samples.x, samples.y, W, a)[1:] if not check.holds]
        if (size := float(norms(W).max() * np.sqrt(len(a)))) > 0.01:
            found.append(f"neurons start small: the largest norm times sqrt(m) is {size:.2g}")
        return found

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the loss."""
        samples, start, c = run.dataset(), run.state(0), loss_factor(run)
        x, y, times = samples.x, samples.y, times_of(run, run.loss_iterations)
        u = {}
        for sign in (1, -1):
            mass = aligned_mass(x, y, start["hidden_weight"], start["output_weight"], sign)
            u[sign] = logistic_growth(times, mass, x, y, sign, loss_factor=c)
        return {"loss": growth_loss(u[1], u[-1], x, y, loss_factor=c)}
