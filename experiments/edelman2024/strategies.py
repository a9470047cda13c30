"""Networks along their training, on held-out chains: their distance from what counting predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.kinds import Streams
from dynamics_cli.recording.positions import (
    context_bigram,
    context_unigram,
    divergence,
    log_probabilities,
)

STRATEGIES = ("uniform", "unigram", "bigram")
LATER = len(STRATEGIES) - 1
"""Strategies that are learnt: an untrained network predicts uniformly."""
ORDER = "abstract; released notebook, cells 1 and 14"
"""Who says in which order they come."""
EQUAL_ROWS = {"equal_rows": ("dataset.rows=equal",)}
"""The null: chains without pairs to learn."""


@dataclass(frozen=True)
class Network:
    """A network along its training, on held-out chains whose matrices are known.

    `kl` (K,) is the divergence of the last token's probabilities from the row of its symbol,
    `losses` (K,) the cross entropy over all positions, `distances` (K, 3) the divergence of the
    network from each strategy, and `levels` (3,) that of the strategies from the row.
    """

    at: kit.Ints
    kl: kit.Floats
    losses: kit.Floats
    distances: kit.Floats
    levels: kit.Floats

    @property
    def firsts(self) -> list[float]:
        """Return the first update at which each strategy is the nearest; NaN where none is."""
        nearest = self.distances.argmin(1)
        return [kit.first_at(self.at, nearest == k) for k in range(len(STRATEGIES))]

    @property
    def passed(self) -> int:
        """Return how many strategies after the first, uniform, at which an untrained network is,
        are the nearest in their order, one after the other.
        """
        firsts = self.firsts
        passed = 0
        while passed < LATER and firsts[passed + 1] > firsts[passed]:
            passed += 1
        return passed

    @property
    def copies(self) -> bool:
        """Return whether it passed all strategies and ended at the last."""
        return self.passed == LATER and self.distances[-1].argmin() == 2


def network(run: kit.Run) -> Network:
    """Measure a network at each recorded state."""
    section: Any = run.config.dataset
    data = run.dataset()
    assert data.x_test is not None
    assert data.y_test is not None
    n, T = data.y_test.shape
    k = section.symbols
    P = section.transitions(section.streams_of(Streams(run.config.seed)))[-n:]
    symbols = data.x_test.reshape(n, T, k).argmax(-1)
    labels = data.y_test.astype(np.int64)[..., None]
    rows = P[np.arange(n), symbols[:, -1]]  # (n, k)
    strategies = [
        np.full((n, k), 1 / k),
        context_unigram(symbols, k)[:, -1],
        context_bigram(symbols, k)[:, -1],
    ]

    kl = []
    losses = []
    distances = []
    for i in range(len(run.snapshot_iterations)):
        h = run.network(i)(data.x_test)
        log_q = log_probabilities(h)  # (n, T, k)
        kl.append(divergence(rows, log_q[:, -1]).mean())
        losses.append(-np.take_along_axis(log_q, labels, -1).mean())
        distances.append([divergence(q, log_q[:, -1]).mean() for q in strategies])
    return Network(
        at=run.snapshot_iterations,
        kl=np.array(kl),
        losses=np.array(losses),
        distances=np.array(distances),
        levels=np.array([divergence(rows, np.log(q)).mean() for q in strategies]),
    )


def strategies(levels: kit.Floats) -> list[kit.Line]:
    """Return a level at the divergence of each strategy from the rows."""
    looks = ("theory dotted 0.8", "theory dashed 0.8", "muted dashed 0.8")
    return [*map(kit.level, levels, STRATEGIES, looks)]
