"""Neural tangent kernel of a two-layer network at given weights, and where kernel regression with it ends.

In the lazy regime (Boursier et al. 2022, Appendix A, Figure 5) training follows
`f_t(x) = f_0(x) + K(x, X) K(X, X)^+ (1 - exp(-loss_factor K(X, X) t / n)) (y - f_0(X))` (Jacot et al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.measures.arrays import Floats, as_floats, as_network, as_points
from dynamics_cli.measures.two_layer import activate, activation_derivative, outputs, preactivations


def gradient_features(
    x: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, train_output: bool = True
) -> Floats:
    """Return `grad_theta h(x_k)` for `x (n, d)`: `(n, m d + m)`, hidden weights row by row, then output weights.

    Without `train_output` the last m columns are left out. This is large: use `ntk` for the kernel itself.
    """
    hidden, output = as_network(W, a)
    z = preactivations(x, hidden)  # (n, m)
    points = as_floats(x, "x", axes=2)
    inner = (activation_derivative(z, slope) * output)[:, :, None] * points[:, None, :]  # (n, m, d)
    blocks = [inner.reshape(len(points), hidden.size)]
    if train_output:
        blocks.append(activate(z, slope))
    return np.concatenate(blocks, axis=1)


def ntk(
    x: ArrayLike, x_2: ArrayLike, W: ArrayLike, a: ArrayLike, *, slope: float = 0.0, train_output: bool = True
) -> Floats:
    """Return `K (n, n_2)`, `K(x, x') = <grad h(x), grad h(x')>`, at `W (m, d)`, `a (m,)`.

    `sum_j a_j^2 sigma'(<w_j, x>) sigma'(<w_j, x'>) <x, x'>`, plus `sum_j sigma(<w_j, x>) sigma(<w_j, x'>)` when the
    output weights are trained. `slope` is that of the activation for negative arguments (0 ReLU, 1 linear).
    """
    hidden, output = as_network(W, a)
    z, z_2 = preactivations(x, hidden), preactivations(x_2, hidden)  # (n, m), (n_2, m)
    gates = (activation_derivative(z, slope) * output**2) @ activation_derivative(z_2, slope).T
    K: Floats = gates * (as_floats(x, "x", axes=2) @ as_floats(x_2, "x_2", axes=2).T)
    if train_output:
        K = K + activate(z, slope) @ activate(z_2, slope).T
    return K


@dataclass(frozen=True)
class NtkRegression:
    """Gradient flow of the network linearised at `(W, a)`, on `x (n, d)`, `y (n,)`; make it with `ntk_regression`."""

    x: Floats
    y: Floats
    W: Floats
    a: Floats
    slope: float
    train_output: bool
    loss_factor: float
    eigenvalues: Floats
    """(n,) of K(X, X), descending; those below the cutoff are 0."""
    eigenvectors: Floats
    """(n, n) in columns."""

    def predict(self, x: ArrayLike, t: float = np.inf) -> Floats:
        """Return `f_t(x)` `(n_new,)` for `x (n_new, d)` at time `t`; the default is the interpolator.

        Raises ValueError for a negative time or another dimension.
        """
        if not t >= 0:
            raise ValueError(f"time must not be negative, not {t}")
        positive = self.eigenvalues > 0
        values = self.eigenvalues[positive]
        grown = -np.expm1(-self.loss_factor * values * t / len(self.y)) / values
        vectors = self.eigenvectors[:, positive]
        residual = self.y - outputs(self.x, self.W, self.a, self.slope)
        coefficients = vectors @ (grown * (vectors.T @ residual))  # (n,)
        K = ntk(x, self.x, self.W, self.a, slope=self.slope, train_output=self.train_output)
        result: Floats = outputs(x, self.W, self.a, self.slope) + K @ coefficients
        return result

    def __call__(self, x: ArrayLike) -> Floats:
        """Return the interpolator at `x (n_new, d)`: `f_0(x) + K(x, X) K(X, X)^+ (y - f_0(X))`."""
        return self.predict(x)


def ntk_regression(
    x: ArrayLike,
    y: ArrayLike,
    W: ArrayLike,
    a: ArrayLike,
    *,
    slope: float = 0.0,
    train_output: bool = True,
    loss_factor: float = 1.0,
    cutoff: float = 1e-12,
) -> NtkRegression:
    """Return kernel regression with the NTK at the initial weights `W (m, d)`, `a (m,)`, the initial function included.

    Eigenvalues of K(X, X) below `cutoff` times the largest count as 0 (pseudo-inverse): where K is singular the labels
    are fitted in the least-squares sense. Raises ValueError for shapes that do not match.
    """
    points, labels = as_points(x, y)
    hidden, output = as_network(W, a)
    values, vectors = np.linalg.eigh(ntk(points, points, hidden, output, slope=slope, train_output=train_output))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = np.where(values > cutoff * max(float(values[0]), 0.0), values, 0.0)
    return NtkRegression(points, labels, hidden, output, slope, train_output, loss_factor, kept, vectors)
