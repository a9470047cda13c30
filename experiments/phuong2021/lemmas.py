"""Lemmas 1 to 3 and A.4 on a run: which sector every neuron is in, from state to state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.runs import Run
from dynamics_cli.theory.canonical_neurons import canonical_neurons
from dynamics_cli.theory.extremal_sectors import extremal_directions, predicted_sector, sector_of


@dataclass(frozen=True)
class SectorHistory:
    """What became of the neurons of one run."""

    name: str
    times: Floats
    """(K,) of the recorded states."""
    counts: NDArray[np.int64]
    """(K, 4) neurons that are dead, in sigma+ with a_j > 0, in sigma- with a_j < 0, anywhere else."""
    left: int
    """Neurons that left their extremal sector after they had entered it (Lemma 3: none)."""
    sign_changes: int
    """Neurons whose output weight changed its sign (Lemma A.4: none)."""
    extremal: tuple[int, int]
    """Number of positive and negative extremal directions of the data (Lemma 2: 1 and 1)."""
    predicted: int
    """How many of the two extremal sectors are those of Eqs. 13 and 14."""
    spans: bool
    """Whether the support examples of each class span the space, as Theorem 1 assumes."""

    @property
    def outside(self) -> int:
        """Neurons of the last state that are neither dead nor in their extremal sector (Lemma 1: none)."""
        return int(self.counts[-1, 3])

    @property
    def dead(self) -> int:
        """Neurons of the last state that are active on no example."""
        return int(self.counts[-1, 0])


def sector_history(name: str, run: Run) -> SectorHistory:
    """Enumerate the extremal sectors of a run's data, and follow its neurons.

    Raises ValueError when the data have more points than can be enumerated.
    """
    data = run.dataset()
    x, y = data.x, data.y
    both = [extremal_directions(x, y, sign) for sign in (1, -1)]
    theirs = [predicted_sector(x, y, sign) for sign in (1, -1)]
    found = sum(len(one) == 1 and bool((one[0].sector == s).all()) for one, s in zip(both, theirs, strict=True))
    W, a = (np.asarray(run.parameters[key], np.float64) for key in ("hidden_weight", "output_weight"))
    sectors = sector_of(x, W)  # (K, m, n)
    dead = (sectors <= 0).all(axis=-1)  # (K, m)
    inside = np.stack([(sectors == s).all(axis=-1) & (sign * a > 0) for s, sign in zip(theirs, (1, -1), strict=True)])
    entered = np.maximum.accumulate(inside, axis=1)
    optimizer = run.config.optimizer
    steps = np.array(run.snapshot_iterations)
    times = optimizer.times()[steps] if optimizer.kind == "gradient_flow" else steps * optimizer.lr
    return SectorHistory(
        name=name,
        times=times,
        counts=np.stack(
            [dead.sum(1), inside[0].sum(1), inside[1].sum(1), (~dead & ~inside.any(axis=0)).sum(1)], axis=1
        ),
        left=int((entered & ~inside).any(axis=(0, 1)).sum()),
        sign_changes=int((np.sign(a) != np.sign(a[0])).any(axis=0).sum()),
        extremal=(len(both[0]), len(both[1])),
        predicted=found,
        spans=canonical_neurons(x, y).spans,
    )
