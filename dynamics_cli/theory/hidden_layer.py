"""Any number of hidden neurons on one class under cross-entropy (Tachet des Combes et al. 2018, Appendix A.4).

    (y^i)' = s p ||x||^2 z^i f,   (z^i)' = s p y^i f,   f = 1 / (1 + exp(s sum_j z^j y^j)).

(As printed, the denominators lack the `1 +`: then Eq. 12 is not the case of one neuron.) All neurons share f, hence the
progress tau of `hyperbola`: `y^i + s ||x|| z^i` grows by `exp(tau)` for every i, `y^i - s ||x|| z^i` shrinks by it, and
the logit is `a exp(2 tau) - b exp(-2 tau)` with a and b summed over the neurons. The paper solves the case in which all
`c_i` are 0, where the sum of the logits follows Eq. 14; this solves all in which no neuron dies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats, as_floats
from dynamics_cli.theory.arguments import as_times
from dynamics_cli.theory.hyperbola import FAR, Mode, Outcome
from dynamics_cli.theory.logistic_integral import progress


@dataclass(frozen=True)
class LayerPath:
    """h neurons on one class at times `t`."""

    t: Floats
    """(...)"""
    y: Floats
    """(..., h)"""
    z: Floats
    """(..., h)"""
    label: int

    @property
    def u(self) -> Floats:
        """(...) output of the network on the class, `sum_i z^i max(0, y^i)`."""
        return np.asarray(np.sum(self.z * np.maximum(self.y, 0.0), axis=-1))

    @property
    def confidence(self) -> Floats:
        """(...) probability of the class."""
        return np.asarray(expit(self.label * self.u))


def hidden_layer(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: float = 1.0, *, p: float = 1.0, label: int = 1
) -> LayerPath:
    """Return the neurons of one class at times `t` of any shape from `y0 (h,)`, `z0 (h,)`; inactive ones stay.

    Time as in `logistic_mode`, of which this is the extension. Raises ValueError when some active neuron would die
    (`0 < y0 < -s ||x|| z0`), which no closed form covers, for shapes that do not match, and as `logistic_mode`.
    """
    y, z, times = as_floats(y0, "y0", axes=1), as_floats(z0, "z0", axes=1), as_times(t)
    if y.shape != z.shape:
        raise ValueError(f"y0 {y.shape} and z0 {z.shape} must have the same length")
    mode = Mode.of(y, z, norm, p, label)
    if (mode.outcome == Outcome.DIES).any():
        raise ValueError("an active neuron with y0 < -s ||x|| z0 dies: integrate the ODE instead")
    active = mode.outcome != Outcome.FROZEN
    a, b = float(mode.a[active].sum()), float(mode.b[active].sum())
    with np.errstate(divide="ignore"):
        log_time = (np.log(times) + np.log(norm * p)).ravel()
    each = np.ones_like(log_time)
    tau = progress(log_time, a * each, b * each, each).reshape(times.shape)[..., None]
    tau = np.where(active, np.minimum(tau, FAR), 0.0)  # (..., h)
    full, full_times = mode.spread(np.broadcast_to(times[..., None], tau.shape))
    path = full.at(tau, full_times)
    return LayerPath(t=times, y=path.y, z=path.z, label=label)
