"""Gradient descent, full-batch and stochastic, with momentum or decay; and what divides the gradient by its size.

`w` are all trained weights, `g` the gradient, `i = 0, 1, ...` the iteration; losses are recorded without any decay.
Last the schedules of step sizes; `t = i / N` is the share of the run that is done at state i of N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from dynamics_cli.config.base import Finding, NonNegative, Positive, PositiveInt, Sections
from dynamics_cli.config.bases import Descent, Minibatch, Schedule
from dynamics_cli.config.clocks import Clock, RescaledClock

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Sequence[Tensor]
    Memory = MutableMapping[str, Tensor]

Beta = Annotated[float, Field(ge=0, lt=1)]


class Plain(Descent):
    """What `gd` and `sgd` share: steps along the gradient, and what may be added to them."""

    momentum: Beta | None = None
    """mu of `b <- mu b + g`, `w <- w - lr b` with b = g at first (Polyak 1964), as in `torch.optim.SGD`."""
    nesterov: bool | None = None
    """Whether the step is along `g + mu b` instead of `b` (Nesterov 1983, as in Sutskever et al. 2013)."""
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w`, the gradient of the loss with `lambda/2 ||w||^2` added (coupled decay)."""
    label_noise: Positive | None = None
    """Standard deviation of Gaussian noise, fresh in every update, on the labels (Blanc et al. 2020; real labels)."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether `nesterov` has a momentum, and the noise labels that it can be added to."""
        yield from super().check(sections)
        loss = sections.get("loss")
        if self.nesterov and self.momentum is None:
            yield ("optimizer", "nesterov"), "needs optimizer.momentum, e.g. 0.9"
        if self.label_noise is not None and loss is not None and loss.labels != "real":
            what = f"noise is added to real labels, those of the loss {loss.kind} are {loss.labels}"
            yield ("optimizer", "label_noise"), f"{what}; mse takes real ones"

    def update(
        self, parameters: Tensors, gradients: Tensors, *, lr: float, names: Sequence[str], state: Memory, **_: Any
    ) -> None:
        """Do one step of `torch.optim.SGD`."""
        import torch

        gradients = _with_decay(parameters, gradients, self.weight_decay)
        step = _with_momentum(gradients, names, state, self.momentum)
        if self.nesterov and self.momentum is not None:
            step = torch._foreach_add(list(gradients), list(step), alpha=self.momentum)
        _descend(parameters, step, lr)


