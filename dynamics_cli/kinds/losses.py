"""The base class of losses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal, final

import numpy as np

from dynamics_cli.errors import InputError, alternatives
from dynamics_cli.formulas import algebra, tracing
from dynamics_cli.kinds.arrays import Array, Labels
from dynamics_cli.kinds.base import Finding, Kind, Sections
from dynamics_cli.kinds.registry import all_kinds


class Loss(Kind):
    """A training loss `L = reduce_k l(h(x_k), y_k)`, `reduce` the mean or the sum over samples.

    Labels at each position of a sequence are classes or signs (n, T), or numbers (n, T, k); a class
    -1 and a number NaN stand for no label. The reduction is over all labels that exist.
    """

    section: ClassVar[str] = "loss"
    labels: ClassVar[Labels] = "real"
    """The labels that the loss takes."""
    many_outputs: ClassVar[bool] = False
    """Whether the network must have several outputs (True) or a single output."""
    vector_labels: ClassVar[bool] = False
    """Whether labels may be vectors (n, C), a number for each output."""
    smooth: ClassVar[bool] = True
    """Whether it has no kinks."""
    of_critic: ClassVar[bool] = False
    """Whether a generator trained against it raises the mean output itself, not the loss of real
    samples.
    """
    reduction: Literal["mean", "sum"] = "mean"
    """Mean or sum over the samples; of labels at each position, over the labels that exist."""

    @abstractmethod
    def values(self, h: Array, y: Array) -> Array:
        """Return `l(h_k, y_k)` per sample, (..., n), of outputs `h` (..., n) and labels `y` (n,).

        Losses of `vector_labels` also take outputs (..., n, C) with labels (n, C). It is a formula:
        of one output and its label, which are summed over the outputs, or, for labels that are
        classes, of the outputs of a sample.
        """

    @final
    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `dl/dh` per sample, of the shape of `h`.

        Raises NotAFormulaError: the loss is no formula.
        """
        return tracing.loss_slopes(self, h, y)

    @property
    def square(self) -> float | None:
        """`c` of a formula `c / 2 ||h - y||^2` of a sample; None for all others."""
        if self.labels != "real" or tracing.facts(self) is None:
            return None
        h = np.concatenate([sign * np.logspace(-9, 9, 19) for sign in (-1, 1)])
        y = h[::-1]
        c = 2 * self.values(h, y) / (h - y) ** 2
        return float(c[0]) if np.allclose(c, c[0], rtol=1e-12, atol=0) else None

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a mistake unless the network has one output or, for `many_outputs`, several."""
        architecture = sections.get("architecture")
        outputs = getattr(architecture, "outputs", None)
        if architecture is None:
            return
        if self.many_outputs and outputs is None and not architecture.players:
            kinds = all_kinds("architecture")
            able = [repr(name) for name in kinds if "outputs" in kinds[name].model_fields]
            needed = f"{self.kind} needs architecture.kind {alternatives(able)} with outputs >= 2"
            yield ("loss", "kind"), f"{needed}; {architecture.kind} has one output"
        if self.many_outputs and outputs == 1:
            yield (
                ("architecture", "outputs"),
                f"must be the number of classes, >= 2, for the loss {self.kind}, not 1",
            )
        if not (self.many_outputs or self.vector_labels) and outputs is not None and outputs > 1:
            yield ("architecture", "outputs"), f"must be 1 for the loss {self.kind}, not {outputs}"

    def total(self, h: Array, y: Array) -> Array:
        """Return the reduced loss, shape (...)."""
        values = self.of_samples(h, y)
        if not values.ndim:
            raise InputError(
                f"loss.kind {self.kind!r}: values returns a single number; return one for each"
                " sample"
            )
        if self.reduction == "sum":
            return values.sum(-1)
        if self.at_positions(y):
            return values.sum(-1) / self.count(y)
        return values.mean(-1)

    def at_positions(self, y: Array) -> bool:
        """Return whether labels are given at each position of a sequence."""
        return bool(y.ndim == (3 if self.labels == "real" else 2))

    def labelled(self, y: Array) -> Array:
        """Return which positions (n, T) have a label."""
        if self.labels == "classes":
            return y >= 0
        first = y[..., 0] if y.ndim == 3 else y
        return first == first  # noqa: PLR0124 - NaN differs from itself

    def of_samples(self, h: Array, y: Array) -> Array:
        """Return the loss of each sample, shape (..., n), summed over the positions with a label.

        At positions, outputs are (..., n, T) or (..., n, T, C).
        """
        if not self.at_positions(y):
            return self.values(h, y)
        return self.of_positions(h, y).sum(-1)

    def of_positions(self, h: Array, y: Array) -> Array:
        """Return the loss at each position (..., n, T), 0 where there is no label."""
        there = self.labelled(y)
        if self.labels == "classes":
            y = y.clip(0)
        else:
            y = algebra.where(y == y, y, 0.0)  # noqa: PLR0124 - NaN differs from itself
        # a position is to the formula what a sample is
        n, T, *k = y.shape
        columns = [] if k == [1] else k
        lead = h.shape[: h.ndim - 2 - len(columns)]
        if self.many_outputs:
            columns = [h.shape[-1]]
            lead = h.shape[:-3]
        flat = (n * T, *columns)
        labels = y.reshape(n * T if self.labels != "real" else flat)
        values = self.values(h.reshape(*lead, *flat), labels)
        return algebra.where(there, values.reshape(*lead, n, T), 0.0)

    def count(self, y: Array) -> Array:
        """Return the number of labels, by which a mean divides; 1 where there is none."""
        if not self.at_positions(y):
            return y.shape[0]
        return self.labelled(y).sum().clip(1)

    def weight(self, y: Array) -> Array:
        """Return the weight of a label in the reduction: 1 over their number, or 1."""
        if self.reduction == "sum":
            return 1.0
        count = self.count(y)
        if hasattr(count, "double"):  # torch divides integers in its default precision
            count = count.double()
        return 1.0 / count

    def sample_weight(self, n: int) -> float:
        """Return the weight of one of `n` samples in the reduction: 1/n or 1."""
        return 1.0 / n if self.reduction == "mean" else 1.0

    def numbered(self, y: Array) -> Array:
        """Return labels as `values` takes them: classes as integers, others as they are."""
        return y.astype(np.int64) if self.labels == "classes" else y

    def predictions(self, h: Array) -> Array:
        """Return predicted labels: signs for margin losses, largest outputs for classes."""
        raise TypeError(f"{type(self).__name__} does not classify")
