"""The central flow: what gradient descent at the edge of stability does on average (Cohen, Damian
et al. 2024).

    dw/dt = -eta [grad L + 1/2 grad <H(w), Sigma>],   Sigma = U C U^T,

one unit of time for a step of gradient descent, U the eigenvectors of the Hessian H with
eigenvalues near the edge. C >= 0 is the covariance of the oscillation; with `T_ab = grad (u_a^T H
u_b)` it solves, for an Euler step dt,

    C >= 0,  A + B[C] >= 0,  <C, A + B[C]> = 0,
    A = 2/eta I - diag(lambda) + dt eta <T_ab, grad L>,   B_ab,cd = dt eta/2 <T_ab, T_cd>,

which keeps the eigenvalues at or below 2/eta. The loss of gradient descent is then `L + tr(Sigma) /
eta` on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from dynamics_cli.gradients.derivatives import derivatives_of, trained_among, trained_names
from dynamics_cli.kinds import Curve, Problem, State, Theory
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.recording.curvature import stability_threshold
from dynamics_cli.theory.assumptions import descent_violations
from dynamics_cli.training.problem import build_problem

NEAR = 1.95
FAR = 1.8
"""Eigenvalues above `NEAR` over eta take part; below `FAR` they are computed at whole steps
alone.
"""
SHIFT = 1e-4
"""Length of the differences that give third derivatives; their error is of its square."""
SMOOTH = 50
"""Deviation of the Gaussian that averages losses, in iterations."""
MOST = 2e9
"""Multiply-adds of one pass over the samples at every iteration, with an overhead, that take
some minutes.
"""
OVERHEAD = 1e5
"""What a product with the Hessian costs at least, in multiply-adds."""


@dataclass(frozen=True)
class CentralFlow:
    """The flow at the steps 0..N of gradient descent."""

    weights: Floats
    """(N + 1, P), or (1, P) of the end."""
    losses: Floats
    """`L(w)` (N + 1,)."""
    predicted: Floats
    """`L(w) + tr(Sigma) / eta` (N + 1,)."""
    variance: Floats
    """`tr(Sigma)` (N + 1,)."""
    top: Floats
    """(N + 1, k) largest eigenvalues of the Hessian."""
    vectors: Floats
    """(N + 1, P, k) their vectors, or (1, P, k) at the end."""


def trained_weights(run: Any) -> Floats:
    """Return the trained weights (K, P) of all recorded states of a run."""
    weights = run.parameters
    names = trained_among(
        run.config.architecture, {name: value.shape[1:] for name, value in weights.items()}
    )
    return np.concatenate(
        [np.asarray(weights[name], np.float64).reshape(len(weights[name]), -1) for name in names], 1
    )


def states_of(problem: Problem) -> Callable[[Floats], State]:
    """Return the function from trained weights (P,) to the state that has them; all others are
    the initial ones.
    """
    start = {
        name: np.asarray(value, np.float64) for name, value in problem.initial_parameters().items()
    }
    names = trained_names(problem)
    ends = np.cumsum([start[name].size for name in names])[:-1]

    def state(w: Floats) -> State:
        parts = zip(names, np.split(w, ends), strict=True)
        return State(
            problem,
            start | {name: part.reshape(start[name].shape) for name, part in parts},
            lambda: start,
            0,
        )

    return state


def loss_of(state: State) -> float:
    """Return the training loss at a state."""
    samples = state.problem.dataset
    return float(state.problem.loss.total(state.network(samples.x), samples.y))


def third(state: Callable[[Floats], State], w: Floats, U: Floats) -> Floats:
    """Return `T_ab = grad (u_a^T H u_b)` (k, k, P) for orthonormal `U` (P, k), by central
    differences of H.
    """
    k = U.shape[1]
    T = np.empty((k, k, len(w)))
    for a in range(k):
        ahead, behind = (derivatives_of(state(w + shift * U[:, a])) for shift in (SHIFT, -SHIFT))
        for b in range(a, k):
            T[a, b] = T[b, a] = (
                ahead.hessian_product(U[:, b]) - behind.hessian_product(U[:, b])
            ) / (2 * SHIFT)
    return T


def complementary(A: Floats, B: Floats, start: Floats, rounds: int = 500) -> Floats:
    """Return the `C >= 0` (k, k) that minimises `1/2 <C, B[C]> + <A, C>`, symmetric A (k, k) and B
    (k, k, k, k) >= 0.

    For k = 1 it is `max(0, -A/B)`, otherwise the solution of `A + B[C] = 0` if that is >= 0, or
    found from `start` by accelerated projected gradient.
    """
    k = len(A)
    if k == 1:
        return np.array([[max(0.0, -A[0, 0] / B[0, 0, 0, 0])]])
    free = np.linalg.lstsq(B.reshape(k * k, k * k), -A.ravel(), rcond=None)[0].reshape(
        k, k
    )  # least norm: symmetric
    left = A + np.einsum("abcd,cd->ab", B, free)
    if np.linalg.eigvalsh(free)[0] >= 0 and np.linalg.norm(left) <= 1e-10 * np.linalg.norm(A):
        return (free + free.T) / 2
    rate = 1 / np.linalg.eigvalsh(B.reshape(k * k, k * k))[-1]
    C = ahead = start
    for j in range(rounds):
        moved = ahead - rate * (A + np.einsum("abcd,cd->ab", B, ahead))
        values, vectors = np.linalg.eigh((moved + moved.T) / 2)
        new = vectors * np.maximum(values, 0.0) @ vectors.T
        change = np.linalg.norm(new - C)
        ahead = new + j / (j + 3) * (new - C)
        C = new
        if change <= 1e-10 * np.linalg.norm(C):
            break
    return C


def central_flow(
    problem: Problem,
    w: Floats,
    eta: float,
    steps: int,
    *,
    substeps: int = 2,
    top: int = 3,
    states: bool = True,
) -> CentralFlow:
    """Integrate the flow from weights `w` (P,) over `steps` steps of gradient descent of size
    `eta`.

    Euler steps of 1 / `substeps`; the `top` largest eigenvalues are followed, and those near the
    edge take part. Without `states` weights and vectors are kept of the end alone.
    """
    from dynamics_cli.gradients.lanczos import largest_eigenvalues

    state = states_of(problem)
    dt = 1 / substeps
    rng = np.random.default_rng(0)
    guess = rng.standard_normal(len(w))
    Sigma = np.zeros((len(w), 0))
    C = np.zeros((0, 0))
    values = np.zeros(top)
    vectors = np.zeros((len(w), top))
    kept: list[tuple[float, float, Floats]] = []
    path: list[tuple[Floats, Floats]] = []
    for i in range(substeps * steps + 1):
        here = state(w)
        derivatives = derivatives_of(here)
        if i % substeps == 0 or values[0] > FAR / eta:
            values, vectors, *_ = largest_eigenvalues(
                derivatives.hessian_product, guess, top, tolerance=1e-5
            )
            guess = vectors + 1e-2 / np.sqrt(len(w)) * rng.standard_normal(vectors.shape)
        k = int(np.sum(values > NEAR / eta))
        drift = gradient = derivatives.gradient()
        if k:
            U = vectors[:, :k]
            T = third(state, w, U)
            A = np.diag(2 / eta - values[:k]) + dt * eta * (T @ gradient)
            B = dt * eta / 2 * np.einsum("abp,cdp->abcd", T, T)
            turned = U.T @ Sigma  # the covariance of the last step, in the eigenvectors of this one
            C = complementary(A, B, turned @ C @ turned.T if Sigma.shape[1] else np.zeros((k, k)))
            Sigma = U
            drift = drift + np.einsum("ab,abp->p", C, T) / 2
        else:
            Sigma = np.zeros((len(w), 0))
            C = np.zeros((0, 0))
        if i % substeps == 0:
            kept.append((loss_of(here), float(np.trace(C)), values))
            path = [*(path if states else ()), (w, vectors)]
        w = w - dt * eta * drift
    losses, variance, largest = (np.array(series) for series in zip(*kept, strict=True))
    weights, directions = (np.array(series) for series in zip(*path, strict=True))
    return CentralFlow(weights, losses, losses + variance / eta, variance, largest, directions)


class EdgeOfStability(Theory, kind="central_flow"):
    """Gradient descent at the edge of stability on average: loss and sharpness (Cohen, Damian et
    al. 2024).

    Of runs that measured their sharpness. Both losses are averaged by a Gaussian of 50 iterations.
    """

    example = """\
