"""A class of any points under the hinge loss in full batches (Tachet des Combes et al. 2018, Appendix C.2).

One neuron w with output weight z, active on all m points of the class, follows `w' = z X`, `z' = w X` with X the sum of
the points whose margin is below 1: a hyperbola for `y = w X` (see `modes`); the part of w orthogonal to X stays.
The paper treats the time until the first point reaches margin 1; that point then drops out of X and the same holds
again with the rest, since by H1 (`x_i x_j > 0`) its margin goes on rising. Time counts the *sum* over the m points:
with the mean everything takes m times as long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dynamics_cli.measures.arrays import Bools, Floats


def hinge_class(t: ArrayLike, x: ArrayLike, w0: ArrayLike, z0: float) -> tuple[Floats, Floats]:
    """Return the outputs (T, m) of a neuron `w0 (d,)`, `z0` on the points `x (m, d)` of D_1 at times `t (T,)`.

    With it goes when each point reaches margin 1, (m,), 0 if it starts there: until the first does the paper's C.2
    holds as printed. Exact, piece by piece, until every point has margin 1. Raises ValueError for points that violate
    H1 (`x_i x_j > 0`), a neuron that is not active on all of them (H2), or `z0 <= 0` (H3).
    """
    points, start, times = (np.asarray(values, np.float64) for values in (x, w0, t))
    if not (points @ points.T > 0).all():
        raise ValueError("points of one class must have positive inner products (H1)")
    if not ((points @ start > 0).all() and z0 > 0):
        raise ValueError("the neuron must be active on all points (H2), with a positive output weight (H3)")
    w, z = np.tile(start, (len(times), 1)), np.full(len(times), float(z0))
    v, q, now = start, float(z0), 0.0
    open_, satisfied = q * (points @ start) < 1.0, np.zeros(len(points))
    while open_.any():
        total = points[open_].sum(axis=0)
        duration, first = _next(points, open_, total, v, q)
        later = times > now
        w[later], z[later] = _move(np.minimum(times[later] - now, duration), total, v, q)
        (v,), (q,) = _move(np.array([duration]), total, v, q)
        now += duration
        satisfied[first], open_[first] = now, False
    return z[:, None] * (w @ points.T), satisfied


def _move(t: Floats, total: Floats, w: Floats, q: float) -> tuple[Floats, Floats]:
    """Return `w (T, d)` and `z (T,)` after durations `t (T,)` of `w' = z X`, `z' = w X` (Eq. 27 with X for x)."""
    length = float(np.linalg.norm(total))
    y = float(w @ total)
    cosh, sinh = np.cosh(length * t), np.sinh(length * t)
    gain = y * (cosh - 1.0) + length * q * sinh
    return w + gain[:, None] * total / length**2, q * cosh + y / length * sinh


def _next(x: Floats, open_: Bools, total: Floats, w: Floats, q: float) -> tuple[float, Bools]:
    """Return when the next of the points `open_ (m,)` reaches margin 1, and which points do then."""
    below = np.flatnonzero(open_)

    def margins(t: float) -> Floats:
        (v,), (r,) = _move(np.array([t]), total, w, q)
        return np.asarray(r * (x[below] @ v))

    def lead(t: float) -> float:
        return float(margins(t).max()) - 1.0

    # margins rise at least as u = q y does on the slowest: double until one has passed
    end = 1.0 / float(np.linalg.norm(total))
    while lead(end) < 0:
        end *= 2.0
    duration = float(brentq(lead, 0.0, end, xtol=1e-15, rtol=1e-14)) if lead(0.0) < 0 else 0.0
    reached = margins(duration)
    first = np.zeros_like(open_)
    first[below[reached >= min(1.0, float(reached.max())) - 1e-12]] = True
    return duration, first