class GradientDescent(Plain, kind="gd"):
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

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield what makes no sense along the path in rescaled time."""
        yield from super().check(sections)
        for key in ("momentum", "weight_decay", "label_noise"):
            if self.loss_scaled and getattr(self, key) is not None:
                yield ("optimizer", key), "does not go with loss_scaled, which is for the gradient of the loss alone"

    def update(
        self, parameters: Tensors, gradients: Tensors, *, lr: float, names: Sequence[str], state: Memory, **rest: Any
    ) -> None:
        """Subtract `lr` times the gradient, divided by the loss where that is asked for."""
        if not self.loss_scaled:
            return super().update(parameters, gradients, lr=lr, names=names, state=state)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(lr * (gradient / rest["loss"]))
        return None


class StochasticGradientDescent(Plain, Minibatch, kind="sgd"):
    """Stochastic gradient descent; the recorded loss is that of the full training set."""

    example = "{kind: sgd, lr: 1.0e-2, epochs: 100, batch_size: 1}"
    batch_size: PositiveInt = 1
    """Samples per update; the last batch of an epoch may be smaller."""


class Adam(Minibatch, kind="adam"):
    """Adam (Kingma and Ba 2015), full batch unless a batch size is given."""

    example = "{kind: adam, lr: 1.0e-3, iterations: 1000}"
    adaptive = True
    decoupled: ClassVar[bool] = False
    beta1: Beta = 0.9
    """Decay of the first moment."""
    beta2: Beta = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the denominator."""
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w` (coupled decay); `adamw` has the decoupled one."""

    def update(self, parameters: Tensors, gradients: Tensors, *, lr: float, state: Memory, **_: Any) -> None:
        """Do one step of `torch.optim.Adam`, or of `AdamW`."""
        import torch

        keys = ("step", "exp_avg", "exp_avg_sq")
        if not state:
            for k, p in enumerate(parameters):
                state[f"{k}/step"] = torch.zeros((), dtype=torch.float32, device=p.device)
                state[f"{k}/exp_avg"], state[f"{k}/exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
        steps, means, squares = ([state[f"{k}/{key}"] for k in range(len(parameters))] for key in keys)
        # the kernel takes all arrays as they lie in memory, and gradients of convolutions have their channels last
        gradients = [gradient.contiguous() for gradient in gradients]
        torch._foreach_add_(steps, 1)
        # what `torch.optim.adam.adam` comes to, but for a third of the time of a small update
        (torch._fused_adamw_ if self.decoupled else torch._fused_adam_)(
            list(parameters), list(gradients), means, squares, [], steps,
            amsgrad=False, beta1=self.beta1, beta2=self.beta2, lr=lr,
            weight_decay=self.weight_decay or 0.0, eps=self.eps, maximize=False,
        )  # fmt: skip


class AdamW(Adam, kind="adamw"):
    """Adam whose weights also shrink by `lr lambda w` in every update, whatever the gradient (decoupled decay).

    Loshchilov and Hutter 2019, as in `torch.optim.AdamW`.
    """

    example = "{kind: adamw, lr: 1.0e-3, iterations: 1000}"
    decoupled = True
    weight_decay: NonNegative = 0.01
    """lambda; the decay of an update is `lr lambda`."""


class RMSprop(Minibatch, kind="rmsprop"):
    """`v <- decay v + (1 - decay) g^2`, `w <- w - lr g / (sqrt(v) + eps)`, for every weight (Tieleman and Hinton 2012).

    As `torch.optim.RMSprop`; v is 0 at first.
    """

    example = "{kind: rmsprop, lr: 1.0e-3, iterations: 1000}"
    adaptive = True
    decay: Beta = 0.99
    """Share of the mean square that is kept."""
    eps: Positive = 1e-8
    """Added to the denominator."""
    momentum: Beta | None = None
    """mu of `b <- mu b + g / (sqrt(v) + eps)`, `w <- w - lr b`."""
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w` (coupled decay)."""

    def update(
        self, parameters: Tensors, gradients: Tensors, *, lr: float, names: Sequence[str], state: Memory, **_: Any
    ) -> None:
        """Do one step of `torch.optim.RMSprop`."""
        import torch

        gradients = list(_with_decay(parameters, gradients, self.weight_decay))
        squares = [state.setdefault(f"{name}/square", torch.zeros_like(p)) for name, p in _named(names, parameters)]
        torch._foreach_mul_(squares, self.decay)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - self.decay)
        sizes = torch._foreach_sqrt(squares)
        torch._foreach_add_(sizes, self.eps)
        if self.momentum is None:
            return torch._foreach_addcdiv_(list(parameters), gradients, list(sizes), value=-lr)
        buffers = [state.setdefault(f"{name}/momentum", torch.zeros_like(p)) for name, p in _named(names, parameters)]
        torch._foreach_mul_(buffers, self.momentum)
        torch._foreach_addcdiv_(buffers, gradients, list(sizes))
        return _descend(parameters, buffers, lr)


class GroupRMSprop(Minibatch, kind="group_rmsprop"):
    """One normaliser for all weights: `w <- w - lr g / (sqrt(v / (1 - decay^(i+1))) + eps)`.

    `v <- decay v + (1 - decay) ||g||^2`, v = 0 at first: the path is that of gradient descent, in a time that adapts
    (the released code of Arora et al. 2019, Implicit regularization in deep matrix factorization).
    """

    example = "{kind: group_rmsprop, lr: 1.0e-3, iterations: 1000}"
    decay: Beta = 0.99
    """Share of the mean square that is kept."""
    eps: Positive = 1e-6
    """Added to the denominator."""
    per: Literal["network", "tensor"] = "network"
    """Whether `||g||` is over all weights, or every weight matrix and bias vector has a normaliser of its own."""

    def update(
        self, parameters: Tensors, gradients: Tensors, *, lr: float, state: Memory, iteration: int, **_: Any
    ) -> None:
        """Divide the gradient by the root of the mean square of its norm."""
        import torch

        squares = torch.stack([gradient.square().sum() for gradient in gradients])  # (tensors,)
        squares = squares.sum().expand_as(squares) if self.per == "network" else squares
        mean = state.setdefault("square", torch.zeros_like(squares))
        mean.mul_(self.decay).add_(squares, alpha=1 - self.decay)
        rates = lr / ((mean / (1 - self.decay ** (iteration + 1))).sqrt_() + self.eps)
        _descend(parameters, [rate * gradient for rate, gradient in zip(rates, gradients, strict=True)], 1.0)


class SignDescent(Minibatch, kind="sign_gd"):
    """`w <- w - lr sign(g)` for every weight (Bernstein et al. 2018), full batch unless a batch size is given."""

    example = "{kind: sign_gd, lr: 1.0e-3, iterations: 1000}"
    adaptive = True
    momentum: Beta | None = None
    """mu of `b <- mu b + g`, whose sign is taken then (Signum)."""

    def update(
        self, parameters: Tensors, gradients: Tensors, *, lr: float, names: Sequence[str], state: Memory, **_: Any
    ) -> None:
        """Move every weight by `lr`."""
        import torch

        _descend(parameters, torch._foreach_sign(list(_with_momentum(gradients, names, state, self.momentum))), lr)


class NormalizedDescent(Minibatch, kind="normalized_gd"):
    """`w <- w - lr g / ||g||`, the norm over all weights: every step has length `lr` (0 where g is)."""

    example = "{kind: normalized_gd, lr: 1.0e-3, iterations: 1000}"

    def update(self, parameters: Tensors, gradients: Tensors, *, lr: float, **_: Any) -> None:
        """Move by `lr` in all."""
        import torch

        # in double precision: squares of small gradients underflow
        norm = torch.stack([gradient.double().square().sum() for gradient in gradients]).sum().sqrt()
        rate = torch.where(norm > 0, lr / norm, torch.zeros_like(norm))
        _descend(parameters, [(rate * gradient).to(gradient.dtype) for gradient in gradients], 1.0)


def _named(names: Sequence[str], tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    return zip(names, tensors, strict=True)


def _with_decay(parameters: Tensors, gradients: Tensors, weight_decay: float | None) -> Tensors:
    """Return `g + lambda w`."""
    import torch

    if weight_decay is None:
        return gradients
    return torch._foreach_add(list(gradients), list(parameters), alpha=weight_decay)


def _with_momentum(gradients: Tensors, names: Sequence[str], state: Memory, momentum: float | None) -> Tensors:
    """Return `b <- mu b + g`; the first is g itself, as in `torch.optim.SGD`."""
    import torch

    if momentum is None:
        return gradients
    if not state:
        state.update((name, gradient.clone()) for name, gradient in _named(names, gradients))
        return list(state.values())
    buffers = [state[name] for name in names]
    torch._foreach_mul_(buffers, momentum)
    torch._foreach_add_(buffers, list(gradients))
    return buffers


def _descend(parameters: Tensors, gradients: Tensors, lr: float) -> None:
    import torch

    torch._foreach_add_(list(parameters), list(gradients), alpha=-lr)


class Constant(Schedule, kind="constant"):
    """The step size stays as it is."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return 1."""
        return 1.0


