"""Losses of the margin `z = y h` for labels ±1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dynamics_cli.config.base import Finding, Sections
from dynamics_cli.config.bases import Array, Labels, Loss, namespace


class MarginLoss(Loss):
    """What margin losses share: labels ±1 and the sign as prediction."""

    labels: ClassVar[Labels] = "signs"

    def predictions(self, h: Array) -> Array:
        """Return the sign of the output."""
        return namespace(h).sign(h)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether the network has one output and the labels are signs."""
        yield from super().check(sections)
        yield from self.check_written_labels(sections, (-1, 1), "-1 or 1")


class Logistic(MarginLoss, kind="logistic"):
    """`l(h, y) = log(1 + exp(-y h))`, evaluated without overflow."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `log(1 + exp(-y h))`."""
        xp = namespace(h)
        z = -y * h
        return (z + abs(z)) / 2 + xp.log1p(xp.exp(-abs(z)))

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `-y / (1 + exp(y h))`."""
        xp = namespace(h)
        z = y * h
        # exp of a non-positive number only: exp(-|z|) / (1 + exp(-|z|)) for z > 0, 1 / (1 + exp(-|z|)) otherwise
        small = xp.exp(-abs(z))
        return -y * xp.where(z > 0, small, xp.ones_like(small)) / (1 + small)


class Exponential(MarginLoss, kind="exponential"):
    """`l(h, y) = exp(-y h)`."""

    def values(self, h: Array, y: Array) -> Array:
        """Return `exp(-y h)`."""
        return namespace(h).exp(-y * h)

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `-y exp(-y h)`."""
        return -y * namespace(h).exp(-y * h)


class Hinge(MarginLoss, kind="hinge"):
    """`l(h, y) = max(0, 1 - y h)`; its derivative at the kink `y h = 1` is 0."""

    smooth = False

    def values(self, h: Array, y: Array) -> Array:
        """Return `max(0, 1 - y h)`."""
        z = 1 - y * h
        return z * (z > 0)

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `-y` where `y h < 1`, 0 elsewhere."""
        return -y * (y * h < 1)
