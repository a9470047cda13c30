"""Directions along which the loss around a trajectory is looked at: random directions, and the principal directions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynamics_cli.measures.arrays import Floats


def filter_normalised(weights: Mapping[str, Floats], rng: np.random.Generator) -> dict[str, Floats]:
    """Return a Gaussian direction of the shapes of `weights`, every filter of which has the norm of the weights' own.

    A filter is a row of a matrix or a kernel of a convolution; a vector counts as one.

    Source: Li et al. 2018, Visualizing the Loss Landscape of Neural Nets, Section 4.
    """
    direction = {}
    for name, weight in weights.items():
        rows = weight.reshape(len(weight) if weight.ndim > 1 else 1, -1)
        drawn = rng.standard_normal(rows.shape)
        sizes = np.linalg.norm(rows, axis=1) / np.linalg.norm(drawn, axis=1)
        direction[name] = (drawn * sizes[:, None]).reshape(weight.shape)
    return direction


def principal_plane(moves: Floats) -> tuple[Floats, Floats, Floats]:
    """Return two orthonormal directions (2, P), coordinates (k, 2) of moves (k, P), and shares (2,) of their squares.

    They are the first two singular vectors of the moves from a state to all others; a turn about the state is no
    matter, so that they are not centred. Where the moves span one direction only, the second has share 0.

    Source: Li et al. 2018, Section 7.2. Raises ValueError when nothing moves, or there are fewer than two moves.
    """
    if len(moves) < 2 or not moves.any():
        raise ValueError("a plane needs two moves, and one that is not 0")
    values, vectors = np.linalg.eigh(moves @ moves.T)
    values, vectors = np.maximum(values[:-3:-1], 0.0), vectors[:, :-3:-1]
    if values[1] <= 1e-14 * values[0]:
        values[1] = 0.0
    sizes = np.sqrt(values)
    directions = (moves.T @ vectors / np.where(sizes > 0, sizes, 1.0)).T * (sizes > 0)[:, None]
    return directions, vectors * sizes, values / np.sum(moves**2)
