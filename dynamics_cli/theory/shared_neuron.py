"""One neuron that both classes activate (Tachet des Combes et al. 2018, Section 3.4, Theorem 3.4, A.8).

On orthogonal points `x_1` of D_1 and `x_2` of D_2, with `alpha = w x_1`, `beta = w x_2` and output weight z,

    alpha' = p_1 ||x_1||^2 z / (1 + exp(z alpha)),   beta' = -p_2 ||x_2||^2 z / (1 + exp(-z beta)),
    z' = p_1 alpha / (1 + exp(z alpha)) - p_2 beta / (1 + exp(-z beta))                          (Eqs. 4, 24)

as long as both are positive. Whichever reaches 0 stays there and drops out of z', by the ReLU; the other one then is a
mode of its own, for which `logistic_mode` has the solution. Eqs. 4 and 24 count one sample of *each* class per unit of
time, `p_1 = p_2 = 1`; sampling at random with `p_k = 1/2` takes twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import OdeSolution, solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats, as_floats
from dynamics_cli.theory.arguments import as_times
from dynamics_cli.theory.logistic_mode import death_time, logistic_mode

RTOL, ATOL = 1e-12, 1e-14


@dataclass(frozen=True)
class Pair:
    """The two points that share the neuron."""

    norm1: float = 1.0
    norm2: float = 1.0
    p1: float = 1.0
    """Samples of `x_1` per unit of time."""
    p2: float = 1.0

    def __post_init__(self) -> None:
        if not min(self.norm1, self.norm2, self.p1, self.p2) > 0:
            raise ValueError(f"norms and rates must be positive, not {self}")

    def field(self, state: Floats) -> Floats:
        """Return `(alpha', beta', z')` of Eq. 24, without ReLU, at `state (3,)`."""
        alpha, beta, z = state
        f1, f2 = self.p1 * expit(-z * alpha), self.p2 * expit(z * beta)
        return np.array([self.norm1**2 * z * f1, -(self.norm2**2) * z * f2, alpha * f1 - beta * f2])


def hyperboloid(alpha: ArrayLike, beta: ArrayLike, z: ArrayLike, pair: Pair | None = None) -> Floats:
    """Return `c = alpha^2 / ||x_1||^2 + beta^2 / ||x_2||^2 - z^2` (Theorem 3.4), conserved also after one is frozen."""
    pair = pair or Pair()
    a, b = np.asarray(alpha, dtype=np.float64) / pair.norm1, np.asarray(beta, dtype=np.float64) / pair.norm2
    return np.asarray(a**2 + b**2 - np.asarray(z, dtype=np.float64) ** 2)


@dataclass(frozen=True)
class SharedNeuron:
    """The neuron at T times."""

    t: Floats
    """(T,)"""
    alpha: Floats
    """(T,)"""
    beta: Floats
    """(T,)"""
    z: Floats
    """(T,)"""
    alpha_zero: float
    """When alpha reached 0 within the times asked for: 0 if it never was positive, else infinity."""
    beta_zero: float
    """The same for beta."""

    @property
    def confidence_1(self) -> Floats:
        """(T,) probability of D_1 on `x_1`; 1/2 once alpha is 0."""
        return np.asarray(expit(self.z * np.maximum(self.alpha, 0.0)))

    @property
    def confidence_2(self) -> Floats:
        """(T,) probability of D_2 on `x_2`; 1/2 once beta is 0."""
        return np.asarray(expit(-self.z * np.maximum(self.beta, 0.0)))


def shared_neuron(t: ArrayLike, alpha0: float, beta0: float, z0: float, pair: Pair | None = None) -> SharedNeuron:
    """Follow the neuron from `(alpha0, beta0, z0)` with the ReLU, at times `t (T,)` in any order.

    While both are positive the ODE is integrated (relative tolerance 1e-12) up to the event of one reaching 0, and the
    closed form holds from then on. A value that is not positive at the start is inactive and stays. Raises ValueError
    for times that are negative or not finite and a start that is not finite.
    """
    pair, times = pair or Pair(), as_times(as_floats(t, "t", axes=1))
    start = _start(alpha0, beta0, z0)
    end = float(times.max(initial=0.0))
    both, split, state = _both_active(start, pair, end)
    path = np.empty((len(times), 3))
    early = times < split
    if both is not None and early.any():
        path[early] = both(times[early]).T
        path[times == 0] = start
    if not early.all():
        path[~early] = _one_active(times[~early] - split, state, pair)
    zeros = [0.0 if value <= 0 else np.inf for value in start[:2]]
    for i, rest in enumerate(_death(state, pair)):
        reached = split if state[i] == 0 < start[i] else split + rest
        zeros[i] = reached if reached <= end else zeros[i]
    return SharedNeuron(
        t=times, alpha=path[:, 0], beta=path[:, 1], z=path[:, 2], alpha_zero=zeros[0], beta_zero=zeros[1]
    )


def winner(alpha0: float, beta0: float, z0: float, pair: Pair | None = None, *, until: float = 1e4) -> int:
    """Return which class ends up as the only one that activates the neuron: 1, 2, or 0 for none by time `until`.

    0 stands for starts on the separatrix (or closer to it than rounding) and for neurons that are dead on both. A class
    with a frozen or dying mode does not win. Raises ValueError as `shared_neuron`.
    """
    end = shared_neuron([until], alpha0, beta0, z0, pair)
    if end.alpha[0] > 0 >= end.beta[0]:
        return 1
    return 2 if end.beta[0] > 0 >= end.alpha[0] else 0


def _start(alpha0: float, beta0: float, z0: float) -> Floats:
    start = np.array([alpha0, beta0, z0], dtype=np.float64)
    if start.shape != (3,) or not np.isfinite(start).all():
        raise ValueError(f"the start must be three finite numbers, not {alpha0}, {beta0}, {z0}")
    return start


def _both_active(start: Floats, pair: Pair, end: float) -> tuple[OdeSolution | None, float, Floats]:
    """Integrate while alpha and beta are positive: return the dense solution, when that ended, the state there.

    When neither reaches 0 by time `end` that time is infinite and the state is that of `end`.
    """
    if start[:2].min() <= 0:
        return None, 0.0, start
    if end == 0:
        return None, 0.0, start

    def alpha_gone(_: float, state: Floats) -> float:
        return float(state[0])

    def beta_gone(_: float, state: Floats) -> float:
        return float(state[1])

    for event in (alpha_gone, beta_gone):
        event.terminal = True  # type: ignore[attr-defined]
        event.direction = -1.0  # type: ignore[attr-defined]
    result = solve_ivp(
        lambda _, state: pair.field(state),
        (0.0, end),
        start,
        method="DOP853",
        dense_output=True,
        events=(alpha_gone, beta_gone),
        rtol=RTOL,
        atol=ATOL * min(1.0, float(np.abs(start).max())),
    )
    if result.status != 1:
        return result.sol, np.inf, result.y[:, -1]
    gone = 0 if len(result.t_events[0]) else 1
    state = result.y_events[gone][0].copy()
    state[gone] = 0.0
    return result.sol, float(result.t[-1]), state


def _one_active(durations: Floats, state: Floats, pair: Pair) -> Floats:
    """Return the states (k, 3) after `durations (k,)` from a `state (3,)` in which at most one class is active."""
    alpha, beta, z = state
    path = np.tile(state, (len(durations), 1))
    if alpha > 0 and beta <= 0:
        mode = logistic_mode(durations, alpha, z, pair.norm1, p=pair.p1, label=1)
        path[:, 0], path[:, 2] = mode.y, mode.z
    elif beta > 0 and alpha <= 0:
        mode = logistic_mode(durations, beta, z, pair.norm2, p=pair.p2, label=-1)
        path[:, 1], path[:, 2] = mode.y, mode.z
    return path


def _death(state: Floats, pair: Pair) -> tuple[float, float]:
    """Return after which times the last active class of `state` dies: (of alpha, of beta)."""
    alpha, beta, z = state
    if alpha > 0 >= beta:
        return float(death_time(alpha, z, pair.norm1, p=pair.p1, label=1)), np.inf
    if beta > 0 >= alpha:
        return np.inf, float(death_time(beta, z, pair.norm2, p=pair.p2, label=-1))
    return np.inf, np.inf
