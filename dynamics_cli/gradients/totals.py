"""A network's loss over all samples and its gradient, summed over blocks of samples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from dynamics_cli.kinds import Loss


def total(model: nn.Module, loss: Loss, x: Tensor, y: Tensor, block: int) -> Tensor:
    """Return the loss of samples `x` (n, d), `y` (n,), from `block` of them at a time."""
    if len(x) <= block:
        return loss.total(model(x), y)  # type: ignore[no-any-return]
    summed = torch.zeros((), dtype=x.dtype, device=x.device)
    for xb, yb in _blocks(x, y, block):
        summed += loss.of_samples(model(xb), yb).sum(-1)
    return summed * loss.weight(y)  # type: ignore[no-any-return]


def total_and_gradients(
    model: nn.Module, loss: Loss, x: Tensor, y: Tensor, trained: list[Tensor], block: int
) -> tuple[Tensor, list[Tensor]]:
    """Return the loss of samples `x` (n, d), `y` (n,) and its gradients, shaped as `trained`."""
    if len(x) <= block:
        value: Tensor = loss.total(model(x), y)
        return value.detach(), list(torch.autograd.grad(value, trained))
    summed = torch.zeros((), dtype=x.dtype, device=x.device)
    gradients = [torch.zeros_like(p) for p in trained]
    weight = loss.weight(y)
    for xb, yb in _blocks(x, y, block):
        part = loss.of_samples(model(xb), yb).sum(-1) * weight
        for gradient, share in zip(gradients, torch.autograd.grad(part, trained), strict=True):
            gradient.add_(share)
        summed += part.detach()
    return summed, gradients


def _blocks(x: Tensor, y: Tensor, block: int) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(torch.split(x, block), torch.split(y, block), strict=True)
