"""Square losses, of vectors summed over the outputs and not averaged.

Masked entries of a matrix are labels of pairs (data set `matrix_completion`, architecture
`matrix_product`).
"""

from __future__ import annotations

from abc import abstractmethod

from dynamics_cli.kinds import Array, Loss


class SquareLoss(Loss):
    """The base of square losses."""

    vector_labels = True

    def values(self, h: Array, y: Array) -> Array:
        """Return the square of `h - y`; for vectors (..., n, C) the squared norm."""
        squares = self.squares(h, y)
        if y.ndim == 2:
            return squares.sum(-1)
        return squares

    @abstractmethod
    def squares(self, h: Array, y: Array) -> Array:
        """Return the square of every number of `h - y`."""


class Mse(SquareLoss, kind="mse"):
    """`||h - y||^2`, the loss that released codes minimise."""

    def squares(self, h: Array, y: Array) -> Array:
        """Return `(h - y)^2`."""
        return (h - y) ** 2


class HalfMse(SquareLoss, kind="half_mse"):
    """`||h - y||^2 / 2` for a sample, the loss of the papers' theory.

    The loss is the mean, `1/(2n) sum` over samples (Boursier et al. 2022, Eq. 1).
    """

    def squares(self, h: Array, y: Array) -> Array:
        """Return `(h - y)^2 / 2`."""
        return 0.5 * (h - y) ** 2
