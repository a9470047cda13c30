"""Table 2 with two digits of MNIST in place of cats and dogs: runs everywhere.

`dyn reproduce tachet2018-table2-digits`. About 7 s, nearly all of it training.
"""

from __future__ import annotations

from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Runs

from .light import Evidence, draw, of, table
from .light import claims as light_claims


def evidence(runs: Runs) -> Evidence:
    """Score the network."""
    first, second = runs["network"].config.dataset.digits  # type: ignore[union-attr]
    return of(runs, (f"digit {first}", f"digit {second}"))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Table 2."""
    return light_claims(found, substitute=True)


FIGURE = Figure(
    id="tachet2018-table2-digits",
    caption=(
        "As Table 2, for digits of MNIST: the first dark, the second bright; the paper's numbers are for cats and dogs."
    ),
    configs={"network": "tachet2018/light_digits.yaml"},
    origin={
        "light effect": "stated",
        "network": "stated",
        "optimizer": "stated",
        "digits, width, batch, epochs": "assumed",
        "initial weights": "assumed",
    },
    evidence=evidence,
    claims=claims,
    draw=draw,
    table=table,
)
