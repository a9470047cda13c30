"""Checks of the arguments that the modes of Tachet des Combes et al. 2018 share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats


def as_times(t: ArrayLike) -> Floats:
    """Return times of any shape as float64; raises ValueError unless all are finite and at least 0."""
    times = as_floats(t, "t", axes=0, batched=True)
    if not (np.isfinite(times).all() and (times >= 0).all()):
        raise ValueError("times must be finite and at least 0")
    return times


def as_positive(values: ArrayLike, name: str) -> Floats:
    """Return `values` of any shape as float64; raises ValueError, naming `name`, unless all are finite and positive."""
    array = as_finite(values, name)
    if not (array > 0).all():
        raise ValueError(f"{name} must be positive, not {array.min()}")
    return array


def as_finite(values: ArrayLike, name: str) -> Floats:
    """Return `values` of any shape as float64; raises ValueError, naming `name`, unless all are finite."""
    array = as_floats(values, name, axes=0, batched=True)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def as_share(values: ArrayLike, name: str, *, closed: bool = False) -> Floats:
    """Return `values` as float64; raises ValueError unless all are in (0, 1), in (0, 1] when `closed`."""
    array = as_finite(values, name)
    if not ((array > 0) & ((array <= 1) if closed else (array < 1))).all():
        raise ValueError(f"{name} must be in (0, 1{']' if closed else ')'}, not in [{array.min()}, {array.max()}]")
    return array


def check_label(label: int) -> int:
    """Return `label`, 1 for a point of class D_1 and -1 for one of D_2; raises ValueError for anything else."""
    if label not in {1, -1}:
        raise ValueError(f"label must be 1 (class D_1) or -1 (class D_2), not {label}")
    return label