class Cosine(Schedule, kind="cosine"):
    """`(1 + cos(pi t)) / 2` after a linear rise over the first `warm_up` iterations (Loshchilov and Hutter 2017)."""

    warm_up: Annotated[int, Field(ge=0)] = 0
    """Iterations over which the factor rises from `1 / warm_up` to 1."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor; 1 at the end of the warm-up, near 0 at the last update."""
        if iteration < self.warm_up:
            return (iteration + 1) / self.warm_up
        return (1 + math.cos(math.pi * (iteration - self.warm_up) / max(1, iterations - self.warm_up))) / 2


class Step(Schedule, kind="step"):
    """`gamma^k` after k times `every` iterations."""

    example = "{kind: step, every: 500}"
    every: PositiveInt
    """Iterations between two drops."""
    gamma: Positive = 0.1
    """What a drop multiplies the step size by."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return `gamma` to the number of drops so far."""
        return float(self.gamma ** (iteration // self.every))


class Power(Schedule, kind="power"):
    """`(1 + i / scale)^(-exponent)`."""

    example = "{kind: power, exponent: 0.5, scale: 100.0}"
    exponent: NonNegative
    """0.5 for `1 / sqrt(i)`, 1 for `1 / i`."""
    scale: Positive = 1.0
    """Iterations after which the decay sets in."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor, 1 at state 0."""
        return float((1 + iteration / self.scale) ** -self.exponent)
