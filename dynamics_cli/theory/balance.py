"""Lemma 1 of Boursier et al. 2022: gradient flow conserves `a_j^2 - ||w_j||^2`, gradient descent nearly does."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Bools, Floats, as_network
from dynamics_cli.measures.neurons import balancedness, norms
from dynamics_cli.theory.vector_field import neuron_vectors


def invariant_drift(W: ArrayLike, a: ArrayLike) -> Floats:
    """Return `max_j |I_j(t) - I_j(0)|` `(K,)`, `I_j = a_j^2 - ||w_j||^2`, of snapshots `W (K, m, d)`, `a (K, m)`.

    0 along gradient flow (Lemma 1); of the order of the learning rate along gradient descent. Raises ValueError for
    shapes that do not match or for a single network.
    """
    invariants = balancedness(W, a)
    if invariants.ndim != 2 or len(invariants) == 0:
        raise ValueError(f"drift needs snapshots (K, m, d), but the invariants have shape {invariants.shape}")
    result: Floats = np.abs(invariants - invariants[0]).max(axis=1)
    return result


def is_balanced(W: ArrayLike, a: ArrayLike, relative_tolerance: float = 1e-5) -> Bools:
    """Return whether `|a_j| = ||w_j||` within the relative tolerance for every neuron, of the shape of the batch."""
    hidden, output = as_network(W, a, batched=True)
    lengths, heads = norms(hidden), np.abs(output)
    near = np.abs(heads - lengths) <= relative_tolerance * np.maximum(heads, lengths)
    return np.asarray(near.all(axis=-1))


def step_drift(
    x: ArrayLike,
    y: ArrayLike,
    W: ArrayLike,
    a: ArrayLike,
    lr: float,
    *,
    slope: float = 0.0,
    loss_factor: float = 1.0,
) -> Floats:
    """Return the exact change `(..., m)` of `a_j^2 - ||w_j||^2` in one step of gradient descent of size `lr`.

    It is `lr^2 (<D_j, w_j>^2 - a_j^2 ||D_j||^2)`: second order in the step, hence zero for the flow, and for a balanced
    neuron never positive (Cauchy-Schwarz).
    """
    hidden, output = as_network(W, a, batched=True)
    D = neuron_vectors(x, y, hidden, output, slope=slope, loss_factor=loss_factor)
    return np.asarray(lr**2 * (np.sum(D * hidden, axis=-1) ** 2 - output**2 * np.sum(D**2, axis=-1)))
