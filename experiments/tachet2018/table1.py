"""Table 1: the bound of Eq. 7 for two confidences and four frequencies.

`dyn reproduce tachet2018-table1`. About 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.panels.table import table_figure
from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .theory.starvation import TABLE_1_CONFIDENCES, TABLE_1_LAMBDAS, table_1

PRINTED = np.array([[91, 71, 61, 51], [99, 86, 72, 52]])
"""Percentages of the paper's Table 1."""


@dataclass(frozen=True)
class Evidence:
    """Eq. 7 in percent."""

    percent: Floats
    """(2, 4), unrounded."""

    @property
    def rounded(self) -> Floats:
        """(2, 4), as the paper prints it."""
        return np.rint(self.percent)


def evidence(_: Runs) -> Evidence:
    """Evaluate Eq. 7."""
    return Evidence(table_1())


def claims(found: Evidence) -> list[Claim]:
    """Compare all eight cells."""
    cells = [(row, column) for row in range(2) for column in range(4)]
    return [
        *[
            claim(
                f"cell-{row + 1}-{column + 1}",
                f"Confidence {_percent(row)}, lambda = {TABLE_1_LAMBDAS[column]:g} (rounded percentage)",
                "Table 1, Eq. 7",
                expected=exactly(float(PRINTED[row, column])),
                measured=float(found.rounded[row, column]),
            )
            for row, column in cells
        ],
        finding(
            "unrounded",
            "Largest distance of an unrounded percentage from the printed one",
            "Table 1",
            measured=float(np.abs(found.percent - PRINTED).max()),
        ),
    ]


def _percent(row: int) -> str:
    return f"{100 * TABLE_1_CONFIDENCES[row]:g} %"


def table(found: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return the table as the paper has it, with one more decimal in brackets."""
    header = ["confidence on x_1", *(f"lambda = {value:g}" for value in TABLE_1_LAMBDAS)]
    rows = [
        [_percent(row), *(f"{rounded:.0f} % ({exact:.1f})" for rounded, exact in zip(*cells, strict=True))]
        for row, cells in enumerate(zip(found.rounded, found.percent, strict=True))
    ]
    return header, rows


def draw(found: Evidence) -> Drawing:
    """Render the table."""
    _, rows = table(found)
    header = ["confidence on $x_1$", *(rf"$\lambda={value:g}$" for value in TABLE_1_LAMBDAS)]
    return table_figure(header, rows, align="lrrrr")


FIGURE = Figure(
    id="tachet2018-table1",
    caption=(
        "Upper bound of Eq. 7 on the confidence in a sample that has only x_2, when training stops at the given "
        "confidence on x_1 (the paper's column is labelled delta); in brackets with one decimal."
    ),
    origin={"confidences, lambdas": "stated"},
    evidence=evidence,
    claims=claims,
    draw=draw,
    table=table,
)
