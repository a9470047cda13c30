"""What Figures 4 and 5 share, and how directions of neurons are compared."""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.clusters import cluster_directions, significant
from dynamics_cli.measures.neurons import angle_of, cosines
from dynamics_cli.reproduction.figure import Origin, Variant
from dynamics_cli.theory.sphere_flow import sphere_flow

from .states import FLOW_CAPTION, FLOW_TITLE, LOSS_FACTOR, LineState

VISIBLE = 0.05
"""Neurons of at least this share of the largest norm can be seen in the figure."""

ORIGIN: dict[str, Origin] = {
    "data": "released",
    "width": "stated",
    "initialisation": "stated",
    "step": "stated",
    "iterations": "stated",
    "loss": "released",
    "precision": "released",
    "seed": "assumed",
}
VARIANTS = {"flow": Variant(FLOW_TITLE, FLOW_CAPTION, {"five_points": "boursier2022/five_points_flow.yaml"})}
"""Of Figure 4."""


def aligned_share(x: Floats, y: Floats, start: LineState, state: LineState) -> tuple[float, int]:
    """Return which share of visible neurons is within 5 degrees of its limit in Eq. 10, and how many directions."""
    limits = sphere_flow(x, y, start.W, start.a, [np.inf], loss_factor=LOSS_FACTOR).directions[0]  # (m, d)
    visible = significant(state.W, VISIBLE)
    angles = np.degrees(np.arccos(cosines(state.W[visible], limits[visible])))
    return float(np.mean(angles <= 5.0)), cluster_directions(state.W, signs=state.a, relative_norm=VISIBLE).count


def turns(before: LineState, after: LineState) -> Floats:
    """Return by how many degrees (m,) every neuron turned."""
    change = angle_of(after.W) - angle_of(before.W)
    return np.abs((change + 180) % 360 - 180)
