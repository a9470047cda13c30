"""What the figures of this paper read of a run: its two groups of neurons, and how tightly they are clustered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.datasets.samples import Samples

from .theory.agreement import Directions, agreement_share
from .theory.clustering import clustering_ratio, largest_angle, outside_linear_regime, signs_differ

ORIGIN: dict[str, kit.Origin] = {
    "network": "stated", "loss": "stated", "optimizer": "stated", "data": "assumed", "width": "assumed",
    "second layer": "assumed", "slope": "assumed", "scale of initialisation": "assumed", "step": "assumed",
    "epochs": "assumed", "seed": "assumed",
}  # fmt: skip
"""The paper prints no numbers for its experiments."""
SMALL = 0.01
"""What "zero" means of a share: the width of a line in a plot of shares."""


@dataclass(frozen=True)
class Groups:
    """The two groups of neurons at the recorded states, in float64, and the data that they were trained on."""

    data: Samples
    iterations: kit.Ints
    """(K,)"""
    epochs: kit.Floats
    """(K,) passes over the training set; steps where the batch is full."""
    W: kit.Floats
    """(K, k, d) neurons with output weight +v."""
    U: kit.Floats
    """(K, k', d) neurons with output weight -v."""
    alpha: float
    v: float

    @property
    def last(self) -> tuple[kit.Floats, kit.Floats]:
        """Both groups at the last state: (k, d) and (k', d)."""
        return self.W[-1], self.U[-1]

    def at(self, iteration: int) -> int:
        """Return the index of the recorded state nearest to an iteration."""
        return int(np.argmin(np.abs(self.iterations - iteration)))

    @property
    def network(self) -> tuple[kit.Floats, kit.Floats]:
        """The last hidden weights (m, d) of both groups together, `w` first, and the output weights (m,)."""
        W, U = self.last
        return np.concatenate([W, U]), self.v * np.concatenate([np.ones(len(W)), -np.ones(len(U))])

    @property
    def par_shares(self) -> dict[str, kit.Floats]:
        """Shares (K,) of neurons `w` and `u` that are in the PAR."""
        x, y = self.data.x, self.data.y
        return {"w": agreement_share(x, y, self.W), "u": agreement_share(x, y, self.U, sign=-1)}

    def joint_cosine(self, i: int, predicted: Directions) -> float:
        """Return the cosine of `(w_bar, u_bar)` of state `i` with the predicted `(w, u)`."""
        return cosine(np.concatenate([self.W[i].mean(axis=0), self.U[i].mean(axis=0)]), predicted.joint)


@dataclass(frozen=True)
class Clustering:
    """How tightly the neurons are clustered, against epochs (K,)."""

    epochs: kit.Floats
    ratio: kit.Floats
    """`2 r / ||w_bar - u_bar||`."""
    angle: kit.Floats
    """Largest angle within a group, in degrees."""
    outside: Mapping[str, kit.Floats]
    """Shares of the `training` and the `held-out` points outside the linear regime; NaN where there are none."""
    differ: int
    """Points of both at which the last network and the classifier `w_bar - u_bar` have different signs."""
    sizes: Mapping[str, int]
    """Numbers of the points."""


def read_groups(run: kit.Run) -> Groups:
    """Return the two groups of neurons of a run, up to the last state whose weights are finite.

    Raises InputError unless the network has two layers, the second fixed with both signs.
    """
    architecture = run.config.architecture
    if not isinstance(architecture, TwoLayer) or architecture.train_output:
        raise kit.InputError(
            f"{run.path}: the figures of sarussi2021 need a two_layer network with train_output: false"
        )
    H = np.array(run.parameters["hidden_weight"], dtype=np.float64)  # (K, m, d)
    a = np.asarray(run.state(0)["output_weight"], dtype=np.float64)
    if not ((a > 0).any() and (a < 0).any()):
        raise kit.InputError(
            f"{run.path}: output weights of both signs are needed (initialization.output_signs: halves)"
        )
    finite = np.isfinite(H).all(axis=(1, 2))
    count = len(H) if finite.all() else max(int(np.argmin(finite)), 1)
    iterations = np.asarray(run.snapshot_iterations[:count], dtype=np.int64)
    batch = getattr(run.config.optimizer, "batch_size", None)
    data = run.dataset()
    per_epoch = 1.0 if batch is None else np.ceil(data.n / batch)
    slope = architecture.sigma.negative_slope or 0.0
    v = float(np.abs(a).max())
    return Groups(data, iterations, iterations / per_epoch, H[:count, a > 0], H[:count, a < 0], slope, v)


def clustering(run: kit.Run) -> Clustering:
    """Return both clustering measures and the shares of points outside the linear regime."""
    groups = read_groups(run)
    W, U, none = groups.W, groups.U, np.full(len(groups.W), np.nan)
    points = {"training": groups.data.x, "held-out": groups.data.x_test}
    return Clustering(
        epochs=groups.epochs,
        ratio=clustering_ratio(W, U),
        angle=np.maximum(largest_angle(W), largest_angle(U)),
        outside={
            name: none if x is None else outside_linear_regime(x, W, U).mean(axis=-1) for name, x in points.items()
        },
        differ=sum(int(signs_differ(x, W[-1], U[-1], groups.alpha).sum()) for x in points.values() if x is not None),
        sizes={name: 0 if x is None else len(x) for name, x in points.items()},
    )


def nearly_zero(part: str, size: int) -> kit.Interval:
    """Return what zero means of a share of so many points: below `SMALL`.

    Held-out points are a sample, so that two binomial standard deviations of their share are allowed for.
    """
    if part == "training" or not size:
        return kit.less_than(SMALL)
    chance = 2 * float(np.sqrt(SMALL * (1 - SMALL) / size))
    return kit.Interval(None, SMALL + chance, f"< {SMALL:g} + {chance:.2g} (two binomial deviations)")


def cosine(a: kit.Floats, b: kit.Floats) -> float:
    """Return the cosine of two vectors; NaN where one is 0 or not finite."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else float("nan")
