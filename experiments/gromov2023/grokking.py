"""What a run on modular addition shows, and the runs that the figures share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .theory.analytic import participation

LEARNT = 0.99
"""Accuracy from which on a split counts as learnt."""
NAN = np.nan
SIZES = (
    "dataset.p=97",
    "architecture.width=500",
    "architecture.outputs=97",
    "initialization.scale=0.05",
)
"""The paper's sizes."""
FULL = (*SIZES, "dataset.train_fraction=0.49")
GD = "gradient descent"
MOMENTUM = "momentum"
ADAMW = "AdamW"
KEYS = {GD: "gd", MOMENTUM: "momentum", ADAMW: "adamw"}
"""In the ids of claims."""
RUNS: dict[str, kit.Wanted] = {
    GD: kit.Wanted("gromov2023/addition.yaml"),
    MOMENTUM: kit.Wanted(
        "gromov2023/addition.yaml",
        ("optimizer.lr=0.645", "optimizer.momentum=0.9", "optimizer.iterations=800"),
    ),
    ADAMW: kit.Wanted("gromov2023/adamw.yaml"),
}
STEPS = {
    GD: ["optimizer.lr=5.155"],
    MOMENTUM: ["optimizer.lr=3.093", "optimizer.iterations=200"],
    ADAMW: ["optimizer.iterations=200"],
}
PAPER: dict[str, kit.Wanted] = {
    name: kit.Wanted(run.config, (*run.overrides, *FULL, *STEPS[name]))
    for name, run in RUNS.items()
}
"""Of preset `full`: steps 500 and 300 for the loss averaged over the outputs."""


NO_DECAY = "Gradient descent has no decay here: this null leaves its run as it is."


def chosen(*names: str) -> tuple[dict[str, kit.Wanted], dict[str, dict[str, kit.Wanted]]]:
    """Return the runs of these names, and their presets."""
    return {name: RUNS[name] for name in names}, {"full": {name: PAPER[name] for name in names}}


OWN_FORM = (
    "architecture.output_scale=1.0752688e-4",
    "initialization.scale=1.0",
    "optimizer.iterations=4000",
    "record.snapshots={kind: every, interval: 20}",
)
"""The paper's network, `W (U n + V m)^2 / (D N)` with D = 2 p columns and unit Gaussians, at p =
31 and N = 150.
"""


def own_form(*names: str) -> dict[str, kit.Variant]:
    """Return the variant of a figure that trains descent of these names in the paper's own form."""
    steps = {
        GD: "optimizer.lr=1427.0",
        MOMENTUM: "optimizer.lr=285.3",
    }  # as the others, over s^2 of the same start
    configs = {
        name: kit.Wanted(RUNS[name].config, (*RUNS[name].overrides, *OWN_FORM, steps[name]))
        for name in names
    }
    caption = (
        "Descent trains the network over D N from unit Gaussians, the paper's own form; AdamW as"
        " before."
    )
    return {"paper": kit.Variant("in the paper's own form", caption, configs)}


@dataclass(frozen=True)
class Grokking:
    """A run at its recorded epochs (K,)."""

    p: int
    epochs: kit.Ints
    train: kit.Floats
    """Accuracy on the training pairs,"""
    test: kit.Floats
    """and on the others."""
    train_loss: kit.Floats
    """Averaged over samples and outputs."""
    test_loss: kit.Floats
    ipr: kit.Floats
    """(K, 3) mean inverse participation ratios of U, V, W."""
    first: tuple[kit.Floats, kit.Floats, kit.Floats]
    """U (N, p), V (N, p), W (p, N) at the start,"""
    last: tuple[kit.Floats, kit.Floats, kit.Floats]
    """and at the end."""

    def learnt(self, accuracy: kit.Floats) -> float:
        """Return the first recorded epoch at which a split is learnt; NaN where none is."""
        return kit.first_at(self.epochs, accuracy > LEARNT)

    @property
    def t_train(self) -> float:
        """Return when the training pairs are learnt."""
        return self.learnt(self.train)

    @property
    def t_test(self) -> float:
        """Return when the others are."""
        return self.learnt(self.test)

    def at(self, values: kit.Floats, epoch: float) -> float:
        """Return values (K,) at a recorded epoch; NaN at none."""
        return float(values[np.searchsorted(self.epochs, epoch)]) if np.isfinite(epoch) else NAN


def layers(run: kit.Run, i: int) -> tuple[kit.Floats, kit.Floats, kit.Floats]:
    """Return U (N, p), V (N, p), W (p, N) of snapshot i."""
    state = kit.in_double(run.state(i))
    U, V = np.split(state["hidden_weight"], 2, axis=1)
    return U, V, state["output_weight"]


def grokking(run: kit.Run) -> Grokking:
    """Read a run."""
    epochs = run.snapshot_iterations
    states = [layers(run, i) for i in range(len(epochs))]
    p = states[0][0].shape[1]
    return Grokking(
        p,
        epochs,
        first=states[0],
        last=states[-1],
        train=run.measures["train_accuracy"],
        test=run.measures["test_accuracy"],
        train_loss=run.losses[np.searchsorted(run.loss_iterations, epochs)] / p,
        test_loss=run.measures["test_loss"] / p,
        ipr=np.array([[participation(rows).mean() for rows in (U, V, W.T)] for U, V, W in states]),
    )


Evidence = dict[str, Grokking]
"""Optimizer -> its run."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs of a figure."""
    return {name: grokking(run) for name, run in runs.items()}
