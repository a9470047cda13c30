"""The pairs and labels that the released code draws, by Python's and torch's generators."""

from __future__ import annotations

import random

import numpy as np

from dynamics_cli.datasets.algorithmic import ModularArithmetic
from dynamics_cli.kinds import Streams
from dynamics_cli.kinds.arrays import Ints

PAIR_SEED = 420
"""Of the released order of the pairs."""


class ReleasedPairs(ModularArithmetic, kind="doshi2023_pairs"):
    """`modular_arithmetic` with the draws of the released code of Doshi et al. 2023, where the seed
    is 0.

    `random.shuffle` of seed 420 orders the pairs, `torch.randint` of seed 0 replaces the labels of
    the first pairs. Another seed is added to the former and takes the place of the latter.
    """

    example = """\
dataset: {kind: doshi2023_pairs, p: 23, replaced_labels: 0.2}
architecture: {kind: two_layer, width: 100, activation: quadratic, outputs: 23}
initialization: {kind: doshi2023_weights, scale: 0.0855}
"""

    def order(self, streams: Streams) -> Ints:
        """Return the order (p^2,) of the pairs `p a + b`; the first are trained."""
        order = list(range(self.p**2))
        random.Random(PAIR_SEED + streams.seed).shuffle(order)
        return np.array(order)

    def replacements(self, streams: Streams, n: int, count: int, classes: int) -> tuple[Ints, Ints]:
        """Return the first `count` of `n` training labels, and the numbers of the classes that
        they get.
        """
        import torch

        generator = torch.Generator().manual_seed(streams.seed)
        return np.arange(count), torch.randint(0, classes, (count,), generator=generator).numpy()
