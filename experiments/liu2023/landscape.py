"""The reduced landscape: least losses on spheres of weights, L of training and U of held-out
samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .student import OUTPUTS

ALPHAS = 10.0 ** np.linspace(-1, 1, 11)
"""Radii of the spheres over the norm of the default start."""
EARLY = (
    0.016045,
    0.010484,
    0.000909,
    0.000786,
    0.000639,
    0.000627,
    0.004946,
    0.058166,
    0.493991,
    2.804249,
    11.571893,
)
LATE = (
    0.016421,
    0.011689,
    0.002266,
    0.000333,
    0.000086,
    0.000078,
    0.001471,
    0.040637,
    0.429469,
    2.439299,
    9.624020,
)
"""Held-out losses at epochs 200 and 9800, the first after the start and the last that the
notebook printed.
"""
LOSSES = "train_loss", "test_loss"
FITTED = 1e-5
"""Training loss of a network that fits, which the notebook adds to the losses that it draws."""


@dataclass(frozen=True)
class Evidence:
    """Losses by the radius of the sphere."""

    train: kit.Floats
    test: kit.Floats
    early: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Read the losses per output at the last state but one, epoch 9800, and the held-out loss at
    epoch 200.
    """
    train, test = (
        np.array([run.measures[name] for run in runs.values()]) / OUTPUTS for name in LOSSES
    )
    return Evidence(train=train[:, -2], test=test[:, -2], early=test[:, 1])


def claims(e: Evidence) -> list[kit.Claim]:
    low = int(e.test.argmin())
    fits = e.train < FITTED
    source = "released notebook, output of cell 2"
    paper = "Section 2 (recalled)"
    fell = bool(fits.any())
    return [
        *(
            kit.claim(
                f"{name}-{alpha:.2g}",
                rf"Held-out loss at epoch {epoch}, $\alpha$ = {alpha:.2g}",
                source,
                kit.printed(printed, 1e-6),
                loss,
            )
            for name, epoch, row, losses in (
                ("early", 200, EARLY, e.early),
                ("late", 9800, LATE, e.test),
            )
            for alpha, printed, loss in zip(ALPHAS, row, losses, strict=True)
        ),
        kit.claim(
            "L",
            "L: training losses are positive on small spheres and vanish on all large ones (number"
            " of changes, from small to large)",
            paper,
            kit.exactly(1),
            kit.given(
                fell and not fits[0] and bool(fits[-1]), np.count_nonzero(np.diff(fits.astype(int)))
            ),
        ),
        kit.claim(
            "U",
            "U: the held-out loss is least between, at the norm of the default start",
            source,
            kit.near(1.0, 0.01),
            kit.given(fell, ALPHAS[low]),
        ),
        kit.claim(
            "left",
            "The held-out loss is many times larger on the smallest sphere (ratio to the least)",
            paper,
            kit.more_than(10),
            kit.given(fell, e.test[0] / e.test[low]),
        ),
        kit.claim(
            "right",
            "The held-out loss is many times larger on the largest sphere (ratio to the least)",
            paper,
            kit.more_than(10),
            kit.given(fell, e.test[-1] / e.test[low]),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    return kit.charts(
        kit.chart(
            "",
            "loss per output",
            kit.line(ALPHAS, e.train + FITTED, r"training $+\,10^{-5}$", "joined"),
            kit.line(ALPHAS, e.test, "held out", "joined"),
            kit.line(ALPHAS, LATE, "held out, printed", "theory x"),
            xlabel=r"norm of the weights / of the default start, $\alpha$",
            log="xy",
        ),
        legend="inside",
    )


FIGURE = kit.Figure(
    id="liu2023-landscape",
    caption=(
        "Losses of the student after 9800 epochs of Adam on spheres of weights: L-shaped for"
        " training samples, U-shaped for held-out samples."
    ),
    configs=kit.grid("liu2023/landscape.yaml", {"initialization.factor": ALPHAS}, "{:.3g}"),
    passes={
        "random_features": {
            "L right": "On a sphere of large weights the second layer alone fits these data.",
            "left": "On the smallest sphere no network fits, whichever layers are trained.",
        },
        "linear": {"early-0.1 late-0.16": "On the smallest spheres tanh is linear."},
    },
)
