"""Several neurons, several classes, several points: the extensions of one mode under cross-entropy.

Appendices A.4, A.2 and A.7 of Tachet des Combes et al. 2018. Each of them is a mode of `modes` in other coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats

from .logistic_integral import progress
from .modes import FAR, Mode, ModePath, Outcome, logistic_mode


class LayerPath(ModePath):
    """h neurons on one class at times `t (...)`: `y` and `z` are (..., h)."""

    @property
    def u(self) -> Floats:
        """(...) output of the network on the class, `sum_i z^i max(0, y^i)`."""
        return np.asarray(np.sum(super().u, axis=-1))


def hidden_layer(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: float = 1.0, *, p: float = 1.0, label: int = 1
) -> LayerPath:
    """Return any number of neurons of one class at times `t` of any shape from `y0 (h,)`, `z0 (h,)` (A.4).

        (y^i)' = s p ||x||^2 z^i f,   (z^i)' = s p y^i f,   f = 1 / (1 + exp(s sum_j z^j y^j)).

    (As printed, the denominators lack the `1 +`: then Eq. 12 is not the case of one neuron.) All neurons share f,
    hence the progress tau: `y^i + s ||x|| z^i` grows by `exp(tau)` for every i, `y^i - s ||x|| z^i` shrinks by it,
    and the logit is `a exp(2 tau) - b exp(-2 tau)` with a and b summed over the neurons. The paper solves the case in
    which all `c_i` are 0, where the sum of the logits follows Eq. 14; this solves all in which no neuron dies.
    Inactive ones stay.

    Time as in `logistic_mode`. Raises ValueError when some active neuron would die (`0 < y0 < -s ||x|| z0`), which no
    closed form covers.
    """
    times, mode = np.asarray(t, np.float64), Mode.of(y0, z0, norm, p, label)
    if (mode.outcome == Outcome.DIES).any():
        raise ValueError("an active neuron with y0 < -s ||x|| z0 dies: integrate the ODE instead")
    active = mode.outcome != Outcome.FROZEN
    tau = progress(times, np.asarray(norm * p), mode.a[active].sum(), mode.b[active].sum())
    tau = np.where(active, np.minimum(tau[..., None], FAR), 0.0)  # (..., h)
    full, full_times = mode.spread(np.broadcast_to(times[..., None], tau.shape))
    path = full.at(tau, full_times)
    return LayerPath(t=times, y=path.y, z=path.z, label=label)


def softmax_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, classes: int, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0
) -> ModePath:
    """Return the mode of a class of share `p` in a network of C = `classes` classes under softmax (setting of A.2).

    The paper proves that modes are independent under H4-H6 but gives no curve. When row k of W is the only one active
    on class k (`y = w^k x`) and the entries of column k of Z off the diagonal are equal, the difference `z` of the
    diagonal entry to them (`z0` at first) obeys

        y' = p ||x||^2 z f,   z' = p C / (C - 1) y f,   f = 1 - P_k = 1 / (1 + exp(u) / (C - 1)),   u = z y,

    one hyperbola again, `C y^2 / (C - 1) - ||x||^2 z^2`, and with `r = sqrt(C / (C - 1))` the mode for `r y`, `z / r`
    and the norm `r ||x||`. For C = 2 it is `logistic_mode` of the difference of the two output weights.

    `t`, `y0`, `z0`, `norm` and `p` broadcast; time as in `logistic_mode`.
    """
    r = np.sqrt(classes / (classes - 1))
    mode, times = Mode.of(r * np.asarray(y0), np.asarray(z0) / r, r * np.asarray(norm), p, 1).spread(t)
    path = mode.at(progress(times, mode.rate, mode.a, mode.b, 1.0 / (classes - 1)), times)
    return ModePath(t=path.t, y=path.y / r, z=path.z * r, label=1, classes=classes)


def orthogonal_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, m: int, norm: ArrayLike = 1.0, *, label: int = 1
) -> ModePath:
    """Return the mode of `m` orthogonal points of equal norm on which the neuron starts with the same `y0` (A.7).

        y_i' = s ||x_i||^2 z f_i,   z' = s sum_i y_i f_i,   f_i = 1 / (1 + exp(s z y_i))

    is one mode with `sqrt(m) y`, `z / sqrt(m)` and the norm `sqrt(m) ||x||`, so that learning gains `sqrt(m)`. Time
    counts the *sum* over the m points: with the mean everything takes m times as long. Orthogonal points violate the
    strict inequality of H1 (points of a class have positive inner products), but what it is for, that neurons stay
    active, holds.

    `t`, `y0`, `z0` and `norm` broadcast. For `m = 1` it is `logistic_mode`.
    """
    root = np.sqrt(m)
    path = logistic_mode(t, root * np.asarray(y0), np.asarray(z0) / root, root * np.asarray(norm), label=label)
    return ModePath(t=path.t, y=path.y / root, z=path.z * root, label=label)
