"""What the figures of this paper read of a run: its two groups of neurons, and how tightly they are clustered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.groups import clustering_ratio, largest_angle, outside_linear_regime
from dynamics_cli.reproduction.figure import Origin
from dynamics_cli.runs import Run
from dynamics_cli.theory.agreement import Directions

ORIGIN: dict[str, Origin] = {
    "network": "stated",
    "loss": "stated",
    "optimizer": "stated",
    "data": "assumed",
    "width": "assumed",
    "second layer": "assumed",
    "slope": "assumed",
    "scale of initialisation": "assumed",
    "step": "assumed",
    "epochs": "assumed",
    "seed": "assumed",
}
"""The paper prints no numbers for its experiments."""
SMALL = 0.01
"""What "zero" means of a share: the width of a line in a plot of shares."""


@dataclass(frozen=True)
class Groups:
    """The two groups of neurons at the recorded states, in float64."""

    iterations: Ints
    """(K,)"""
    epochs: Floats
    """(K,) passes over the training set; steps where the batch is full."""
    W: Floats
    """(K, k, d) neurons with output weight +v."""
    U: Floats
    """(K, k', d) neurons with output weight -v."""
    alpha: float
    v: float

    @property
    def last(self) -> tuple[Floats, Floats]:
        """Both groups at the last state: (k, d) and (k', d)."""
        return self.W[-1], self.U[-1]

    def at(self, iteration: int) -> int:
        """Return the index of the recorded state nearest to an iteration."""
        return int(np.argmin(np.abs(self.iterations - iteration)))


@dataclass(frozen=True)
class Clustering:
    """How tightly the neurons are clustered, against epochs (K,)."""

    epochs: Floats
    ratio: Floats
    """`2 r / ||w_bar - u_bar||`."""
    angle: Floats
    """Largest angle within a group, in degrees."""
    outside_train: Floats
    """Share of the training points outside the linear regime."""
    outside_test: Floats
    """Share of the held-out points; NaN where there are none."""


def read_groups(run: Run) -> Groups:
    """Return the two groups of neurons of a run, up to the last state whose weights are finite.

    Raises InputError unless the network has two layers, the second fixed with both signs.
    """
    architecture = run.config.architecture
    if architecture.kind != "two_layer" or architecture.train_output:
        raise InputError(f"{run.path}: the figures of sarussi2021 need a two_layer network with train_output: false")
    H = np.array(run.parameters["hidden_weight"], dtype=np.float64)  # (K, m, d)
    a = np.asarray(run.state(0)["output_weight"], dtype=np.float64)
    if not ((a > 0).any() and (a < 0).any()):
        raise InputError(f"{run.path}: output weights of both signs are needed (initialization.output_signs: halves)")
    finite = np.isfinite(H).all(axis=(1, 2))
    count = len(H) if finite.all() else max(int(np.argmin(finite)), 1)
    iterations = np.asarray(run.snapshot_iterations[:count], dtype=np.int64)
    batch = getattr(run.config.optimizer, "batch_size", None)
    per_epoch = 1.0 if batch is None else np.ceil(run.dataset().n / batch)
    slope = {"relu": 0.0, "linear": 1.0}.get(architecture.activation, architecture.slope or 0.0)
    v = float(np.abs(a).max())
    return Groups(iterations, iterations / per_epoch, H[:count, a > 0], H[:count, a < 0], slope, v)


def clustering(run: Run) -> Clustering:
    """Return both clustering measures and the shares of points outside the linear regime."""
    groups, data = read_groups(run), run.dataset()
    held_out = data.x_test
    angles = np.maximum(largest_angle(groups.W), largest_angle(groups.U))
    return Clustering(
        epochs=groups.epochs,
        ratio=clustering_ratio(groups.W, groups.U),
        angle=angles,
        outside_train=outside_linear_regime(data.x, groups.W, groups.U).mean(axis=-1),
        outside_test=(
            np.full(len(angles), np.nan)
            if held_out is None
            else outside_linear_regime(held_out, groups.W, groups.U).mean(axis=-1)
        ),
    )


def output_weights(groups: Groups) -> tuple[Floats, Floats]:
    """Return the last hidden weights (m, d) of both groups together, and the output weights (m,)."""
    W, U = groups.last
    return np.concatenate([W, U]), groups.v * np.concatenate([np.ones(len(W)), -np.ones(len(U))])


def cosine(a: Floats, b: Floats) -> float:
    """Return the cosine of two vectors; NaN where one is 0 or not finite."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else float("nan")


def joint_cosine(groups: Groups, i: int, predicted: Directions) -> float:
    """Return the cosine of `(w_bar, u_bar)` of state `i` with the predicted `(w, u)`."""
    return cosine(np.concatenate([groups.W[i].mean(axis=0), groups.U[i].mean(axis=0)]), predicted.joint)
