"""MNIST: weights eight times as large as by default generalise long after they fit, default ones
at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

FITS = 0.95
"""Training accuracy of a network that fits."""
FACTORS = (1.0, 8.0)


@dataclass(frozen=True)
class Trained:
    """A network along its training."""

    steps: kit.Ints
    train: kit.Floats
    """Accuracies on the training images,"""
    test: kit.Floats
    """and on held-out ones."""
    norm: kit.Floats
    gap: float
    """Held-out accuracy where `FITS` is reached, over the last."""
    alone: float
    """What decay alone leaves of the norm, `(1 - lr weight_decay)^n` after n updates."""


Evidence = dict[float, Trained]
"""Factor of the initial weights -> the network."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs."""
    of = {}
    for factor, run in kit.by_values(runs, "{:g}").items():
        train, test, norm = (
            run.measures[name] for name in ("train_accuracy", "test_accuracy", "weight_norm")
        )
        fits = np.flatnonzero(train >= FITS)
        gap = test[fits[0]] / test[-1] if len(fits) else np.nan
        steps = run.snapshot_iterations
        optimizer: Any = run.config.optimizer
        alone = (1 - optimizer.lr * optimizer.weight_decay) ** steps[-1]
        of[factor] = Trained(steps, train, test, norm, gap, alone)
    return of


def claims(e: Evidence) -> list[kit.Claim]:
    usual = e[1.0]
    eight = e[8.0]
    source = "Figure 3 (recalled), released notebook"
    fitted = bool(eight.train[-1] >= FITS)
    learnt = bool(usual.test[-1] > 0.5)
    return [
        kit.claim(
            "groks",
            f"Weights 8 times as large: where {FITS:.0%} of the training images are right, held-out"
            " accuracy is less than half of its last value",
            source,
            kit.less_than(0.5),
            eight.gap,
        ),
        kit.claim(
            "at-once",
            "Default weights: where 95% of the training images are right, held-out accuracy is"
            " nearly its last value (ratio)",
            source,
            kit.at_least(0.9),
            kit.given(learnt, usual.gap),
        ),
        kit.claim(
            "generalises",
            "In the end large weights generalise nearly as well (ratio of held-out accuracies)",
            source,
            kit.at_least(0.9),
            kit.given(fitted and learnt, eight.test[-1] / usual.test[-1]),
        ),
        kit.claim(
            "shrinks",
            "Meanwhile the norm of the large weights falls below a half, and training keeps it"
            " above what decay alone leaves, by more than 10 % (ratio to the first)",
            rf"{source}; decay alone: $(1 - \eta \lambda)^n$ = {eight.alone:.3g}",
            kit.Interval(1.1 * eight.alone, 0.5),
            kit.given(fitted, eight.norm[-1] / eight.norm[0]),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    runs = sorted(e.items())
    return kit.charts(
        *(
            kit.chart(
                "Default start" if factor == 1 else f"{factor:g} times as large",
                "accuracy",
                kit.line(run.steps[1:], run.train[1:], "training", "muted"),
                kit.line(run.steps[1:], run.test[1:], "held out", "theory"),
                log="x",
                limits=(0, 1.03),
            )
            for factor, run in runs
        ),
        kit.chart(
            "Norms",
            "norm",
            [
                kit.line(run.steps[1:], run.norm[1:], f"norm, start times {factor:g}")
                for factor, run in runs
            ],
            log="xy",
        ),
    )


def _wanted(*changes: str) -> dict[str, kit.Wanted]:
    settings = {"initialization.factor": FACTORS}
    return kit.grid("liu2023/mnist.yaml", settings, "{:g}", *changes)


AT_ONCE = {
    "at-once": (
        "From default weights both accuracies rise together, from the first epochs on and without"
        " the first layer."
    )
}
FIGURE = kit.Figure(
    id="liu2023-mnist",
    caption=(
        "Accuracies and norms of networks trained by AdamW on few MNIST images, from the default"
        " start and from weights eight times as large, which generalise only after their norm has"
        " shrunk."
    ),
    passes={
        "early": AT_ONCE,
        "slow": AT_ONCE,
        "random_features": AT_ONCE,
        "linear": {
            "groks shrinks": "Decay shrinks the large weights of a linear network too, as late."
        },
    },
    configs=_wanted(),
    presets={
        "full": _wanted(
            "dataset.per_class=100",
            "dataset.test_per_class=200",
            "architecture.widths=[200, 200]",
            "dtype=float64",
            "optimizer.batch_size=200",
            "optimizer.weight_decay=0.01",
            "optimizer.iterations=100000",
        )
    },
)
