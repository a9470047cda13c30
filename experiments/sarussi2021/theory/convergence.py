"""The number of epochs after which SGD has a small loss, whatever the initial scale (Theorem
4.1, Appendix B).
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.least_distance import least_distance

PULL = 0.2784645427610738
"""The largest `z / (1 + exp(z))`, at `z = 1 + W(1/e)`, W Lambert's function."""


def epochs_bound(
    epsilon: Floats, x: Floats, y: Floats, W0: Floats, *, alpha: float, v: float, lr: float
) -> Floats:
    """Return the number of epochs of SGD on single points after which the mean loss has been below
    `epsilon` once.

    `W0` (2 k, d) are the initial neurons, `lr` is the step. The constants of the paper's bound are
    lost in the text at hand; these follow its proof. Let w* be the max-margin vector, W* = (w*,
    ..., -w*, ...), R the largest `||x_i||`, and S the sum of `|l'|` over all updates. An update
    adds `2 k lr v alpha |l'|` at least to <W, W*>, and `2 lr PULL + 2 k (lr v R)^2 |l'|` at most to
    ||W||^2. While every epoch of n updates has a point of loss above e, with `|l'| >= q = 1 -
    exp(-e)`, there are S / q epochs at most, and Cauchy and Schwarz bound S. Once an epoch has
    none, no loss changes by more than `2 k lr (v R)^2 n e` before its end.
    """
    n = len(y)
    neurons = len(W0)
    far = float(np.linalg.norm(x, axis=1).max())
    growth = neurons * lr * v * alpha
    square = neurons * (lr * v * far) ** 2
    target = np.sqrt(neurons) * float(np.linalg.norm(least_distance(y[:, None] * x).w))
    start = float(np.linalg.norm(W0))
    per_point = np.asarray(epsilon) / (1 + neurons * lr * (v * far) ** 2 * n)
    q = -np.expm1(-per_point)
    total = (target**2 * (2 * lr * PULL * n / q + square) + 2 * growth * target * start) / growth**2
    return np.asarray(total / q + 1)
