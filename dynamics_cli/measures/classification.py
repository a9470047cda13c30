"""Accuracy of a classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats


def sign_accuracy(h: ArrayLike, y: ArrayLike) -> Floats:
    """Return the fraction `(...)` of points whose output `h (..., n)` has the sign of the label `y (n,)` in {-1, +1}.

    An output of exactly 0 (or NaN) is wrong. Raises ValueError on other labels or lengths that differ.
    """
    scores, labels = as_floats(h, "h", axes=1, batched=True), as_floats(y, "y", axes=1)
    if scores.shape[-1] != len(labels) or len(labels) == 0:
        raise ValueError(f"{scores.shape[-1]} outputs for {len(labels)} labels")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ValueError("labels must be -1 or +1")
    return np.asarray(np.mean(scores * labels > 0, axis=-1))


def argmax_accuracy(h: ArrayLike, y: ArrayLike) -> Floats:
    """Return the fraction `(...)` of points whose largest output of `h (..., n, C)` is that of class `y (n,)`.

    Equal largest outputs count as the first of them; an output row with a NaN is wrong. Raises ValueError when labels
    are not integers in 0..C-1 or lengths differ.
    """
    scores, labels = as_floats(h, "h", axes=2, batched=True), as_floats(y, "y", axes=1)
    if scores.shape[-2] != len(labels) or len(labels) == 0:
        raise ValueError(f"{scores.shape[-2]} outputs for {len(labels)} labels")
    if not np.isin(labels, np.arange(scores.shape[-1])).all():
        raise ValueError(f"labels must be integers in 0..{scores.shape[-1] - 1}")
    right = (np.argmax(scores, axis=-1) == labels) & ~np.isnan(scores).any(axis=-1)
    return np.asarray(np.mean(right, axis=-1))
