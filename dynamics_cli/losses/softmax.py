"""Cross entropy of a softmax over C classes."""

from __future__ import annotations

from typing import ClassVar

from dynamics_cli.kinds import Array, Labels, Loss, formulas


class CrossEntropy(Loss, kind="cross_entropy"):
    """`l(h, y) = -log softmax(h)_y` for outputs `h` (..., n, C) and class numbers `y` (n,)."""

    example = """\
dataset: {kind: points, x: [[-0.5], [2.0]], y: [0, 1], append_bias: true}
architecture: {kind: fully_connected, widths: [50], outputs: 2}
initialization: {kind: default_scaled}
loss: {kind: cross_entropy}
"""
    labels: ClassVar[Labels] = "classes"
    many_outputs = True

    def values(self, h: Array, y: Array) -> Array:
        """Return `log sum_c exp(h_c) - h_y`, shape (..., n)."""
        return formulas.logsumexp(h) - formulas.pick(h, y)

    def predictions(self, h: Array) -> Array:
        """Return the number of the largest output."""
        return h.argmax(-1)
