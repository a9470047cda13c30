"""Accuracy of a classifier, and margins of a homogeneous network (Sarussi et al. 2021, Eqs. 5 and 6)."""

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


def normalised_margin(h: ArrayLike, y: ArrayLike, norm: ArrayLike, *, degree: int = 1) -> Floats:
    """Return `min_i y_i h_i / norm^degree` `(...)` for outputs `h (..., n)` and weight norms `(...)` (Eq. 5).

    The degree of homogeneity is 1 where one layer is trained. NaN where the norm is 0.
    """
    margins = as_floats(h, "h", axes=1, batched=True) * as_floats(y, "y", axes=1)
    return _over(margins.min(axis=-1), norm, degree)


def smoothed_margin(loss: ArrayLike, norm: ArrayLike, *, degree: int = 1) -> Floats:
    """Return `log(1 / (exp(L) - 1)) / norm^degree` `(...)` for the summed logistic loss `L` (Eq. 6).

    Gradient flow never lowers it once `L < log 2`. NaN where the norm is 0, infinite for a loss of 0.
    """
    losses = as_floats(loss, "loss", axes=0, batched=True)
    if (losses < 0).any():
        raise ValueError("a logistic loss is not negative")
    with np.errstate(divide="ignore", over="ignore"):
        margins = -losses - np.log(-np.expm1(-losses))  # of exp(L) - 1 = exp(L) (1 - exp(-L)), safe for large L
    return _over(margins, norm, degree)


def _over(margins: Floats, norm: ArrayLike, degree: int) -> Floats:
    sizes = as_floats(norm, "norm", axes=0, batched=True) ** degree
    top, bottom = np.broadcast_arrays(margins, sizes)
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))
