"""One mode under cross-entropy and under the hinge loss: its hyperbola, its course in time, and how
it ends.

Sections 3.2, 3.3 and 5, Theorems 3.2 and 5.1, Appendices A.3, A.6 and C.1 of Tachet des Combes et
al. 2018. One neuron with `y = w x` and output weight `z`, on a point `x` of its class with label s
(1: D_1, -1: D_2), follows

    y' = s p ||x||^2 z f,   z' = s p y f,   f >= 0 the derivative of the loss at the logit u = z y

(Eqs. 1, 12, 16 and 26): `f = 1 / (1 + exp(s u))` under cross-entropy; under the hinge loss 1 until
the margin `s u` is 1, and 0 from there on. With `A = y0 + s ||x|| z0`, `B = y0 - s ||x|| z0` and
the progress `tau = p ||x|| int f dt`,

    y + s ||x|| z = A exp(tau),   y - s ||x|| z = B exp(-tau),   s u = (A^2 exp(2 tau) - B^2 exp(-2
    tau)) / (4 ||x||)

solves all three cases of Eq. 13 at once: `y^2 - ||x||^2 z^2 = A B`, so `c = |A B|`, and the paper's
angle is `theta = ln|A / B| + 2 tau`. The paper's arccosh loses the sign of theta, the sign of `s y0
z0`.

Time is (learning rate) x (updates) with samples drawn from the data set, where the class has the
share p; `p = 1` is one sample of the class per update. A full batch with mean loss is the same,
with a summed loss n times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats


class Outcome(IntEnum):
    """How learning ends for one mode (Section 3.3)."""

    FROZEN = 0
    """`y0 <= 0`: the neuron is inactive and nothing moves."""
    SOLVED = 1
    """`y0 > -s ||x|| z0`: the class is learnt (case 2 when `s z0 < 0`)."""
    VANISHES = 2
    """`y0 = -s ||x|| z0`: y and z converge to 0 without reaching it (case 1)."""
    DIES = 3
    """`y0 < -s ||x|| z0`: y reaches 0 in finite time and the neuron dies (case 3)."""


@dataclass(frozen=True)
class ModePath:
    """One mode at K times."""

    y: Floats
    """(K,) preactivation `w x`; stays at 0 after the neuron has died, and at `y0` when that is
    not positive.
    """
    z: Floats
    """(K,) output weight."""
    label: int
    """1 for a point of class D_1, -1 for one of D_2."""

    @property
    def u(self) -> Floats:
        """Output of the network, `z max(0, y)`; negative for a class D_2 that is learnt."""
        return self.z * np.maximum(self.y, 0.0)

    @property
    def confidence(self) -> Floats:
        """Probability `1 / (1 + exp(-s u))` that the network gives to the class of the point."""
        return np.asarray(expit(self.label * self.u))


@dataclass(frozen=True)
class Mode:
    """The start of a mode, and its course in the progress tau of the module's docstring."""

    y0: float
    z0: float
    norm: float
    """`||x||`"""
    label: int
    """1 for a point of class D_1, -1 for one of D_2."""

    @property
    def A(self) -> float:
        """`y0 + s ||x|| z0`"""
        return self.y0 + self.label * self.norm * self.z0

    @property
    def B(self) -> float:
        """`y0 - s ||x|| z0`"""
        return self.y0 - self.label * self.norm * self.z0

    @property
    def last_progress(self) -> float:
        """Progress at which the ReLU stops the mode: 0 if frozen, `ln(-B / A) / 2` if it dies,
        else infinity.
        """
        if self.y0 <= 0:
            return 0.0
        return float(0.5 * np.log(-self.B / self.A)) if self.A < 0 else np.inf

    def margin(self, tau: Floats) -> Floats:
        """Return `s u` at progress `tau`, without ReLU."""
        return np.asarray(
            (self.A**2 * np.exp(2.0 * tau) - self.B**2 * np.exp(-2.0 * tau)) / (4.0 * self.norm)
        )

    def at(self, tau: Floats) -> ModePath:
        """Return the path at progress `tau` (K,), the ReLU respected."""
        end = self.last_progress
        tau = np.minimum(tau, end)
        grown = self.A * np.exp(tau)
        faded = self.B * np.exp(-tau)
        y = np.select([tau == 0, tau == end], [self.y0, 0.0], 0.5 * (grown + faded))
        z = np.where(tau == 0, self.z0, 0.5 * self.label * (grown - faded) / self.norm)
        return ModePath(y, z, self.label)


def outcome(y0: Floats, z0: Floats, norm: float = 1.0) -> NDArray[np.int8]:
    """Return how learning ends from `(z0, y0)` for D_1 (Section 3.3, Fig. 2 left), as values of
    `Outcome`.
    """
    A = y0 + norm * z0
    ends = np.select(
        [y0 <= 0, A > 0, A == 0], [Outcome.FROZEN, Outcome.SOLVED, Outcome.VANISHES], Outcome.DIES
    )
    return ends.astype(np.int8)


def invariant(y: Floats | float, z: Floats | float, norm: float = 1.0) -> Floats:
    """Return `y^2 - ||x||^2 z^2` (Eq. 13), conserved by both losses, as the product of its
    factors.
    """
    return np.asarray((y - norm * z) * (y + norm * z))


def logistic_mode(
    t: Floats, y0: float, z0: float, norm: float = 1.0, *, p: float = 1.0, label: int = 1
) -> ModePath:
    """Return the mode from `(y0, z0)` at ascending times `t` (K,): Theorem 3.2 for all hyperbolas
    and both classes.

    `norm` is `||x||`; `label` is 1 for D_1, -1 for D_2. `tau' = p ||x|| / (1 + exp(s u))` is
    integrated with the relative tolerance 1e-12. With the ReLU y stops at 0 (Section 3.3).
    """
    mode = Mode(y0, z0, norm, label)
    path = solve_ivp(
        lambda _, tau: p * norm * expit(-mode.margin(tau)),
        (0.0, t[-1]),
        [0.0],
        t_eval=t,
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
    )
    return mode.at(path.y[0])


def hinge_mode(
    t: Floats, y0: float, z0: float, norm: float = 1.0, *, p: float = 1.0, label: int = 1
) -> ModePath:
    """Return the mode from `(y0, z0)` under the hinge loss at times `t` (K,): Eq. 27, all
    hyperbolas, both classes.

    Arguments as in `logistic_mode`. A margin above 1 at the start stays (the `min(1, u)` of Eq. 6
    is meant for starts below). With `s z0 < 0` the neuron may die, as in Section 3.3.
    """
    mode = Mode(y0, z0, norm, label)
    a = mode.A**2 / (4.0 * norm)
    b = mode.B**2 / (4.0 * norm)
    stop = (
        np.inf if a == 0 else 0.5 * np.log((1.0 + np.hypot(1.0, 2.0 * np.sqrt(a * b))) / (2.0 * a))
    )  # margin 1
    return mode.at(np.clip(p * norm * t, 0.0, max(stop, 0.0)))
