"""The training loss of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import Section


class LossSection(Section):
    """What all losses share."""

    reduction: Literal["mean", "sum"] = "mean"
    """Mean or sum over the samples."""


class MseLoss(LossSection):
    """`(h - y)^2`, the loss that released codes minimise."""

    kind: Literal["mse"]


class HalfMseLoss(LossSection):
    """`(h - y)^2 / 2`, the loss of the papers' theory: `1/(2n) sum` over the samples."""

    kind: Literal["half_mse"]


class LogisticLoss(LossSection):
    """`log(1 + exp(-y h))` for labels ±1."""

    kind: Literal["logistic"]


class ExponentialLoss(LossSection):
    """`exp(-y h)` for labels ±1."""

    kind: Literal["exponential"]


class HingeLoss(LossSection):
    """`max(0, 1 - y h)` for labels ±1."""

    kind: Literal["hinge"]


class CrossEntropyLoss(LossSection):
    """`-log softmax(h)_y` for classes 0..C-1."""

    kind: Literal["cross_entropy"]


Loss = Annotated[
    MseLoss | HalfMseLoss | LogisticLoss | ExponentialLoss | HingeLoss | CrossEntropyLoss,
    Field(discriminator="kind"),
]
