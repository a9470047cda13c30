"""Functions of outputs and labels as losses."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import PrivateAttr
from torch import Tensor, nn

from dynamics_cli import kinds
from dynamics_cli.errors import InputError
from dynamics_cli.instruments.modules import copied, is_sum_and_count
from dynamics_cli.instruments.network import CLOSE, ROUNDING, Given
from dynamics_cli.kinds import Loss, formulas
from dynamics_cli.training.obstacles import told

OfBoth = Callable[[Tensor, Tensor], Any]
"""Outputs and labels -> a number for each sample, or their mean or sum; or (sum, count)."""
ROUNDED = 1e-12
"""Relative difference to a whole number that is rounding."""


class Form(NamedTuple):
    """A loss of single samples and of several."""

    each: OfBoth
    """Gives a number for each sample."""
    whole: OfBoth
    """Gives the reduced loss, or (sum, count)."""
    counts: bool = False
    """Whether it is (sum, count): the labels of some samples decide what their mean divides by."""


class OwnLoss(Loss):
    """A function of outputs and labels, of the shapes that the network and the data give them."""

    _function: Any = PrivateAttr()
    """The function itself, which training may change."""
    _form: Any = PrivateAttr()
    """A function of outputs and labels -> its form."""
    _now: Form = PrivateAttr()
    _shaped: Any = PrivateAttr()
    _shape: tuple[int, ...] = PrivateAttr()
    """The shape of the outputs for a sample."""

    def as_now(self) -> OwnLoss:
        """Return the loss with a copy of its function as it is now."""
        loss = self.model_copy()
        loss._now = self._form(copied_loss(self._function))
        return loss

    def values(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of each sample (n,)."""
        if isinstance(h, formulas.Expression):
            raise formulas.NotAFormulaError("a function of outputs and labels is no formula")
        return self._now.each(*self._shaped(h, y))

    def total(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the mean loss over the labels of some samples, or over samples."""
        if not self._now.counts:
            return super().total(h, y)
        summed, count = self._now.whole(*self._shaped(h, y))
        return summed / _divisor(count)

    def whole(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of some samples as the function gives it."""
        if self._now.counts:
            return self.total(h, y)
        loss = self._now.whole(*self._shaped(h, y))
        return loss.mean() if loss.ndim else loss

    def count(self, y: kinds.Array) -> kinds.Array:
        """Return the number of labels of some samples, or the sum of their weights."""
        if not self._now.counts:
            return super().count(y)
        y = torch.as_tensor(y)
        h = _elsewhere((len(y), *self._shape), y.device)
        _, count = self._now.whole(*self._shaped(h, y))
        return _divisor(count)


class OwnClasses(OwnLoss):
    """A function of outputs (n, C) and classes (n,)."""

    labels = "classes"
    many_outputs = True

    def predictions(self, h: kinds.Array) -> kinds.Array:
        """Return the number of the largest output."""
        return h.argmax(-1)


def _divisor(count: Any) -> Tensor:
    """Return a number of labels, in double precision; 1 where there is none."""
    count = torch.as_tensor(count).double()
    return torch.where(count == 0, torch.ones_like(count), count)


def copied_loss(function: Any) -> Any:
    """Return a copy of a loss, with the state that an object holds; weights of its own rest."""
    try:
        if isinstance(function, nn.Module):
            return copied(function).requires_grad_(False)
        return copy.deepcopy(function)
    except Exception as error:
        raise InputError(f"the loss cannot be copied: {told(error)}") from error


def _anywhere(function: Any, **settings: Any) -> OfBoth:
    """Return a function whose weights, if it is a module, follow device and precision of outputs.

    `settings` are attributes of the module.
    """
    if not isinstance(function, nn.Module):
        return function  # type: ignore[no-any-return]

    @cache
    def like(device: torch.device, dtype: torch.dtype) -> Any:
        module = copied(function).to(device, dtype)
        vars(module).update(settings)
        return module

    return lambda h, y: like(h.device, h.dtype)(h, y)


def own_loss(function: Callable[..., Tensor], network: Given, labels: Tensor) -> OwnLoss:
    """Return the loss that a function computes.

    The function gives a number for each sample, their mean or sum, or the sum over labels and their
    number.

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
    kind = OwnLoss
    several = len(network._shape) == 1 and network.outputs is not None
    if several and integers and y.ndim == 1 and y.min() >= 0 and y.max() < network._shape[0]:
        kind = OwnClasses
    try:
        form, reduction = _form_of(copied_loss(function), h, y)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the loss of outputs {tuple(h.shape)} and labels {tuple(y.shape)}: {told(error)}"
        ) from error
    loss = kind(reduction=reduction)
    loss._function = function
    loss._form = form
    loss._shaped = shaped
    loss._shape = network._shape
    return loss.as_now()


def _form_of(
    function: Callable[..., Any], h: Tensor, y: Tensor
) -> tuple[Callable[[Any], Form], Literal["mean", "sum"]]:
    """Return the form of a function as a function of it, and its reduction.

    Raises InputError: it gives neither a number for each sample, nor their mean or sum, nor the sum
    over labels and their number.
    """
    whole = _anywhere(function)(h, y)
    if is_sum_and_count(whole):
        if wrong := _miscounts(_counted(function), h, y):
            raise InputError(f"the loss gives (sum, count), but {wrong}")
        return _counted, "mean"
    if whole.ndim:
        if whole.shape == y.shape[:1]:
            return _of_samples, "mean"
        raise _no_reduction(whole, y)
    reduction = getattr(function, "reduction", None)
    if isinstance(function, nn.Module) and reduction == "mean":
        # a loss of torch may weight classes, leave some out, and change both during training
        apart = _anywhere(function, reduction="none")(h, y)
        if apart.shape[:1] == y.shape[:1] and _miscounts(_weighted(function), h, y) is None:
            return _weighted, "mean"
    values = _singly(function).each(h, y)
    if values.shape == y.shape[:1]:
        if torch.allclose(whole, values.mean(), rtol=ROUNDING):
            return _singly, "mean"
        if torch.allclose(whole, values.sum(), rtol=ROUNDING):
            return _singly, "sum"
    raise _no_reduction(whole, y)


def _no_reduction(whole: Tensor, y: Tensor) -> InputError:
    return InputError(
        f"the loss gives numbers {tuple(whole.shape)} for {len(y)} samples, neither a number for"
        " each sample, nor their mean or sum; of a mean over labels whose number differs from"
        " sample to sample, return (sum, count)"
    )


def _of_samples(function: Any) -> Form:
    """Return the form of a function that gives a number for each sample."""
    anywhere = _anywhere(function)
    return Form(anywhere, anywhere)


def _singly(function: Any) -> Form:
    """Return the form of a function that gives a mean or sum over samples."""
    anywhere = _anywhere(function)

    def one(h: Tensor, y: Tensor) -> Tensor:
        value: Tensor = anywhere(h[None], y[None])
        return value.reshape(())

    return Form(torch.func.vmap(one), anywhere)


def _counted(function: Any) -> Form:
    """Return the form of a function that gives (sum, count)."""
    anywhere = _anywhere(function)

    def one(h: Tensor, y: Tensor) -> Tensor:
        value: Tensor = anywhere(h[None], y[None])[0]
        return value.reshape(())

    return Form(torch.func.vmap(one), anywhere, counts=True)


def _weighted(function: nn.Module) -> Form:
    """Return the form of a loss of torch that gives a mean: its sum, and the sum over the mean."""
    apart, total, mean = (_anywhere(function, reduction=how) for how in ("none", "sum", "mean"))

    def each(h: Tensor, y: Tensor) -> Tensor:
        values: Tensor = apart(h, y)
        return values.reshape(len(values), -1).sum(1)

    def whole(h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        summed = total(h, y)
        count = (summed / mean(h, y)).nan_to_num(0.0).detach()  # 0 / 0 where no sample counts
        whole = count.round()
        return summed, torch.where((count - whole).abs() < ROUNDED * whole, whole, count)

    return Form(each, whole, counts=True)


def _miscounts(form: Form, h: Tensor, y: Tensor) -> str | None:
    """Return that a sum does not add up over samples, or that a count depends on outputs."""
    summed, count = map(torch.as_tensor, form.whole(h, y))
    values = form.each(h, y).sum()
    if not torch.allclose(summed.to(values), values, rtol=ROUNDING):
        return "the sum does not add up over samples"
    _, elsewhere = map(torch.as_tensor, form.whole(_elsewhere(h.shape, h.device).to(h), y))
    if count.ndim or not torch.allclose(count.double(), elsewhere.double(), rtol=CLOSE):
        return "the count depends on the outputs"
    return None


def _elsewhere(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return some outputs, which may be probabilities, for losses whose count needs none."""
    numbers = torch.linspace(0.1, 0.9, math.prod(shape), dtype=torch.float64, device=device)
    return numbers.view(shape)
