"""Table 1: the bound of Eq. 7 for two confidences and four frequencies."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit

from .theory.starvation import TABLE_1_CONFIDENCES, TABLE_1_LAMBDAS, table_1

PRINTED = np.array([[91, 71, 61, 51], [99, 86, 72, 52]])
"""Percentages of the paper's Table 1."""
CONFIDENCES = tuple(f"{100 * value:g} %" for value in TABLE_1_CONFIDENCES)


def evidence(_: kit.Runs) -> kit.Floats:
    """Return Eq. 7 in percent, (2, 4), unrounded."""
    return table_1()


def claims(e: kit.Floats) -> list[kit.Claim]:
    """Compare all eight cells."""
    return [
        *(kit.theory(f"cell-{i + 1}-{j + 1}",
                     f"Confidence {CONFIDENCES[i]}, lambda = {TABLE_1_LAMBDAS[j]:g} (rounded percentage)",
                     "Table 1, Eq. 7", kit.exactly(float(PRINTED[i, j])), float(np.rint(e[i, j])))
          for i, j in np.ndindex(2, 4)),
        kit.finding("unrounded", "Largest distance of an unrounded percentage from the printed one",
                    "Table 1", float(np.abs(e - PRINTED).max())),
    ]  # fmt: skip


def table(e: kit.Floats) -> tuple[list[str], list[list[str]]]:
    """Return the table as the paper has it, unrounded in brackets."""
    header = ["confidence on x_1", *(f"lambda = {value:g}" for value in TABLE_1_LAMBDAS)]
    rows = [
        [confidence, *(f"{np.rint(percent):.0f} % ({percent:.2f})" for percent in cells)]
        for confidence, cells in zip(CONFIDENCES, e, strict=True)
    ]
    return header, rows


def draw(e: kit.Floats) -> kit.Drawing:
    """Render the table."""
    header = ["confidence on $x_1$", *(rf"$\lambda={value:g}$" for value in TABLE_1_LAMBDAS)]
    return kit.table_figure(header, table(e)[1], align="lrrrr")


FIGURE = kit.Figure(
    id="tachet2018-table1",
    caption=(
        "Upper bound of Eq. 7 on the confidence in a sample that has only x_2, when training stops at the given "
        "confidence on x_1 (the paper's column is labelled delta); in brackets unrounded."
    ),
    origin={"confidences, lambdas": "stated"}, evidence=evidence, claims=claims, draw=draw, table=table,
)  # fmt: skip
