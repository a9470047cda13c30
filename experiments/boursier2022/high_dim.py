"""What Figures 6 and 7 share."""

from __future__ import annotations

from dynamics_cli.reproduction.figure import Origin, Variant, Wanted

from .states import FLOW_CAPTION, FLOW_TITLE

ORIGIN: dict[str, Origin] = {
    "data": "released",
    "width": "stated",
    "initialisation": "released",
    "step": "stated",
    "iterations": "stated",
    "loss": "released",
    "precision": "released",
    "seed": "released",
}
CONFIGS = {"high_dim": "boursier2022/high_dim.yaml"}
SEED_CONFIGS = {"high_dim": "boursier2022/high_dim_seeds.yaml"}
"""The authors' data with initial weights drawn by us; the first seed takes theirs from a file."""
FLOW = "boursier2022/high_dim_flow.yaml"
DRAWN = (
    "initialization.kind=balanced",
    "initialization.scale=1.0e-20",
    "initialization.divide_by=sqrt_width_times_dim",
)
VARIANTS = {"flow": Variant(FLOW_TITLE, FLOW_CAPTION, {"high_dim": FLOW}, {"high_dim": Wanted(FLOW, DRAWN)})}
