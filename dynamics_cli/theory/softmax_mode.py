"""One mode of a C-class network under cross-entropy with softmax (the setting of Tachet des Combes et al. 2018, A.2).

The paper proves that modes are independent under H4-H6 but gives no curve. When row k of W is the only one active on
class k (`y = w^k x`) and the entries of column k of Z off the diagonal are equal, their difference `z` to the diagonal
entry obeys

    y' = p ||x||^2 z f,   z' = p C / (C - 1) y f,   f = 1 - P_k = 1 / (1 + exp(u) / (C - 1)),   u = z y,

one hyperbola again, `C y^2 / (C - 1) - ||x||^2 z^2`, and with `r = sqrt(C / (C - 1))` the mode of `hyperbola` for
`r y`, `z / r` and the norm `r ||x||`. For C = 2 it is `logistic_mode` of the difference of the two output weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.hyperbola import Mode
from dynamics_cli.theory.logistic_integral import progress


@dataclass(frozen=True)
class SoftmaxPath:
    """The mode of one of C classes at times `t`; all arrays have the broadcast shape of the arguments."""

    t: Floats
    y: Floats
    """Preactivation of the neuron of the class."""
    z: Floats
    """Diagonal entry of Z minus the others of its column."""
    classes: int

    @property
    def u(self) -> Floats:
        """Logit of the class minus that of any other."""
        return self.z * np.maximum(self.y, 0.0)

    @property
    def confidence(self) -> Floats:
        """Probability of the class, `1 / (1 + (C - 1) exp(-u))`."""
        return np.asarray(expit(self.u - np.log(self.classes - 1)))


def softmax_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, classes: int, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0
) -> SoftmaxPath:
    """Return the mode of a class of share `p` in a network of `classes` classes; `z0` is diagonal minus off-diagonal.

    `t`, `y0`, `z0`, `norm` and `p` broadcast; time as in `logistic_mode`. Raises ValueError for fewer than 2
    classes and as `logistic_mode`.
    """
    if classes < 2:
        raise ValueError(f"there must be at least 2 classes, not {classes}")
    r = np.sqrt(classes / (classes - 1))
    mode, times = Mode.of(r * np.asarray(y0), np.asarray(z0) / r, r * np.asarray(norm), p, 1).spread(t)
    with np.errstate(divide="ignore"):
        log_time = (np.log(times) + np.log(mode.rate)).ravel()
    g = np.full(log_time.shape, 1.0 / (classes - 1))
    tau = progress(log_time, mode.a.ravel(), mode.b.ravel(), g).reshape(times.shape)
    path = mode.at(tau, times)
    return SoftmaxPath(t=path.t, y=path.y / r, z=path.z * r, classes=classes)
