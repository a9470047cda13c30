"""The central flow: what gradient descent at the edge of stability does on average (Cohen, Damian et al. 2024).

    dw/dt = -eta [grad L + 1/2 grad <H(w), Sigma>],   Sigma = U C U^T,

one unit of time for a step of gradient descent, U the eigenvectors of the Hessian H with eigenvalues near the edge.
C >= 0 is the covariance of the oscillation; with `T_ab = grad (u_a^T H u_b)` it solves, for an Euler step dt,

    C >= 0,  A + B[C] >= 0,  <C, A + B[C]> = 0,
    A = 2/eta I - diag(lambda) + dt eta <T_ab, grad L>,   B_ab,cd = dt eta/2 <T_ab, T_cd>,

which keeps the eigenvalues at or below 2/eta. The loss of gradient descent is then `L + tr(Sigma) / eta` on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynamics_cli.config.bases import State
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.recording.derivatives import Derivatives, derivatives_of

if TYPE_CHECKING:
    from dynamics_cli.training.problem import Problem

NEAR, FAR = 1.95, 1.8
"""Eigenvalues above `NEAR` over eta take part; below `FAR` they are computed at whole steps alone."""
SHIFT = 1e-4
"""Length of the differences that give third derivatives; their error is of its square."""


@dataclass(frozen=True)
class Local:
    """The loss around weights."""

    gradient: Floats
    """(P,)."""
    product: Callable[[Floats], Floats]
    """`v -> H v`."""
    loss: float


@dataclass(frozen=True)
class CentralFlow:
    """The flow at the steps 0..N of gradient descent."""

    weights: Floats
    """(N + 1, P)."""
    losses: Floats
    """`L(w)` (N + 1,)."""
    predicted: Floats
    """`L(w) + tr(Sigma) / eta` (N + 1,)."""
    variance: Floats
    """`tr(Sigma)` (N + 1,)."""
    top: Floats
    """(N + 1, k) largest eigenvalues of the Hessian."""
    vectors: Floats
    """(N + 1, P, k) their vectors."""


def flatten(parameters: Mapping[str, Floats], names: list[str]) -> Floats:
    """Return weights (..., *shape) by name as vectors (..., P), in the order of `names`."""
    first = parameters[names[0]]
    leading = first.shape[:1] if len(parameters) else ()
    return np.concatenate([np.asarray(parameters[name], np.float64).reshape(*leading, -1) for name in names], axis=-1)


def around(problem: Problem) -> tuple[list[str], Callable[[Floats], Local]]:
    """Return the names of the trained weights, and the function from a vector of them (P,) to the loss around it."""
    start = {name: np.asarray(value, np.float64) for name, value in problem.initial_parameters().items()}
    names = derivatives_of(State(problem, start, lambda: start, 0)).names
    x, y = problem.dataset.x, problem.dataset.y

    def local(w: Floats) -> Local:
        parameters, at = dict(start), 0
        for name in names:
            shape = problem.shapes[name]
            size = int(np.prod(shape))
            parameters[name] = w[at : at + size].reshape(shape)
            at += size
        state = State(problem, parameters, lambda: start, 0)
        found: Derivatives = derivatives_of(state)
        return Local(found.gradient(), found.hessian_product, float(problem.loss.total(state.network(x), y)))

    return names, local


def third(local: Callable[[Floats], Local], w: Floats, U: Floats) -> Floats:
    """Return `T_ab = grad (u_a^T H u_b)` (k, k, P) for orthonormal `U` (P, k), by central differences of H."""
    k = U.shape[1]
    T = np.empty((k, k, len(w)))
    for a in range(k):
        ahead, behind = local(w + SHIFT * U[:, a]).product, local(w - SHIFT * U[:, a]).product
        for b in range(a, k):
            T[a, b] = T[b, a] = (ahead(U[:, b]) - behind(U[:, b])) / (2 * SHIFT)
    return T


def complementary(A: Floats, B: Floats, start: Floats, rounds: int = 500) -> Floats:
    """Return the `C >= 0` (k, k) that minimises `1/2 <C, B[C]> + <A, C>`, symmetric A (k, k) and B (k, k, k, k) >= 0.

    By accelerated projected gradient from `start`; for k = 1 it is `max(0, -A/B)`.
    """
    k = len(A)
    if k == 1:
        return np.array([[max(0.0, -A[0, 0] / B[0, 0, 0, 0])]])
    rate = 1 / np.linalg.eigvalsh(B.reshape(k * k, k * k))[-1]
    C = ahead = start
    for j in range(rounds):
        moved = ahead - rate * (A + np.einsum("abcd,cd->ab", B, ahead))
        values, vectors = np.linalg.eigh((moved + moved.T) / 2)
        new = vectors * np.maximum(values, 0.0) @ vectors.T
        change = np.linalg.norm(new - C)
        ahead, C = new + j / (j + 3) * (new - C), new
        if change <= 1e-10 * np.linalg.norm(C):
            break
    return C


def central_flow(
    problem: Problem, w: Floats, eta: float, steps: int, *, substeps: int = 2, top: int = 3
) -> CentralFlow:
    """Integrate the flow from weights `w` (P,) over so many `steps` of gradient descent of step `eta`.

    Euler steps of 1 / `substeps`; the `top` largest eigenvalues are followed, and those near the edge take part.
    """
    _, local = around(problem)
    dt, rng = 1 / substeps, np.random.default_rng(0)
    guess, Sigma = rng.standard_normal(len(w)), np.zeros((len(w), 0))
    C, values, vectors = np.zeros((0, 0)), np.zeros(top), np.zeros((len(w), top))
    kept: list[tuple[Floats, float, float, Floats, Floats]] = []
    for i in range(substeps * steps + 1):
        here = local(w)
        if i % substeps == 0 or values[0] > FAR / eta:
            values, vectors, _ = largest_eigenvalues(here.product, guess, top, tolerance=1e-5)
            guess = vectors.sum(1) + 1e-2 / np.sqrt(len(w)) * rng.standard_normal(len(w))
        k = int(np.sum(values > NEAR / eta))
        drift = here.gradient
        if k:
            U = vectors[:, :k]
            T = third(local, w, U)
            A = np.diag(2 / eta - values[:k]) + dt * eta * (T @ here.gradient)
            B = dt * eta / 2 * np.einsum("abp,cdp->abcd", T, T)
            turned = U.T @ Sigma  # the covariance of the last step, in the eigenvectors of this one
            C = complementary(A, B, turned @ C @ turned.T if Sigma.shape[1] else np.zeros((k, k)))
            Sigma = U
            drift = drift + np.einsum("ab,abp->p", C, T) / 2
        else:
            Sigma, C = np.zeros((len(w), 0)), np.zeros((0, 0))
        if i % substeps == 0:
            kept.append((w, here.loss, float(np.trace(C)), values, vectors))
        w = w - dt * eta * drift
    weights, losses, variance, largest, directions = (np.array(one) for one in zip(*kept, strict=True))
    return CentralFlow(weights, losses, losses + variance / eta, variance, largest, directions)
