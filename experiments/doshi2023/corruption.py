"""Runs on modular addition with replaced labels, as the figures read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from ..gromov2023.grokking import layers
from ..gromov2023.theory.analytic import participation

NAN = np.nan
ZERO = 1e-12
"""A network is 0 if its loss is that of outputs 0 to this share: rounding alone decides its
largest output.
"""
PERIODIC = 0.5
"""Inverse participation ratio from which on a neuron counts as periodic, as in `gromov2023-ipr`."""
COEXISTENCE = kit.Wanted("doshi2023/coexistence.yaml")


def smaller(p: int, N: int) -> tuple[str, ...]:
    """Return the changes that make the released network one of p classes and N neurons."""
    return (
        f"dataset.p={p}",
        f"architecture.outputs={p}",
        f"architecture.width={N}",
        f"initialization.scale={0.5 / (2 * N) ** (1 / 3):.4g}",
        f"optimizer.eps={p * 1e-8:.3g}",
    )


@dataclass(frozen=True)
class Corrupted:
    """A run at its recorded epochs (K,); a network that has become 0 has no accuracy, which is
    NaN then.
    """

    p: int
    noise: float
    """Share of the training labels that were replaced,"""
    replaced_pairs: int
    """and their number."""
    epochs: kit.Ints
    train: kit.Floats
    """Accuracy on the training pairs as they are labelled,"""
    kept: kit.Floats
    """on those that keep their label,"""
    replaced: kit.Floats
    """on the others, NaN where there are none,"""
    test: kit.Floats
    """and on the held-out pairs, whose labels are right."""
    test_loss: kit.Floats
    """Averaged over pairs and outputs, as the released code prints it."""
    ipr: kit.Floats
    """(N,) inverse participation ratios of the last network, averaged over U, V, W."""

    @property
    def plateau(self) -> float:
        """Return the accuracy on the training pairs of a network that gives all pairs their
        right class.
        """
        return 1 - self.noise * (1 - 1 / self.p)

    @property
    def chance(self) -> float:
        """Return the largest accuracy on replaced labels by chance: 1/p and three standard
        deviations.
        """
        return 1 / self.p + 3 * float(
            np.sqrt((1 - 1 / self.p) / self.p / max(self.replaced_pairs, 1))
        )

    @property
    def periodic(self) -> float:
        """Return the share of the last network's neurons that are periodic."""
        return float(np.mean(self.ipr > PERIODIC))

    def at(self, name: str, epoch: int) -> float:
        """Return a curve at an epoch; NaN where that was not recorded."""
        rows = np.flatnonzero(self.epochs == epoch)
        return float(getattr(self, name)[rows[0]]) if len(rows) else NAN


def corrupted(run: kit.Run) -> Corrupted:
    """Read a run."""
    data = run.config.dataset
    measures = run.measures
    p, noise = int(data.p), float(data.replaced_labels or 0.0)  # type: ignore[attr-defined]
    epochs = run.snapshot_iterations
    train = np.asarray(measures["train_accuracy"])
    by_part = (
        measures["train_accuracy_by_replaced"]
        if noise
        else np.stack([train, np.full(len(train), NAN)], 1)
    )
    loss = np.asarray(measures["test_loss"])  # of one-hot labels: 1 where all outputs are 0
    parts = np.column_stack([train, by_part, measures["test_accuracy"]])
    parts[np.abs(loss - 1) < ZERO] = NAN
    return Corrupted(
        p,
        noise,
        replaced_pairs=round(noise * round(data.train_fraction * p**2)),  # type: ignore[attr-defined]
        epochs=epochs,
        train=parts[:, 0],
        kept=parts[:, 1],
        replaced=parts[:, 2],
        test=parts[:, 3],
        test_loss=loss / p,
        ipr=mean_ipr(*layers(run, -1)) if run.config.record.parameters == "all" else np.zeros(0),
    )


def accuracies(
    x: kit.Floats | kit.Ints, parts: Mapping[str, kit.Floats], plateau: float
) -> list[kit.Line]:
    """Return accuracies against x by part of the pairs, and the plateau where labels are replaced
    (`plateau` < 1).
    """
    found = [
        kit.line(x, parts["train"], "training pairs", "measured"),
        kit.line(x, parts["test"], "test pairs", "rank"),
    ]
    if plateau < 1:
        found += [
            kit.line(x, parts["kept"], "kept labels", "C2 dashed"),
            kit.line(x, parts["replaced"], "replaced labels", "C3 dashed"),
            kit.level(plateau, r"$1 - \xi (1 - 1/p)$", "theory dotted 0.8"),
        ]
    return found


def mean_ipr(U: kit.Floats, V: kit.Floats, W: kit.Floats) -> kit.Floats:
    """Return the inverse participation ratio (N,) of each neuron, averaged over rows of U, V and
    columns of W.
    """
    return np.asarray(np.mean([participation(rows) for rows in (U, V, W.T)], axis=0))
