"""Balanced layers with a given product."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.random import Generator

from dynamics_cli.initializations.matrices import Product
from dynamics_cli.kinds import Floats, Positive, Problem


class BalancedProduct(Product, kind="balanced_product"):
    """Balanced layers of any depth, `W_(l+1)^T W_(l+1) = W_l W_l^T` (Arora et al. 2019, Procedure
    1).

    The product `W_L ... W_1` is Gaussian, its singular values are split evenly over the layers.
    Along gradient flow of linear networks they stay balanced; for two layers and other activations
    `balanced` has it neuron by neuron.
    """

    example = "{kind: balanced_product, scale: 1.0e-3}"
    scale: Positive
    """Standard deviation of the entries of the product."""
    start: Literal["identity"] | None = None
    """With `identity` the product is `scale I`, cut to its shape, in place of a Gaussian matrix."""

    def product(
        self, rng: Generator, problem: Problem, outputs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return the singular value decomposition of a Gaussian matrix, or of the identity."""
        columns = next(iter(problem.shapes.values()))[1]
        W = (
            np.eye(outputs, columns)
            if self.start == "identity"
            else rng.standard_normal((outputs, columns))
        )
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        return U, self.scale * s, Vt.T
