"""The limit of Theorem 1 of Phuong and Lampert 2021: every neuron along one of two max-margin vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats, as_points
from dynamics_cli.theory.least_distance import LeastDistance, least_distance


@dataclass(frozen=True)
class CanonicalNeurons:
    """The max-margin vectors of both classes (Eqs. 6 and 7)."""

    plus: LeastDistance
    minus: LeastDistance

    @property
    def spans(self) -> bool:
        """Whether the support examples of each class span the whole space, as Theorem 1 assumes."""
        return all(len(one.support) >= len(one.w) for one in (self.plus, self.minus))  # multipliers are of a basis

    @property
    def share(self) -> float:
        """Limit of `||W_+||_F^2 / ||W||_F^2` when neither group is empty: `||w+|| / (||w+|| + ||w-||)`.

        A linear subnetwork with margin `1/||w+||` per unit of `||W_+||_F^2` has `||W_+||_F^2 / log t -> ||w+||`, which
        are the norms `nu_+` and `nu_-` of the proof of Theorem 1.
        """
        plus, minus = (float(np.linalg.norm(one.w)) for one in (self.plus, self.minus))
        return plus / (plus + minus)

    @property
    def coefficient(self) -> float:
        """The `u = z` of Corollary 1 when neither group is empty: `1 / (2 (||w+|| + ||w-||))`."""
        return float(1 / (2 * (np.linalg.norm(self.plus.w) + np.linalg.norm(self.minus.w))))

    def function(self, x: ArrayLike) -> Floats:
        """Return the limit of `f(x) / ||theta||^2` (n,) of Corollary 1 when neither group is empty."""
        points = as_floats(x, "x", axes=2)
        plus, minus = (np.maximum(points @ one.w, 0.0) for one in (self.plus, self.minus))
        result: Floats = self.coefficient * (plus - minus)
        return result


def canonical_neurons(x: ArrayLike, y: ArrayLike) -> CanonicalNeurons:
    """Return w+ and w- of inputs `x (n, d)` with labels `y (n,)`.

    Raises:
        InfeasibleError: a class cannot be separated from the origin.
        ValueError: a class is empty, or shapes do not match.

    """
    points, labels = as_points(x, y)
    if not (labels > 0).any() or not (labels < 0).any():
        raise ValueError("both classes must have points")
    return CanonicalNeurons(least_distance(points[labels > 0]), least_distance(points[labels < 0]))


def distance_to_limit(W: ArrayLike, w_plus: ArrayLike, w_minus: ArrayLike) -> Floats:
    """Return `min || W/||W||_F - (u w+^T + z w-^T) ||_F` `(...)` for weights `W (..., m, d)` (Eq. 8).

    The minimum is over `u, z >= 0` with `u_i = 0` or `z_i = 0`: each row goes to the closer ray.
    """
    weights = as_floats(W, "W", axes=2, batched=True)
    unit = weights / np.linalg.norm(weights, axis=(-2, -1), keepdims=True)
    remainders = []
    for vector in (w_plus, w_minus):
        ray = np.asarray(vector, np.float64)
        ray = ray / np.linalg.norm(ray)
        reached = np.maximum(unit @ ray, 0.0)  # (..., m) lengths of the projections on the ray
        remainders.append(np.sum((unit - reached[..., None] * ray) ** 2, axis=-1))
    result: Floats = np.sqrt(np.minimum(*remainders).sum(axis=-1))
    return result
