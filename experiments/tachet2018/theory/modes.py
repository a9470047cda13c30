"""One mode under cross-entropy and under the hinge loss: its hyperbola, its course in time, and how it ends.

Sections 3.2, 3.3 and 5, Theorems 3.2 and 5.1, Appendices A.3, A.6 and C.1 of Tachet des Combes et al. 2018. One neuron
with `y = w x` and output weight `z`, on a point `x` of its class with label s (1: D_1, -1: D_2), follows

    y' = s p ||x||^2 z f,   z' = s p y f,   f >= 0 the derivative of the loss at the logit u = z y

(Eqs. 1, 12, 16 and 26): `f = 1 / (1 + exp(s u))` under cross-entropy; under the hinge loss 1 until the margin `s u`
is 1, and 0 from there on. With `A = y0 + s ||x|| z0`, `B = y0 - s ||x|| z0` and the progress `tau = p ||x|| int f
dt`,

    y + s ||x|| z = A exp(tau),   y - s ||x|| z = B exp(-tau),   s u = (A^2 exp(2 tau) - B^2 exp(-2 tau)) / (4 ||x||)

solves all three cases of Eq. 13 at once: `y^2 - ||x||^2 z^2 = A B`, so `c = |A B|`, and the paper's angle is
`theta = ln|A / B| + 2 tau`. The paper's arccosh loses the sign of theta, the sign of `s y0 z0`.

Time is (learning rate) x (updates) with samples drawn from the data set, where the class has the share p; `p = 1` is
one sample of the class per update. A full batch with mean loss is the same, with a summed loss n times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad, solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats

FAR = 700.0
"""Progress beyond which `exp(-tau)` is as good as 0; only a mode on the line towards the origin gets there."""
MARGIN = 1.0
"""Where the hinge loss becomes 0."""


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
    """One mode at times `t`; all arrays have the broadcast shape of the arguments."""

    t: Floats
    y: Floats
    """Preactivation `w x`; stays at 0 after the neuron has died, and at `y0` when that is not positive."""
    z: Floats
    """Output weight."""
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
    """Broadcast starting point of a mode in the coordinates of the module's docstring."""

    y0: Floats
    z0: Floats
    norm: Floats
    rate: Floats
    """`p ||x||`."""
    label: int
    A: Floats
    B: Floats

    @classmethod
    def of(cls, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike, p: ArrayLike, label: int) -> Mode:
        """Broadcast the arguments."""
        y, z, n, share = np.broadcast_arrays(*(np.asarray(values, np.float64) for values in (y0, z0, norm, p)))
        return cls(y0=y, z0=z, norm=n, rate=n * share, label=label, A=y + label * n * z, B=y - label * n * z)

    def spread(self, t: ArrayLike) -> tuple[Mode, Floats]:
        """Return this mode and the times, broadcast against each other."""
        times, y0, z0, norm, rate, A, B = np.broadcast_arrays(
            np.asarray(t, np.float64), self.y0, self.z0, self.norm, self.rate, self.A, self.B
        )
        return Mode(y0, z0, norm, rate, self.label, A, B), times

    @property
    def a(self) -> Floats:
        """Weight of the growing part, `A^2 / (4 ||x||)`."""
        return np.asarray(self.A**2 / (4.0 * self.norm))

    @property
    def b(self) -> Floats:
        """Weight of the decaying part, `B^2 / (4 ||x||)`."""
        return np.asarray(self.B**2 / (4.0 * self.norm))

    @property
    def outcome(self) -> NDArray[np.int8]:
        """How the mode ends, as values of `Outcome`."""
        ends = np.select([self.A > 0, self.A == 0], [Outcome.SOLVED, Outcome.VANISHES], Outcome.DIES)
        return np.where(self.y0 > 0, ends, Outcome.FROZEN).astype(np.int8)

    @property
    def last_progress(self) -> Floats:
        """Progress at which the ReLU stops the mode: 0 if frozen, `ln(-B / A) / 2` if it dies, else infinity."""
        ends = self.outcome
        ratio = np.divide(-self.B, self.A, out=np.ones_like(self.A), where=ends == Outcome.DIES)
        return np.select([ends == Outcome.FROZEN, ends == Outcome.DIES], [0.0, 0.5 * np.log(ratio)], np.inf)

    def at(self, tau: Floats, t: Floats) -> ModePath:
        """Return the state at progress `tau`, the ReLU respected, as the path at times `t`."""
        end = self.last_progress
        tau = np.minimum(np.minimum(tau, end), FAR)
        grown, faded = self.A * np.exp(tau), self.B * np.exp(-tau)
        moved, s = tau > 0, self.label
        y = np.where(moved, 0.5 * (grown + faded), self.y0)
        y = np.where((self.outcome == Outcome.DIES) & (tau >= end), 0.0, y)
        z = np.where(moved, 0.5 * s * (grown - faded) / self.norm, self.z0)
        return ModePath(t=np.array(t), y=y, z=z, label=s)

    def progress_to(self, logit: ArrayLike) -> Floats:
        """Return the progress at which `s u` is `logit`: 0 if it is already, infinity if it never will be."""
        target = np.asarray(logit, np.float64)
        start = self.a - self.b
        k = 2.0 * np.sqrt(self.a * self.b)
        root = np.hypot(target, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            # two forms of the root of a v - b / v = logit, each without cancellation on its side
            v = np.where(target >= 0, (target + root) / (2.0 * self.a), 2.0 * self.b / (root - target))
            tau = 0.5 * np.log(v)
        tau = np.where(target <= start, 0.0, tau)
        return np.where((tau <= self.last_progress) & (self.y0 > 0), np.maximum(tau, 0.0), np.inf)


def outcome(y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, label: int = 1) -> NDArray[np.int8]:
    """Return how learning ends from `(z0, y0)` (Section 3.3, Fig. 2 left), as values of `Outcome`.

    `y0`, `z0` and `norm` = `||x||` broadcast.
    """
    return Mode.of(y0, z0, norm, 1.0, label).outcome


def invariant(y: ArrayLike, z: ArrayLike, norm: ArrayLike = 1.0) -> Floats:
    """Return `y^2 - ||x||^2 z^2` (Eq. 13), conserved by both losses, as the product of its factors."""
    height, reach = np.asarray(y), np.multiply(norm, z)
    return np.asarray((height - reach) * (height + reach))


def logistic_mode(t: ArrayLike, y0: float, z0: float, norm: float = 1.0, *, p: float = 1.0, label: int = 1) -> ModePath:
    """Return y, z, logit and confidence at times `t` from `(y0, z0)`: Theorem 3.2 for all hyperbolas and both classes.

    `norm` is `||x||`; `label` is 1 for D_1, -1 for D_2. `tau' = p ||x|| / (1 + exp(s u))` is integrated with the
    relative tolerance 1e-12. With the ReLU y stops at 0 (Section 3.3).
    """
    mode, times = Mode.of(y0, z0, norm, p, label).spread(t)
    at, inverse = np.unique(times, return_inverse=True)
    tau = np.zeros(len(at))
    if at.size and at[-1] > 0:
        path = solve_ivp(
            lambda _, x: p * norm * expit(-_margin(x, float(mode.a.flat[0]), float(mode.b.flat[0]))),
            (0.0, at[-1]), [0.0], t_eval=at, method="DOP853", rtol=1e-12, atol=1e-14,
        )  # fmt: skip
        tau = path.y[0]
    return mode.at(tau[inverse].reshape(times.shape), times)


def _margin(tau: Floats, a: float, b: float) -> Floats:
    """Return `s u` at progress `tau`."""
    return np.asarray(a * np.exp(2.0 * np.minimum(tau, FAR / 2)) - b * np.exp(-2.0 * tau))


def death_time(y0: float, z0: float, norm: float = 1.0, *, p: float = 1.0, label: int = 1) -> float:
    """Return when y reaches 0 (Section 3.3, case 3); infinity where it never does. Arguments as in `logistic_mode`."""
    mode = Mode.of(y0, z0, norm, p, label)
    if mode.outcome != Outcome.DIES:
        return float("inf")
    a, b = float(mode.a), float(mode.b)
    slowness = quad(lambda tau: 1.0 + np.exp(_margin(tau, a, b)), 0.0, float(mode.last_progress), epsrel=1e-12)[0]
    return float(slowness / mode.rate)


def logit_bound(t: ArrayLike, u0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0) -> Floats:
    """Return the bound `2 log(||x|| p t + exp(u0 / 2))` on a balanced logit that started at `u0 > 0` (Eq. 19).

    It holds for `c = 0` only; the hyperbolas with `c > 0` exceed it.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * np.logaddexp(np.log(np.multiply(norm, p)) + np.log(t), 0.5 * np.asarray(u0)))


def hinge_mode(
    t: ArrayLike, y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> ModePath:
    """Return y, z and output at times `t` from `(y0, z0)` (Eq. 27, for all hyperbolas and both classes).

    All arguments but `label` (1: D_1, -1: D_2) broadcast; `norm` is `||x||`. A margin above 1 at the start stays (the
    `min(1, u)` of Eq. 6 is meant for starts below). With `s z0 < 0` the neuron may die, as in Section 3.3.
    """
    mode, times = Mode.of(y0, z0, norm, p, label).spread(t)
    return mode.at(np.minimum(mode.rate * times, mode.progress_to(MARGIN)), times)


def hinge_death_time(
    y0: ArrayLike, z0: ArrayLike, norm: ArrayLike = 1.0, *, p: ArrayLike = 1.0, label: int = 1
) -> Floats:
    """Return when y reaches 0: `|theta_0| / (2 p ||x||)` in case 3 of Section 3.3, infinity in the others.

    Arguments as in `hinge_mode`.
    """
    mode = Mode.of(y0, z0, norm, p, label)
    return np.where(mode.outcome == Outcome.DIES, mode.last_progress / mode.rate, np.inf)
