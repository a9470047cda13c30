"""The edge of gradient descent with momentum: each kind at its own bound (Cohen et al. 2021)."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit

from .edge import BAND, Edge, edge, sharpness

STEPS = {
    ("polyak", "0.9"): "0.15",
    ("nesterov", "0.9"): "0.07",
    ("polyak", "0.5"): "0.2",
    ("nesterov", "0.5"): "0.15",
}
"""Kind and momentum -> step size on the Chebyshev polynomial."""
ITERATIONS = 40000
"""In the first thousands the sharpness of the larger momentum falls far below its bound again
and again.
"""
WORDS = {"polyak": "(2 + 2 beta)/eta", "nesterov": "(2 + 2 beta)/(eta (1 + 2 beta))"}
Evidence = dict[tuple[str, str], Edge]
"""Kind and momentum -> what the run shows."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs."""
    return {key: edge(runs[" ".join(key)]) for key in STEPS}


def claims(e: Evidence) -> list[kit.Claim]:
    made = []

    for (kind, beta), run in e.items():
        name = f"{kind.capitalize()}, beta = {beta}"
        made += [
            kit.claim(
                f"{kind}-{beta}",
                f"{name}: the sharpness hovers at, or just above, {WORDS[kind]} (median after "
                "the crossing over it)",
                "bounds of momentum (recalled)",
                BAND,
                run.band,
            ),
            kit.claim(
                f"{kind}-{beta}-reaches",
                f"{name}: the sharpness rises from below to that bound (its maximum over it)",
                "bounds of momentum (recalled)",
                kit.at_least(1),
                run.sharpness.max() / run.bound if run.first else np.nan,
            ),
        ]
    return made


def draw(e: Evidence) -> kit.Drawing:
    def of(kind: str) -> kit.Chart:
        mine = {beta: run for (one, beta), run in e.items() if one == kind}
        return kit.chart(
            f"{kind.capitalize()}; dashed: its bound",
            "sharpness",
            *(
                sharpness(run.iterations, run, f"C{k}", rf"$\beta = {beta},\ \eta = {run.lr:g}$")
                for k, (beta, run) in enumerate(mine.items())
            ),
            limits=(0, 1.3 * max(run.bound for run in mine.values())),
        )

    return kit.charts(of("polyak"), of("nesterov"), legend="inside")


FIGURE = kit.Figure(
    id="cohen2021-momentum",
    caption=(
        "Sharpness of gradient descent with momentum on the Chebyshev polynomial. Dashed: the bound"
        " of each run, (2 + 2 beta)/eta for Polyak's momentum and (2 + 2 beta)/(eta (1 + 2 beta))"
        " for Nesterov's."
    ),
    configs={
        " ".join((kind, beta)): kit.Wanted(
            "cohen2021/chebyshev.yaml",
            (
                f"optimizer.lr={lr}",
                f"optimizer.momentum={beta}",
                f"optimizer.iterations={ITERATIONS}",
                *(("optimizer.nesterov=true",) if kind == "nesterov" else ()),
            ),
        )
        for (kind, beta), lr in STEPS.items()
    },
)
