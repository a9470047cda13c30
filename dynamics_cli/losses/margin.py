"""Losses of the margin `z = y h` for labels ±1."""

from __future__ import annotations

from typing import ClassVar

from dynamics_cli.kinds import Array, Labels, Loss, formulas


class MarginLoss(Loss):
    """The base of margin losses: labels ±1 and the sign as prediction."""

    labels: ClassVar[Labels] = "signs"

    def predictions(self, h: Array) -> Array:
        """Return the sign of the output."""
        return formulas.sign(h)


class Logistic(MarginLoss, kind="logistic"):
    """`l(h, y) = log(1 + exp(-y h))`, evaluated without overflow."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `log(1 + exp(-y h))`."""
        return formulas.softplus(-y * h)


class Exponential(MarginLoss, kind="exponential"):
    """`l(h, y) = exp(-y h)`."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `exp(-y h)`."""
        return formulas.exp(-y * h)


class Hinge(MarginLoss, kind="hinge"):
    """`l(h, y) = max(0, 1 - y h)`; its derivative at the kink `y h = 1` is 0."""

    smooth = False
    of_critic = True

    def values(self, h: Array, y: Array) -> Array:
        """Return `max(0, 1 - y h)`."""
        return formulas.maximum(1 - y * h, 0.0)
