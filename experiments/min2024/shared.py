"""Shared by the figures: states of a run as arrays, and the premise of Theorem 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .theory.early_alignment import DataConstants, alignment_constants, data_constants

ANOTHER_SIDE = ("dataset.y=[1, 1, -1, -1, -1, -1]",)
"""Labels of the points of Figure 6 under the null `data`: the third point, between positive ones,
is negative, so that mu < 0, where Assumption 1 asks for more; a line still separates the classes.
"""


@dataclass(frozen=True)
class States:
    """All K recorded states of a two-layer run."""

    x: kit.Floats
    y: kit.Floats
    iterations: kit.Ints
    W: kit.Floats
    v: kit.Floats
    loss_iterations: kit.Ints
    losses: kit.Floats


def read_states(run: kit.Run) -> States:
    """Return all K recorded states of a two-layer run; the weights may be memory maps.

    Data `x` (n, d), `y` (n,), weights `W` (K, m, d) and `v` (K, m) at `iterations` (K,), and
    `losses` at `loss_iterations`. Raises InputError for another network.
    """
    parameters = run.parameters
    dataset = run.dataset()
    if not {"hidden_weight", "output_weight"} <= set(parameters):
        raise kit.InputError(f"{run.path}: the figures of min2024 need architecture.kind two_layer")
    return States(
        x=dataset.x,
        y=dataset.y,
        iterations=np.array(run.snapshot_iterations),
        W=parameters["hidden_weight"],
        v=parameters["output_weight"],
        loss_iterations=np.array(run.loss_iterations),
        losses=np.array(run.losses),
    )


@dataclass(frozen=True)
class Premise:
    """Theorem 1 for a balanced run: its constants, and log10 of the largest initial scale that it
    has (Eq. 28).
    """

    constants: DataConstants
    asked: float

    def of_theorem(self, claim: kit.Claim) -> kit.Claim:
        """Return a claim that the theorem makes of a run from this scale."""
        return kit.presupposing(
            claim,
            "Theorem 1 asks for a small initial scale (its log10, Eq. 28)",
            kit.at_most(self.asked),
            np.log10(self.constants.scale),
        )

    def of_lemma(self, claim: kit.Claim) -> kit.Claim:
        """Return a claim that Lemma 1 or 3 makes of a run from this scale."""
        return kit.presupposing(
            claim,
            "the lemma asks for a small initial scale",
            kit.at_most(self.constants.largest),
            self.constants.scale,
        )


def read_premise(run: kit.Run, states: States) -> Premise:
    """Return what Theorem 1 asks of a run and its states."""
    x, y, W, v = states.x, states.y, states.W[0], states.v[0]
    scale = run.config.initialization.scale  # type: ignore[attr-defined]
    constants = data_constants(x, y, W, scale=scale)
    return Premise(constants, constants.asked(alignment_constants(x, y, W, v)))
