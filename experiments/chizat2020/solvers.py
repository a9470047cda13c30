"""Max-margin classifiers by convex programs: on the features of a start, and over all neurons
(variation norm).
"""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.least_distance import InfeasibleError, least_distance

ROUNDS = 150
GAP = 0.02
STARTS = 200
STEPS = 60
ADDED = 100
"""Directions from which new neurons are sought, steps of the search, and neurons of either sign
that are added.
"""


def hidden(a: kit.Floats, x: kit.Floats) -> kit.Floats:
    """Return the hidden layer (n, m) of neurons `a` (m, d) at inputs (n, d)."""
    return np.asarray(np.maximum(x @ a.T, 0.0))


def output_layer(a: kit.Floats, x: kit.Floats, y: kit.Floats) -> kit.Floats:
    """Return the shortest output weights (m,) with `y f >= 1` for `f = (1/m) sum_j b_j relu(<a_j,
    x>)`; else NaN.

    It is the limit of training the output layer alone by gradient descent, in direction.
    """
    try:
        return np.asarray(least_distance(y[:, None] * hidden(a, x) / len(a)).w)
    except InfeasibleError:
        return np.full(len(a), np.nan)


def largest_margin(x: kit.Floats, y: kit.Floats, seed: int = 0) -> tuple[float, float]:
    """Return `max min_i y_i f(x_i)` over functions of variation norm at most 1, from below, and a
    bound found for it.

    Neurons of unit length are added to a linear program until none that is found gains more than
    `GAP`. The dual weights p bound the margin by `max_a |sum_i p_i y_i relu(<a, x_i>)|`, sought
    among local maxima from random starts.
    """
    from scipy.optimize import linprog  # takes a fifth of a second

    rng = np.random.default_rng(seed)
    n = len(x)
    neurons = rng.standard_normal((2 * n, x.shape[1]))  # as many separate the samples
    neurons /= np.linalg.norm(neurons, axis=1, keepdims=True)
    bound = np.inf
    for _ in range(ROUNDS):
        A = y[:, None] * hidden(
            neurons, x
        )  # maximise t where y f >= t, f = A (c+ - c-), and the c sum to 1
        solved = linprog(
            np.r_[np.zeros(2 * len(neurons)), -1.0],
            A_ub=np.c_[-A, A, np.ones(n)],
            b_ub=np.zeros(n),
            A_eq=[np.r_[np.ones(2 * len(neurons)), 0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * (2 * len(neurons)) + [(None, None)],
        )
        margin = -solved.fun
        p = -solved.ineqlin.marginals
        neurons = neurons[solved.x[: len(neurons)] + solved.x[len(neurons) : -1] > 0]
        pushed = []
        for sign in (1.0, -1.0):
            u = np.concatenate([neurons, rng.standard_normal((STARTS, x.shape[1]))])
            best = u
            value = np.full(len(u), -np.inf)
            for step in range(
                STEPS
            ):  # ascent on the sphere, its steps ever smaller since the objective has kinks
                u = u / np.linalg.norm(u, axis=1, keepdims=True)
                g = sign * ((x @ u.T > 0).T * (p * y)) @ x
                now = (g * u).sum(1)
                best = np.where((now > value)[:, None], u, best)
                value = np.maximum(now, value)
                u = u + g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1e-30) / (
                    1 + step / 5
                )
            order = np.argsort(-value)[:ADDED]
            pushed.append((best[order], float(value[order[0]])))
        bound = min(bound, max(value for _, value in pushed))
        if bound <= (1 + GAP) * margin:
            break
        neurons = np.concatenate([neurons, *(u for u, _ in pushed)])
    return float(margin), bound