dataset: {kind: linear_map, inputs: 4, outputs: 1, n: 32, singular_values: [1.0e-9], noise: 1.0}
architecture: {kind: fully_connected, widths: [8], activation: tanh}
initialization: {kind: lecun}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.2, iterations: 600}
record: {snapshots: {kind: every, interval: 5}, measures: [sharpness]}
"""

    def applies(self, run: Any) -> list[str] | None:
        """Return which assumptions fail; None unless sharpness was measured along steps."""
        optimizer = run.config.optimizer
        config = run.config
        if "sharpness" not in run.measures or getattr(optimizer, "lr", None) is None:
            return None
        violations = descent_violations(
            run.config, "updates are plain steps of gradient descent", batch=None
        )
        if optimizer.plain and stability_threshold(optimizer) is None:
            violations.append(
                "all weights have one step size, which stays: they do not, or it changes"
            )
        sigma = getattr(config.architecture, "sigma", None)
        if not (config.loss.smooth and getattr(sigma, "smooth", sigma is None)):
            violations.append("the loss has third derivatives: it has kinks")
        problem = build_problem(config, run.dataset())
        N = _end(run)
        if (work := N * (problem.dataset.n * problem.multiply_adds + OVERHEAD)) > MOST:
            violations.append(
                f"the run is small: the flow takes {work / MOST:.2g} times as long as is bearable,"
                " minutes"
            )
        return violations

    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return the averaged loss and the largest eigenvalues of the Hessian."""
        problem = build_problem(run.config, run.dataset())
        steps = run.loss_iterations
        start = problem.initial_parameters()
        w = np.concatenate(
            [np.asarray(start[name], np.float64).ravel() for name in trained_names(problem)]
        )
        measured = run.measures["sharpness"].reshape(len(run.snapshot_iterations), -1)
        k = measured.shape[1]
        at = np.isfinite(measured).all(axis=1)
        c = central_flow(
            problem, w, run.config.optimizer.lr, _end(run), top=min(max(k, 3), len(w)), states=False
        )
        when = run.snapshot_iterations[at]
        losses = averaged(run.losses, steps), averaged(c.predicted[steps], steps)
        return {
            "loss": Curve("loss, averaged", steps.astype(np.float64), losses[0], losses[1]),
            "sharpness": Curve("sharpness", when.astype(np.float64), measured[at], c.top[when, :k]),
        }


def _end(run: Any) -> int:
    return int(max(run.loss_iterations[-1], run.snapshot_iterations[-1]))


def averaged(losses: Floats, iterations: Floats) -> Floats:
    """Return losses (L,) averaged by a Gaussian of `SMOOTH` iterations; as they are where
    records are uneven.
    """
    values = np.asarray(losses, np.float64)
    gaps = np.diff(iterations)
    if len(gaps) == 0 or np.ptp(gaps) > 0:
        return values
    return np.asarray(gaussian_filter1d(values, SMOOTH / gaps[0]))
