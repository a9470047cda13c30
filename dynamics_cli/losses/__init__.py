"""Each loss with its derivative, for torch tensors and NumPy arrays; a new one is a class and a line here."""

from __future__ import annotations

from typing import Any

from dynamics_cli.losses.base import Loss
from dynamics_cli.losses.margin import Exponential, Hinge, Logistic
from dynamics_cli.losses.softmax import CrossEntropy
from dynamics_cli.losses.squared import HalfMse, Mse

LOSSES: dict[str, type[Loss]] = {
    "mse": Mse,
    "half_mse": HalfMse,
    "logistic": Logistic,
    "exponential": Exponential,
    "hinge": Hinge,
    "cross_entropy": CrossEntropy,
}


def get_loss(section: Any) -> Loss:
    """Return the loss that a config section (`kind`, `reduction`) describes."""
    return LOSSES[section.kind](section.reduction)


__all__ = ["LOSSES", "CrossEntropy", "Exponential", "HalfMse", "Hinge", "Logistic", "Loss", "Mse", "get_loss"]
