"""One mode under the hinge loss (Tachet des Combes et al. 2018, Theorem 5.1, Eqs. 6, 26, 27).

`y' = s p ||x||^2 z`, `z' = s p y` until the margin `s z y` is 1; there learning stops, and where it is 1 at the start
nothing moves. The progress of `hyperbola` is `p ||x|| t`. Time is (learning rate) x (updates) with samples drawn from
the data set, of which the class is a share p.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.theory.arguments import as_positive, as_times
from dynamics_cli.theory.hyperbola import Mode, ModePath, Outcome

MARGIN = 1.0
"""Where the hinge loss becomes 0."""


def hinge_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> ModePath:
    """Return y, z and output at times `t` from `(y0, z0)` (Eq. 27, for all hyperbolas and both classes).

    All arguments but `label` (1: D_1, -1: D_2) broadcast; `norm` is `||x||`. A margin above 1 at the start stays (the
    `min(1, u)` of Eq. 6 is meant for starts below). With `s z0 < 0` the neuron may die, as in Section 3.3. Raises
    ValueError for negative or non-finite times, non-finite weights, a norm or p that is not positive.
    """
    mode, times = Mode.of(y0, z0, norm, p, label).spread(t)
    return mode.at(np.minimum(mode.rate * times, mode.progress_to(MARGIN)), times)


def balanced_hinge_logit(t: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return `min(1, u0 exp(2 p ||x|| t))` for `0 < u0`, `u0` itself where it exceeds 1 (Eq. 6 for `c = 0`).

    Arguments broadcast; by the argument of A.4 it also holds for the sum over any number of balanced neurons. Raises
    ValueError when u0 is not positive; otherwise as `hinge_mode`.
    """
    start = as_positive(u0, "u0")
    rate = as_positive(norm, "norm") * as_positive(p, "p")
    grown = np.log(start) + 2.0 * rate * as_times(t)
    return np.where(start >= MARGIN, start, np.exp(np.minimum(grown, 0.0)))


def hinge_time_to_logit(
    logit: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> Floats:
    """Return when `s z y` reaches `logit`: 0 if it has, infinity if it never will (always so beyond 1).

    For `c = 0` and `logit = 1` this is `-ln(u0) / (2 p ||x||)`. Arguments broadcast; raises as `hinge_mode`.
    """
    mode = Mode.of(y0, z0, norm, p, label)
    tau = mode.progress_to(logit)
    return np.asarray(np.where(tau <= mode.progress_to(MARGIN), tau, np.inf) / mode.rate)


def hinge_death_time(
    y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> Floats:
    """Return when y reaches 0: `|theta_0| / (2 p ||x||)` in case 3 of Section 3.3, infinity in the others.

    Arguments as in `hinge_mode`.
    """
    mode = Mode.of(y0, z0, norm, p, label)
    return np.where(mode.outcome == Outcome.DIES, mode.last_progress / mode.rate, np.inf)
