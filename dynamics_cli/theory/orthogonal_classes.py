"""A class of m orthogonal points under cross-entropy in full batches (Tachet des Combes et al. 2018, Appendix A.7).

    y_i' = s ||x_i||^2 z f_i,   z' = s sum_i y_i f_i,   f_i = 1 / (1 + exp(s z y_i)).

With equal norms and equal `y_i` this is one mode with `sqrt(m) y`, `z / sqrt(m)` and the norm `sqrt(m) ||x||`. Time
counts the *sum* over the m points: with the mean everything takes m times as long. Orthogonal points violate the strict
inequality of H1 (points of a class have positive inner products), but what it is for, that neurons stay active, holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats, as_floats
from dynamics_cli.theory.arguments import as_positive, as_times, check_label
from dynamics_cli.theory.hyperbola import ModePath
from dynamics_cli.theory.logistic_mode import logistic_mode


def orthogonal_rate(m: int, norm: ArrayLike = 1.0) -> Floats:
    """Return `sqrt(m) ||x||`, which stands for `||x||` in the equation of the logit: the gain of A.7 is `sqrt(m)`."""
    return np.asarray(np.sqrt(_check_count(m)) * as_positive(norm, "norm"))


def orthogonal_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, m: int, norm: ArrayLike = 1.0, *, label: int = 1
) -> ModePath:
    """Return the mode of `m` orthogonal points of equal norm on which the neuron starts with the same `y0`.

    `t`, `y0`, `z0` and `norm` broadcast. For `m = 1` it is `logistic_mode`. Raises ValueError as that, and when m < 1.
    """
    root = np.sqrt(_check_count(m))
    path = logistic_mode(t, root * np.asarray(y0), np.asarray(z0) / root, orthogonal_rate(m, norm), label=label)
    return ModePath(t=path.t, y=path.y / root, z=path.z * root, label=label)


def orthogonal_invariant(y: ArrayLike, z: ArrayLike, norms: ArrayLike) -> Floats:
    """Return `sum_i y_i^2 / ||x_i||^2 - z^2` for `y (..., m)`, `z (...)`, `norms (m,)`, conserved while all are active.

    With equal norms and values it is the paper's `m y^2 - ||x||^2 z^2` divided by `||x||^2`.
    """
    values = as_floats(y, "y", axes=1, batched=True) / as_positive(norms, "norms")
    return np.asarray(np.sum(values**2, axis=-1) - as_floats(z, "z", axes=0, batched=True) ** 2)


@dataclass(frozen=True)
class OrthogonalPath:
    """One neuron on m orthogonal points at T times."""

    t: Floats
    """(T,)"""
    y: Floats
    """(T, m) `w x_i`."""
    z: Floats
    """(T,)"""
    label: int

    @property
    def confidence(self) -> Floats:
        """(T, m) probability of the class of the points."""
        return np.asarray(expit(self.label * self.z[:, None] * np.maximum(self.y, 0.0)))


def orthogonal_flow(
    t: ArrayLike, y0: ArrayLike, z0: float, norms: ArrayLike, *, label: int = 1, rtol: float = 1e-12
) -> OrthogonalPath:
    """Integrate the system for orthogonal points of any `norms (m,)` and starts `y0 (m,)`, at ascending times `t (T,)`.

    Raises ValueError for times that do not ascend from at least 0, a point that does not activate the neuron at first,
    `label * z0 <= 0` (then some y could reach 0), or shapes that do not match.
    """
    start, lengths = as_floats(y0, "y0", axes=1), as_positive(as_floats(norms, "norms", axes=1), "norms")
    times, s = as_times(as_floats(t, "t", axes=1)), check_label(label)
    if start.shape != lengths.shape or (np.diff(times) < 0).any():
        raise ValueError(f"y0 {start.shape} and norms {lengths.shape} must match, and times ascend")
    if not ((start > 0).all() and s * z0 > 0):
        raise ValueError("every y0 must be positive, and z0 of the sign of label")
    squares = lengths**2

    def field(_: float, state: Floats) -> Floats:
        y, q = state[:-1], state[-1]  # q = s z
        f = expit(-q * y)
        return np.append(squares * q * f, y @ f)

    path = solve_ivp(
        field,
        (0.0, max(float(times.max(initial=0.0)), 1e-300)),
        np.append(start, s * z0),
        t_eval=times,
        method="DOP853",
        rtol=rtol,
        atol=1e-3 * rtol * float(min(start.min(), abs(z0))),
    )
    return OrthogonalPath(t=times, y=path.y[:-1].T, z=s * path.y[-1], label=s)


def _check_count(m: int) -> int:
    if m < 1:
        raise ValueError(f"m, the number of points, must be at least 1, not {m}")
    return m
