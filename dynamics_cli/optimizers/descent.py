"""Gradient descent, full-batch and stochastic, and Adam."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from dynamics_cli.config.base import Positive, PositiveInt
from dynamics_cli.config.bases import Descent, Minibatch
from dynamics_cli.config.clocks import Clock, RescaledClock

if TYPE_CHECKING:
    from torch import Tensor

Beta = Annotated[float, Field(ge=0, lt=1)]


class GradientDescent(Descent, kind="gd"):
    """Full-batch gradient descent."""

    example = "{kind: gd, lr: 1.0e-2, iterations: 1000}"
    iterations: PositiveInt
    """Number of updates."""
    loss_scaled: bool = False
    """Divide the gradient by the loss: the same path in rescaled time."""

    def count(self, steps_per_epoch: int) -> int:
        """Return the number of updates."""
        return self.iterations

    def clock(self, iterations: int) -> Clock | None:
        """Return the time of gradient flow along the loss-scaled path."""
        return RescaledClock(self.lr) if self.loss_scaled else super().clock(iterations)

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], *, lr: float, loss: Tensor, **_: Any
    ) -> None:
        """Subtract `lr` times the gradient, divided by the loss where that is asked for."""
        if not self.loss_scaled:
            return _descend(parameters, gradients, lr)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(lr * (gradient / loss))
        return None


class StochasticGradientDescent(Minibatch, kind="sgd"):
    """Stochastic gradient descent; the recorded loss is that of the full training set."""

    example = "{kind: sgd, lr: 1.0e-2, epochs: 100, batch_size: 1}"
    batch_size: PositiveInt = 1
    """Samples per update; the last batch of an epoch may be smaller."""

    def update(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], *, lr: float, **_: Any) -> None:
        """Subtract `lr` times the gradient of the batch."""
        _descend(parameters, gradients, lr)


class Adam(Minibatch, kind="adam"):
    """Adam (Kingma and Ba 2015), full batch unless a batch size is given."""

    example = "{kind: adam, lr: 1.0e-3, iterations: 1000}"
    adaptive = True
    beta1: Beta = 0.9
    """Decay of the first moment."""
    beta2: Beta = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the denominator."""

    def update(
        self,
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        *,
        lr: float,
        state: MutableMapping[str, Tensor],
        **_: Any,
    ) -> None:
        """Do one step of `torch.optim.Adam`."""
        import torch
        from torch.optim.adam import adam

        keys = ("step", "exp_avg", "exp_avg_sq")
        if not state:
            for k, p in enumerate(parameters):
                state[f"{k}/step"] = torch.zeros((), dtype=torch.float32, device=p.device)
                state[f"{k}/exp_avg"], state[f"{k}/exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
        steps, means, squares = ([state[f"{k}/{key}"] for k in range(len(parameters))] for key in keys)
        adam(
            list(parameters), list(gradients), means, squares, [], steps,
            fused=True, amsgrad=False, beta1=self.beta1, beta2=self.beta2, lr=lr, weight_decay=0.0, eps=self.eps,
            maximize=False,
        )  # fmt: skip


def _descend(parameters: Sequence[Tensor], gradients: Sequence[Tensor], lr: float) -> None:
    import torch

    torch._foreach_add_(list(parameters), list(gradients), alpha=-lr)
