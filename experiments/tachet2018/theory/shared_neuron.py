"""One neuron that both classes activate, and the curve between its two outcomes (Tachet des Combes et al. 2018).

Section 3.4, Theorem 3.4, A.8, Figures 3 and 7.
On orthogonal points `x_1` of D_1 and `x_2` of D_2, with `alpha = w x_1`, `beta = w x_2` and output weight z,

    alpha' = z / (1 + exp(z alpha)),   beta' = -z / (1 + exp(-z beta)),
    z' = alpha / (1 + exp(z alpha)) - beta / (1 + exp(-z beta))                                  (Eqs. 4, 24)

for points of norm 1, as long as both are positive. Whichever reaches 0 stays there and drops out of z', by the ReLU;
the other then is a mode of its own, for which `logistic_mode` has the solution. Eqs. 4 and 24 count one sample of
*each* class per unit of time; sampling at random with `p_k = 1/2` takes twice as long.

On the hyperboloid `c > 0` Eq. 24 has one stationary point with both classes active, `z = 0` and `alpha = beta`.
The curve C_c is its stable manifold: what starts there converges to the point, what starts on one side loses alpha,
on the other side beta. Two branches leave the point against the flow along the eigenvector of the negative eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import OdeSolution, solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Floats

from .modes import death_time, logistic_mode

RTOL, ATOL = 1e-12, 1e-14
OFFSET = 1e-7
"""How far from the stationary point, relative to it, the branches of the separatrix start."""


def field(state: Floats) -> Floats:
    """Return `(alpha', beta', z')` of Eq. 24, without ReLU, at `state (3,)`."""
    alpha, beta, z = state
    f1, f2 = expit(-z * alpha), expit(z * beta)
    return np.array([z * f1, -z * f2, alpha * f1 - beta * f2])


def hyperboloid(alpha: ArrayLike, beta: ArrayLike, z: ArrayLike) -> Floats:
    """Return `c = alpha^2 + beta^2 - z^2` (Theorem 3.4), conserved also after one is frozen."""
    a, b, height = (np.asarray(values, np.float64) for values in (alpha, beta, z))
    return np.asarray(a**2 + b**2 - height**2)


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


def shared_neuron(t: ArrayLike, alpha0: float, beta0: float, z0: float) -> SharedNeuron:
    """Follow the neuron from `(alpha0, beta0, z0)` with the ReLU, at times `t (T,)` in any order.

    While both are positive the ODE is integrated (relative tolerance 1e-12) up to the event of one reaching 0, and the
    closed form holds from then on. A value that is not positive at the start is inactive and stays.
    """
    times, start = np.asarray(t, np.float64), np.array([alpha0, beta0, z0], dtype=np.float64)
    end = float(times.max(initial=0.0))
    both, split, state = _both_active(start, end)
    path = np.empty((len(times), 3))
    early = times < split
    if both is not None and early.any():
        path[early] = both(times[early]).T
        path[times == 0] = start
    path[~early], deaths = _one_active(times[~early] - split, state)
    zeros = [0.0 if value <= 0 else np.inf for value in start[:2]]
    for i, death in enumerate(deaths):
        reached = split if state[i] == 0 < start[i] else split + death
        zeros[i] = reached if reached <= end else zeros[i]
    return SharedNeuron(
        t=times, alpha=path[:, 0], beta=path[:, 1], z=path[:, 2], alpha_zero=zeros[0], beta_zero=zeros[1]
    )


def _both_active(start: Floats, end: float) -> tuple[OdeSolution | None, float, Floats]:
    """Integrate while alpha and beta are positive: return the dense solution, when that ended, the state there.

    When neither reaches 0 by time `end` that time is infinite and the state is taken at `end`.
    """
    if start[:2].min() <= 0 or end == 0:
        return None, 0.0, start

    def alpha_gone(_: float, state: Floats) -> float:
        return float(state[0])

    def beta_gone(_: float, state: Floats) -> float:
        return float(state[1])

    for event in (alpha_gone, beta_gone):
        event.terminal = True  # type: ignore[attr-defined]
        event.direction = -1.0  # type: ignore[attr-defined]
    result = solve_ivp(
        lambda _, state: field(state), (0.0, end), start, method="DOP853", dense_output=True,
        events=(alpha_gone, beta_gone), rtol=RTOL, atol=ATOL * min(1.0, float(np.abs(start).max())),
    )  # fmt: skip
    if result.status != 1:
        return result.sol, np.inf, result.y[:, -1]
    gone = 0 if len(result.t_events[0]) else 1
    state = result.y_events[gone][0].copy()
    state[gone] = 0.0
    return result.sol, float(result.t[-1]), state


def _one_active(durations: Floats, state: Floats) -> tuple[Floats, list[float]]:
    """Follow a `state (3,)` in which at most one class is active.

    Returns the states (k, 3) after `durations (k,)`, and after which times alpha and beta die, infinite for never.
    """
    path, deaths = np.tile(state, (len(durations), 1)), [np.inf, np.inf]
    for i, label in enumerate((1, -1)):
        if state[i] > 0 >= state[1 - i]:
            mode = logistic_mode(durations, state[i], state[2], label=label)
            path[:, i], path[:, 2] = mode.y, mode.z
            deaths[i] = float(death_time(state[i], state[2], label=label))
    return path, deaths


def saddle(c: float) -> Floats:
    """Return the stationary point `(k, k, 0)`, `k = sqrt(c / 2)`, shape (3,), on the hyperboloid `c > 0`.

    Without one, for c <= 0, D_1 wins from everywhere with `z > 0`.
    """
    scale = np.sqrt(c / 2.0)
    return np.array([scale, scale, 0.0])


def saddle_eigenvalues(c: float) -> tuple[float, float]:
    """Return the positive and the negative eigenvalue of Eq. 24 at the stationary point (the third one is 0).

    They solve `L^2 + q L = 1 / 2` with `q = (alpha^2 + beta^2) / 4`.
    """
    alpha, beta, _ = saddle(c)
    half = (alpha**2 + beta**2) / 8.0
    root = float(np.sqrt(half**2 + 0.5))
    return root - half, -root - half


def separatrix(c: float, *, points: int = 200) -> Floats:
    """Return C_c as `(2 points + 1, 3)` points `(alpha, beta, z)`, from where alpha is 0 to where beta is 0.

    Between them is the stationary point, row `points`. The first half has `z > 0`. Integrated backwards from the
    stationary point with relative tolerance 1e-12; the unstable direction contracts against the flow, so that errors of
    the start die out.
    """
    stationary = saddle(c)
    stable = np.array([0.5, -0.5, saddle_eigenvalues(c)[1]])
    stable *= OFFSET * np.linalg.norm(stationary) / np.linalg.norm(stable)
    starts = [stationary + side * stable for side in (-1.0, 1.0)]
    for start in starts:  # onto the hyperboloid exactly
        start[:2] *= np.sqrt((c + start[2] ** 2) / float(hyperboloid(start[0], start[1], 0.0)))
    upper, lower = (_branch(start, points) for start in starts)
    return np.concatenate([upper[::-1], stationary[None], lower])


def _branch(start: Floats, points: int) -> Floats:
    """Integrate Eq. 24 backwards until alpha or beta is 0; return `(points, 3)` states evenly spaced in arc length."""

    def boundary(_: float, state: Floats) -> float:
        return float(min(state[0], state[1]))

    boundary.terminal = True  # type: ignore[attr-defined]
    result = solve_ivp(
        lambda _, state: -field(state), (0.0, np.inf), start, method="DOP853", dense_output=True,
        events=boundary, rtol=1e-12, atol=1e-14 * float(np.abs(start).max()),
    )  # fmt: skip
    times = np.linspace(0.0, result.t[-1], 50 * points)
    path = result.sol(times).T
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    chosen = np.interp(np.linspace(0.0, length[-1], points + 1)[1:], length, times)
    chosen[-1] = result.t[-1]
    branch = result.sol(chosen).T
    gone = int(np.argmin(branch[-1, :2]))
    branch[-1, gone] = 0.0
    return np.asarray(branch)
