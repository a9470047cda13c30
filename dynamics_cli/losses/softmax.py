"""Cross entropy of a softmax over C classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dynamics_cli.kinds import Array, Finding, Labels, Loss, Sections, formulas


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

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether the network has an output for every class, and the labels are classes."""
        yield from super().check(sections)
        outputs = getattr(sections.get("architecture"), "outputs", None) or 1
        if outputs > 1:
            names = f"a class, one of the integers 0 to {outputs - 1}"
            yield from self.check_written_labels(sections, range(outputs), names)
        else:
            yield from self.check_written_labels(sections, None, "a class, an integer >= 0")
