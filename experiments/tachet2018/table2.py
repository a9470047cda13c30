"""Table 2: cats and dogs with the light effect.

`dyn reproduce tachet2018-table2`, after `dyn data add dogs-vs-cats PATH`. About 15 s on 2002 images; `--preset full`
is for all 25 000: larger images and a wider network.
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted

from .light import Evidence, draw, of, table
from .light import claims as light_claims


def evidence(runs: Runs) -> Evidence:
    """Score the network."""
    return of(runs, ("cats", "dogs"))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Table 2."""
    return light_claims(found, substitute=False)


FIGURE = Figure(
    id="tachet2018-table2",
    caption=(
        "Accuracy of a network trained on dark cats and bright dogs, on its training set, on test images modified in "
        "the same way, and on the untouched test images; the paper's numbers beside ours."
    ),
    configs={"network": "tachet2018/cats_and_dogs.yaml"},
    presets={
        "full": {
            "network": Wanted(
                "tachet2018/cats_and_dogs.yaml",
                (
                    "dataset.size=64",
                    "architecture.image=[3, 64, 64]",
                    "architecture.width_multiplier=0.5",
                    "record.snapshots.interval=1500",
                ),
            )
        }
    },
    origin={
        "light effect": "stated",
        "network": "stated",
        "optimizer": "stated",
        "size, width, batch, epochs": "assumed",
        "initial weights": "assumed",
    },
    evidence=evidence,
    claims=claims,
    draw=draw,
    table=table,
    substitute="tachet2018-table2-digits",
)
