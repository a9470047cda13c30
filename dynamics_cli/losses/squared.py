"""Square losses."""

from __future__ import annotations

from dynamics_cli.config.bases import Array, Loss


class Mse(Loss, kind="mse"):
    """`(h - y)^2`, the loss that released codes minimise."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `(h - y)^2`."""
        return (h - y) ** 2

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `2 (h - y)`."""
        return 2.0 * (h - y)


class HalfMse(Loss, kind="half_mse"):
    """`(h - y)^2 / 2` (Boursier et al. 2022, Eq. 1), the loss of the papers' theory: `1/(2n) sum` over the samples."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `(h - y)^2 / 2`."""
        return 0.5 * (h - y) ** 2

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `h - y`."""
        return h - y
