"""What Figures 6 and 7 share."""

from __future__ import annotations

from dynamics_cli.reproduction.figure import Origin

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
