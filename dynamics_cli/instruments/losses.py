"""Functions of outputs and labels as losses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from pydantic import PrivateAttr
from torch import Tensor, nn

from dynamics_cli import kinds
from dynamics_cli.errors import InputError
from dynamics_cli.instruments.modules import counts
from dynamics_cli.instruments.network import ROUNDING, Given
from dynamics_cli.instruments.obstacles import told
from dynamics_cli.kinds import Loss, formulas

OfBoth = Callable[[Tensor, Tensor], Any]
"""Outputs and labels -> a number for each sample, or their mean or sum; or (sum, count)."""


class OwnLoss(Loss):
    """A function of outputs and labels, of the shapes that the network and the data give them."""

    _each: Any = PrivateAttr()
    _whole: Any = PrivateAttr()
    _shaped: Any = PrivateAttr()

    def values(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of each sample (n,)."""
        if isinstance(h, formulas.Expression):
            raise formulas.NotAFormulaError("a function of outputs and labels is no formula")
        return self._each(*self._shaped(h, y))

    def whole(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of some samples as the function gives it, which may weight them."""
        loss = self._whole(*self._shaped(h, y))
        return loss.mean() if loss.ndim else loss


class OwnClasses(OwnLoss):
    """A function of outputs (n, C) and classes (n,)."""

    labels = "classes"
    many_outputs = True

    def predictions(self, h: kinds.Array) -> kinds.Array:
        """Return the number of the largest output."""
        return h.argmax(-1)


class OwnCounted(OwnLoss):
    """A function that gives the sum of losses over the labels of some samples, and their number."""

    _shape: Any = PrivateAttr()

    def total(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the mean loss over the labels of some samples."""
        summed, count = self._whole(*self._shaped(h, y))
        return summed / torch.as_tensor(count).clip(1)

    def whole(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the mean loss over the labels of some samples."""
        return self.total(h, y)

    def count(self, y: kinds.Array) -> kinds.Array:
        """Return the number of labels of some samples."""
        y = torch.as_tensor(y)
        h = torch.zeros((len(y), *self._shape), dtype=torch.float64, device=y.device)
        _, count = self._whole(*self._shaped(h, y))
        return torch.as_tensor(count).clip(1)


def _anywhere(function: Any, **settings: Any) -> OfBoth:
    """Return a function whose weights, if it is a module, follow device and precision of outputs.

    `settings` are attributes of the module.
    """
    if not isinstance(function, nn.Module):
        return function  # type: ignore[no-any-return]

    @cache
    def like(device: torch.device, dtype: torch.dtype) -> Any:
        copied = copy.deepcopy(function).to(device, dtype)
        vars(copied).update(settings)
        return copied

    return lambda h, y: like(h.device, h.dtype)(h, y)


def own_loss(function: Callable[..., Tensor], network: Given, labels: Tensor) -> OwnLoss:
    """Return the loss of a function that gives a number for each sample, or their mean or sum; or
    the sum over labels and their number.

    Raises:
        InputError: it gives something else.
    """
    integers = not labels.is_floating_point()

    def shaped(h: Any, y: Any) -> tuple[Tensor, Tensor]:
        h = torch.as_tensor(h)
        y = torch.as_tensor(y)
        y = y.reshape(len(y), *labels.shape[1:]).to(h.device, torch.long if integers else h.dtype)
        return h.reshape(len(h), *network._shape), y

    numbers = np.arange(len(labels), dtype=float)[:, None]
    h, y = shaped(network.function(network.weights())(numbers), labels)
    h = h.where(~h.isnan(), 0.0)  # of which a mean is told from a sum
    anywhere = _anywhere(function)
    try:
        whole = anywhere(h, y)
        if counts(whole):
            counted = _counted(anywhere, network, shaped)
            _refuse_other_counts(counted, whole, h, y)
            return counted
        each, reduction = _singly(function, whole, h, y)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the loss of outputs {tuple(h.shape)} and labels {tuple(y.shape)}: {told(error)}"
        ) from error
    if reduction is None:
        needed = (
            "a number for each sample, nor their mean or sum; of a mean over labels whose number"
        )
        needed += " differs from sample to sample, return (sum, count)"
        raise InputError(
            f"the loss gives numbers {tuple(whole.shape)} for {len(y)} samples, neither {needed}"
        )
    kind = OwnLoss
    several = len(network._shape) == 1 and network.outputs is not None
    if several and integers and y.ndim == 1 and y.min() >= 0 and y.max() < network._shape[0]:
        kind = OwnClasses
    loss = kind(reduction=reduction)
    loss._each = each
    loss._whole = anywhere
    loss._shaped = shaped
    return loss


def _counted(
    anywhere: OfBoth,
    network: Given,
    shaped: Callable[[Any, Any], tuple[Tensor, Tensor]],
) -> OwnCounted:
    """Return the loss of a function that gives (sum, count)."""

    def each(h: Tensor, y: Tensor) -> Tensor:
        values: Tensor = torch.func.vmap(lambda h, y: anywhere(h[None], y[None])[0].reshape(()))(
            h, y
        )
        return values

    loss = OwnCounted()
    loss._each = each
    loss._whole = anywhere
    loss._shaped = shaped
    loss._shape = network._shape
    return loss


def _refuse_other_counts(loss: OwnCounted, given: Any, h: Tensor, y: Tensor) -> None:
    """Raise InputError where a sum is not that of samples, or a count depends on outputs."""
    summed = loss.values(h, y).sum()
    if not torch.allclose(torch.as_tensor(given[0]).to(summed), summed, rtol=ROUNDING):
        raise InputError("the loss gives (sum, count), but its sum is not that of single samples")
    count = torch.as_tensor(given[1])
    if count.ndim or float(loss.count(y)) != max(1.0, float(count)):
        raise InputError("the loss gives (sum, count), but the count depends on the outputs")


def _singly(
    function: Callable[..., Tensor], whole: Tensor, h: Tensor, y: Tensor
) -> tuple[OfBoth, Literal["mean", "sum"] | None]:
    """Return the function for each sample, and the reduction by which it gives `whole`.

    The reduction is None where it is neither the mean nor the sum.
    """
    anywhere = _anywhere(function)

    def singly(h: Tensor, y: Tensor) -> Tensor:
        values: Tensor = torch.func.vmap(lambda h, y: anywhere(h[None], y[None]).reshape(()))(h, y)
        return values

    each: OfBoth = anywhere
    values = whole
    reduction = getattr(function, "reduction", None)
    if not whole.ndim:
        each = singly
        if reduction in ("mean", "sum"):
            # a loss of torch gives the numbers of samples itself
            apart = _anywhere(function, reduction="none")
            if apart(h, y).shape == y.shape[:1]:
                each = apart
        values = each(h, y)
    mean = values.mean()
    if values.shape != y.shape[:1]:
        return each, None
    if whole.ndim or torch.allclose(whole, mean, rtol=ROUNDING):
        return each, "mean"
    if torch.allclose(whole, values.sum(), rtol=ROUNDING):
        return each, "sum"
    if each is singly or reduction != "mean":
        return each, None

    # weights of classes, or classes left out
    share = float(whole / mean)

    def weighted(h: Tensor, y: Tensor) -> Tensor:
        values: Tensor = share * each(h, y)
        return values

    return weighted, "mean"
