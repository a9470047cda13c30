"""The limit of Theorem 1 of Phuong and Lampert 2021: every neuron along one of two max-margin vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from dynamics_cli.measures.arrays import Floats, as_floats, as_points
from dynamics_cli.measures.least_distance import LeastDistance, least_distance


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

    def kkt_point(self, u: ArrayLike, z: ArrayLike) -> tuple[Floats, Floats]:
        """Return `W` (p, d) and `a` (p,) of Lemma C.1 for directions `u`, `z` (p,) with `u_i = 0` or `z_i = 0`.

        `W = u w+^T + z w-^T` and `a = ||w+|| u - ||w-|| z` with `||u|| = ||w+||^(-1/2)`, `||z|| = ||w-||^(-1/2)`.
        """
        directions = [np.asarray(v, np.float64) for v in (u, z)]
        sizes = [float(np.linalg.norm(one.w)) for one in (self.plus, self.minus)]
        left, right = (v / np.linalg.norm(v) / np.sqrt(size) for v, size in zip(directions, sizes, strict=True))
        return np.outer(left, self.plus.w) + np.outer(right, self.minus.w), sizes[0] * left - sizes[1] * right

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


def kkt_residual(W: ArrayLike, a: ArrayLike, x: ArrayLike, y: ArrayLike) -> float:
    """Return how far a network is from a KKT point of `min ||theta||^2 / 2` with `y_i f(x_i) >= 1` (Eq. 77).

    The network `W` (p, d), `a` (p,) is scaled to a least margin of 1 on `x` (n, d), `y` (n,). The larger of
    `||theta - sum_i lambda_i y_i grad f(x_i)|| / ||theta||` and `sum_i lambda_i (y_i f(x_i) - 1) / ||theta||^2` for
    the best `lambda >= 0`; NaN where some point is on the wrong side.
    """
    points, labels = as_points(x, y)
    weights, out = as_floats(W, "W", axes=2), as_floats(a, "a", axes=1)
    active = np.maximum(points @ weights.T, 0.0)  # (n, p)
    margin = float((labels * (active @ out)).min())
    if not margin > 0:
        return float("nan")
    weights, out, active = weights / margin**0.5, out / margin**0.5, active / margin**0.5
    theta = np.concatenate([weights.ravel(), out])
    gates = (active > 0) * out  # (n, p)
    gradients = np.concatenate([(gates[..., None] * points[:, None, :]).reshape(len(points), -1), active], axis=1)
    slack = labels * (active @ out) - 1.0
    size = float(np.linalg.norm(theta))
    system = np.vstack([(labels[:, None] * gradients).T, slack / size])  # lambda is not unique without the last row
    multipliers, _ = nnls(system, np.append(theta, 0.0))
    left = np.linalg.norm(theta - system[:-1] @ multipliers)
    return float(max(left / size, multipliers @ slack / size**2))
