"""Figure 1: training loss and sharpness at several step sizes, for three networks."""

from __future__ import annotations

from dynamics_cli import kit

from .edge import BAND, Edge, edge, sharpness

STEPS = {
    "chebyshev": {"0.4": 15000, "0.2": 30000},
    "classes": {"0.3": 1500, "0.25": 3000},
    "deep_linear": {"2.0e-4": 1000, "1.0e-4": 1400},
}
"""Config -> step size -> iterations."""
NAMES = {"chebyshev": "Chebyshev", "classes": "two classes", "deep_linear": "deep linear"}


Evidence = dict[str, list[Edge]]
"""Config -> its runs by step size."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs."""
    return {key: [edge(runs[f"{key} {lr}"]) for lr in steps] for key, steps in STEPS.items()}


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the abstract: the sharpness rises to 2/eta and stays, the loss falls, not at
    every step.
    """
    made = []

    for key, edges in e.items():
        name = NAMES[key]
        made += [
            kit.claim(
                f"{key}-sharpens",
                rf"{name}: the sharpness begins below $2/\eta$ and rises until it makes the "
                "loss rise too (of the two steps)",
                "progressive sharpening (recalled)",
                kit.exactly(2),
                sum(run.first > 0 and run.unstable for run in edges),
            ),
            *[
                kit.claim(
                    f"{key}-band-{k + 1}",
                    rf"{name}, $\eta$ = {run.lr:g}: the sharpness then hovers at, or just "
                    r"above, $2/\eta$ (median over $2/\eta$)",
                    "abstract",
                    BAND,
                    run.band,
                )
                for k, run in enumerate(edges)
            ],
            kit.claim(
                f"{key}-before",
                f"{name}: before the edge the loss falls at every step (largest share of steps "
                "that raise it)",
                "abstract",
                kit.exactly(0),
                max(run.rises_before for run in edges),
            ),
            kit.claim(
                f"{key}-after",
                f"{name}: at the edge the loss does not fall at every step (least share of steps "
                "that raise it)",
                "abstract",
                kit.at_least(0.05),
                min(run.rises_after for run in edges),
            ),
            kit.claim(
                f"{key}-falls",
                f"{name}: the loss falls in the long run (means over ten windows that are below "
                "the one before, of 9; the least)",
                "abstract",
                kit.at_least(8),
                min(run.falls for run in edges),
            ),
            kit.claim(
                f"{key}-half",
                f"{name}: the loss falls far beyond the edge (last window over the loss at the "
                "crossing; the larger)",
                "abstract",
                kit.less_than(0.5),
                max(run.share_left for run in edges),
            ),
        ]

    return made


def draw(e: Evidence) -> kit.Drawing:
    return kit.charts(
        *(
            kit.chart(
                NAMES[key],
                "training loss",
                [kit.line(0, run.losses, rf"$\eta = {run.lr:g}$", "0.8") for run in edges],
                log="y",
            )
            for key, edges in e.items()
        ),
        *(
            kit.chart(
                r"dashed: $2/\eta$",
                "sharpness",
                *(sharpness(run.iterations, run, f"C{k}") for k, run in enumerate(edges)),
                limits=(0, 1.08 * max(run.sharpness.max() for run in edges)),
            )
            for edges in e.values()
        ),
        legend="inside",
    )


def _wanted() -> dict[str, str | kit.Wanted]:
    return {
        f"{key} {lr}": kit.Wanted(
            f"cohen2021/{key}.yaml", (f"optimizer.lr={lr}", f"optimizer.iterations={count}")
        )
        for key, steps in STEPS.items()
        for lr, count in steps.items()
    }


FIGURE = kit.Figure(
    id="cohen2021-fig1",
    caption=(
        "Training loss (top) and sharpness, the largest eigenvalue of the Hessian of the training"
        " loss (bottom), of gradient descent at two step sizes each: a Chebyshev polynomial, two"
        " classes, and a linear network of 20 layers. Sharpness rises to 2/eta (dashed) and stays"
        " there; the loss then no longer falls at every step."
    ),
    configs=_wanted(),
    passes={
        "random_features": {
            "classes-* deep_linear-*": "Layers behind a fixed first one sharpen up to the edge too."
        },
        "linear": {"deep_linear-*": "This network is linear: the null leaves it as it is."},
    },
)
