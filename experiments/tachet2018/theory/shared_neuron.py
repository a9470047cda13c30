"""One neuron that both classes activate, and the curve between its two outcomes (Tachet des Combes
et al. 2018).

Section 3.4, Theorem 3.4, A.8, Figures 3 and 7. On orthogonal points `x_1` of D_1 and `x_2` of D_2,
with `alpha = w x_1`, `beta = w x_2` and output weight z,

    alpha' = z / (1 + exp(z alpha)),   beta' = -z / (1 + exp(-z beta)), z' = alpha / (1 + exp(z
    alpha)) - beta / (1 + exp(-z beta))                                  (Eqs. 4, 24)

for points of norm 1, as long as both are positive; for others alpha' is times `||x_1||^2` and beta'
times `||x_2||^2`. Whichever reaches 0 stays there and drops out of z', by the ReLU; the other then
is a mode of its own (see `modes`). Eqs. 4 and 24 count one sample of *each* class per unit of time;
sampling at random with `p_k = 1/2` takes twice as long.

On the hyperboloid `c > 0` Eq. 24 has one stationary point with both classes active, `z = 0` and
`alpha = beta`. The curve C_c is its stable manifold: what starts there converges to the point, what
starts on one side loses alpha, on the other side beta. Two branches leave the point against the
flow along the eigenvector of the negative eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from dynamics_cli.measures.arrays import Bools, Floats

RTOL = 1e-12
ATOL = 1e-14
UNIT = (1.0, 1.0)
"""Norms of both points where nothing else is said."""
OFFSET = 1e-7
"""How far from the stationary point, relative to it, the branches of the separatrix start."""


def field(
    _: float,
    state: Floats,
    active: Bools | tuple[bool, bool] = (True, True),
    norms: tuple[float, float] = UNIT,
) -> Floats:
    """Return `(alpha', beta', z')` of Eq. 24 at `state (3,)`, of the classes that are `active`
    (2,).
    """
    alpha, beta, z = state
    f1, f2 = np.array([expit(-z * alpha), expit(z * beta)]) * active
    return np.array([norms[0] ** 2 * z * f1, -(norms[1] ** 2) * z * f2, alpha * f1 - beta * f2])


def hyperboloid(
    alpha: Floats | float,
    beta: Floats | float,
    z: Floats | float,
    norms: tuple[float, float] = UNIT,
) -> Floats:
    """Return `c = alpha^2/||x_1||^2 + beta^2/||x_2||^2 - z^2` (Theorem 3.4), conserved also
    after one is frozen.
    """
    return np.asarray((alpha / norms[0]) ** 2 + (beta / norms[1]) ** 2 - z**2)


def stationary(c: float, norms: tuple[float, float] = UNIT) -> Floats:
    """Return the stationary point `(k, k, 0)` of the hyperboloid `c > 0` (Theorem 3.4)."""
    k = np.sqrt(c / (norms[0] ** -2 + norms[1] ** -2))
    return np.asarray(k * np.array([1.0, 1.0, 0.0]))


def confidences(states: Floats) -> Floats:
    """Return the probabilities (2, T) of D_1 on `x_1` and of D_2 on `x_2`, for states `(alpha,
    beta, z)` (T, 3).

    They are 1/2 where the neuron is not active.
    """
    alpha, beta, z = states.T
    return np.asarray(expit([z * np.maximum(alpha, 0.0), -z * np.maximum(beta, 0.0)]))


def mirrored(states: Floats) -> Floats:
    """Return the mirror images (R, 3) of states (Section 3.4): alpha and beta exchanged, z
    negative.
    """
    return np.asarray(states[:, [1, 0, 2]] * np.array([1.0, 1.0, -1.0]))


def shared_neuron(
    t: Floats, start: Floats, norms: tuple[float, float] = UNIT
) -> tuple[Floats, Floats]:
    """Follow the neuron from `start (3,)`, alpha, beta and z, with the ReLU, at ascending times `t
    (T,)`.

    Return its states (T, 3), and when alpha and beta reached 0 (2,): 0 where they were not positive
    at the start (they stay), infinity where they have not by the end. Each piece, up to the next
    zero, is integrated with the relative tolerance 1e-12.
    """
    states = np.empty((len(t), 3))
    zeros = np.where(start[:2] > 0, np.inf, 0.0)
    state = start
    now = 0.0
    while True:
        alive = np.flatnonzero(np.isinf(zeros)).tolist()
        path = solve_ivp(
            field,
            (now, t[-1]),
            state,
            args=(np.isinf(zeros), norms),
            events=[_zero_of(i) for i in alive],
            t_eval=t[t >= now],
            method="DOP853",
            rtol=RTOL,
            atol=ATOL * min(1.0, float(np.abs(start).max())),
        )
        states[np.flatnonzero(t >= now)[: len(path.t)]] = np.reshape(path.y, (3, -1)).T
        if path.status == 0:
            return states, zeros
        k = next(k for k, moments in enumerate(path.t_events) if len(moments))
        now = float(path.t_events[k][0])
        state = path.y_events[k][0].copy()
        state[alive[k]] = 0.0
        zeros[alive[k]] = now


def _zero_of(i: int) -> Callable[..., float]:
    def event(_: float, state: Floats, *args: Any) -> float:
        return float(state[i])

    event.terminal, event.direction = True, -1.0  # type: ignore[attr-defined]
    return event


def separatrix(c: float, *, points: int = 200) -> Floats:
    """Return C_c, `c > 0`, as `(2 points + 1, 3)` points `(alpha, beta, z)`, from alpha = 0 to beta
    = 0.

    Between them is the stationary point `(k, k, 0)`, `k = sqrt(c / 2)`, row `points`; the first
    half has `z > 0`, the second is its mirror image. Integrated backwards from the stationary point
    over the arc length, with the relative tolerance 1e-12; the unstable direction contracts against
    the flow, so that errors of the start die out. The eigenvalues of Eq. 24 there solve `L^2 + q L
    = 1 / 2` with `q = c / 4`; the third one is 0.
    """
    centre = stationary(c)
    stable = np.array([-0.5, 0.5, c / 8.0 + np.sqrt((c / 8.0) ** 2 + 0.5)])
    start = centre + OFFSET * np.linalg.norm(centre) / np.linalg.norm(stable) * stable
    start[:2] *= np.sqrt(
        (c + start[2] ** 2) / (start[0] ** 2 + start[1] ** 2)
    )  # onto the hyperboloid exactly

    def backwards(_: float, state: Floats) -> Floats:
        velocity = field(0.0, state)
        return np.asarray(-velocity / np.linalg.norm(velocity))

    path = solve_ivp(
        backwards,
        (0.0, np.inf),
        start,
        method="DOP853",
        dense_output=True,
        events=_zero_of(0),
        rtol=RTOL,
        atol=ATOL,
    )
    upper = path.sol(np.linspace(0.0, path.t[-1], points + 1)[1:]).T
    upper[-1, 0] = 0.0
    return np.concatenate([upper[::-1], centre[None], mirrored(upper)])


def between(alpha: float, beta: float, norms: tuple[float, float], until: float) -> Floats:
    """Return the start `(alpha, beta, z)` whose neuron stays at the stationary point longest: on
    C_c, by bisection.

    For a larger z beta reaches 0 by the time `until`, for a smaller one alpha does; z is found to
    rounding.
    """
    low = 0.0
    high = 10.0
    while True:
        z = (low + high) / 2.0
        start = np.array([alpha, beta, z])
        if z in (low, high):
            return start
        zeros = shared_neuron(np.array([0.0, until]), start, norms)[1]
        low, high = (low, z) if zeros[1] < zeros[0] else (z, high)
