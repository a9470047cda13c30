"""The base class of losses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal, final

import numpy as np

from dynamics_cli.errors import InputError, alternatives
from dynamics_cli.formulas import tracing
from dynamics_cli.kinds.arrays import Array, Labels
from dynamics_cli.kinds.base import Finding, Kind, Sections
from dynamics_cli.kinds.registry import all_kinds


class Loss(Kind):
    """A training loss `L = reduce_k l(h(x_k), y_k)`, `reduce` the mean or the sum over samples."""

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
    """Mean or sum over the samples."""

    @abstractmethod
    def values(self, h: Array, y: Array) -> Array:
        """Return `l(h_k, y_k)` per sample: shape (..., n) from outputs `h` (..., n) and labels `y`
        (n,).

        Losses of `vector_labels` also take outputs (..., n, C) with labels (n, C). It is a formula:
        of one output and its label, which are summed over the outputs, or, for labels that are
        classes, of the outputs of a sample.
        """

    @final
    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `dl/dh` per sample, of the shape of `h`; `NotAFormulaError` where the loss is
        no formula.
        """
        return tracing.loss_slopes(self, h, y)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a mistake unless the network has a single output or, for losses of
        `many_outputs`, several.
        """
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
        values = self.values(h, y)
        if not values.ndim:
            raise InputError(
                f"loss.kind {self.kind!r}: values returns a single number; return one for each"
                " sample"
            )
        if self.reduction == "mean":
            return values.mean(-1)
        return values.sum(-1)

    def sample_weight(self, n: int) -> float:
        """Return the weight of one of `n` samples in the reduction: 1/n or 1."""
        return 1.0 / n if self.reduction == "mean" else 1.0

    def numbered(self, y: Array) -> Array:
        """Return labels as `values` takes them: integers where they are classes, else as they
        are.
        """
        return y.astype(np.int64) if self.labels == "classes" else y

    def predictions(self, h: Array) -> Array:
        """Return predicted labels: signs for margin losses, the largest output's number for
        classes.
        """
        raise TypeError(f"{type(self).__name__} does not classify")
