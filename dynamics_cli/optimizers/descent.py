"""Gradient descent with momentum or decay, and optimizers that normalise the gradient.

`w` are all trained weights, `g` the gradient, `i = 0, 1, ...` the iteration; losses are recorded
without any decay. Last the schedules of step sizes; `t = i / N` is the share of the run that is
done at state i of N.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.formulas.tracing import OptimizerMemory, StepNumbers
from dynamics_cli.kinds import (
    Array,
    Clock,
    Descent,
    Floats,
    Minibatch,
    RescaledClock,
    Schedule,
    formulas,
)
from dynamics_cli.kinds.base import Finding, NonNegative, Positive, PositiveInt, Sections
from dynamics_cli.kinds.optimizers import formula_owner

if TYPE_CHECKING:
    from torch import Tensor

Beta = Annotated[float, Field(ge=0, lt=1)]


class Plain(Descent):
    """The base of `gd` and `sgd`: steps along the gradient, with momentum and weight decay."""

    momentum: Beta | None = None
    """mu of `b <- mu b + g`, `w <- w - lr b` with b = g at first (Polyak 1964), as in
    `torch.optim.SGD`.
    """
    nesterov: bool | None = None
    """Whether the step is along `g + mu b` instead of `b` (Nesterov 1983, as in Sutskever et al.
    2013).
    """
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w`, the gradient of the loss with `lambda/2 ||w||^2` added (coupled
    decay).
    """

    @property
    def plain(self) -> bool:
        """Whether it has the formula of `gd` and `sgd`."""
        return formula_owner(type(self)) in (Plain, GradientDescent)

    @property
    def spans_gradients(self) -> bool:
        """Whether it is exactly `gd` or `sgd`, without weight decay or clipping."""
        exactly = type(self) in (GradientDescent, StochasticGradientDescent)
        return exactly and self.weight_decay is None and self.clip is None

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield `nesterov` without a momentum."""
        yield from super().check(sections)
        if self.nesterov and self.momentum is None:
            yield ("optimizer", "nesterov"), "needs optimizer.momentum, e.g. 0.9"

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return the weight after a step of `torch.optim.SGD`."""
        if self.weight_decay is not None:
            g = g + self.weight_decay * w
        if self.momentum is not None:
            b = memory["momentum"] = self.momentum * memory["momentum"] + g
            g = g + self.momentum * b if self.nesterov else b
        return w - step.lr * g

    def threshold(self) -> tuple[str, float] | None:
        """Return `2 / lr`, less lambda of a decay (Cohen et al. 2021, Appendix B).

        With momentum it is `(2 + 2 mu) / lr`, with Nesterov's `(2 + 2 mu) / ((1 + 2 mu) lr)`.
        """
        mu = self.momentum
        name = "2 / η"
        value = 2 / self.lr
        if mu is not None and self.nesterov:
            name = "(2 + 2μ) / ((1 + 2μ) η)"
            value = (2 + 2 * mu) / ((1 + 2 * mu) * self.lr)
        elif mu is not None:
            name = "(2 + 2μ) / η"
            value = (2 + 2 * mu) / self.lr
        if decay := self.weight_decay:
            return f"{name} - λ", value - decay
        return name, value


class GradientDescent(Plain, kind="gd"):
    """Full-batch gradient descent: `w <- w - lr g`.

    With momentum `b <- mu b + g`, `w <- w - lr b`, where b is 0 at first.
    """

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
        if self.loss_scaled:
            return RescaledClock(self.lr)
        return super().clock(iterations)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the settings that contradict a path in rescaled time."""
        yield from super().check(sections)
        for key in ("momentum", "weight_decay", "clip"):
            if self.loss_scaled and getattr(self, key) is not None:
                yield (
                    ("optimizer", key),
                    "does not go with loss_scaled, which is for the gradient of the loss alone",
                )

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return the weight after a step; the gradient is divided by the loss if asked for."""
        if self.loss_scaled:
            g = g / step.loss
        return super().updated(w, g, memory, step)

    def threshold(self) -> tuple[str, float] | None:
        """Return it where the gradient is not divided by the loss."""
        return None if self.loss_scaled else super().threshold()


class StochasticGradientDescent(Plain, Minibatch, kind="sgd"):
    """Stochastic gradient descent; the loss is recorded on the full training set."""

    example = "{kind: sgd, lr: 1.0e-2, epochs: 100, batch_size: 1}"
    batch_size: PositiveInt = 1
    """Samples per update; the last batch of an epoch may be smaller, see `drop_last`."""


class Adam(Minibatch, kind="adam"):
    """Adam (Kingma and Ba 2015), full batch unless a batch size is given.

    `m <- beta1 m + (1 - beta1) g`, `v <- beta2 v + (1 - beta2) g^2`, both 0 at first, and for
    update i from 0 on `w <- w - lr (m / (1 - beta1^(i+1))) / (sqrt(v / (1 - beta2^(i+1))) + eps)`.
    """

    example = "{kind: adam, lr: 1.0e-3, iterations: 1000}"
    decoupled: ClassVar[bool] = False
    titles: ClassVar[Mapping[str, str]] = {"beta1": "β₁", "beta2": "β₂", "eps": "ε"}
    beta1: Beta = 0.9
    """Decay of the first moment."""
    beta2: Beta = 0.999
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Added to the denominator."""
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w` (coupled decay); `adamw` has decoupled decay."""

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return the weight after a step of `torch.optim.Adam`, or of `AdamW`."""
        if self.weight_decay is not None and self.decoupled:
            w = (1 - step.lr * self.weight_decay) * w
        elif self.weight_decay is not None:
            g = g + self.weight_decay * w
        m = memory["mean"] = memory["mean"] + (1 - self.beta1) * (g - memory["mean"])
        v = memory["square"] = self.beta2 * memory["square"] + (1 - self.beta2) * g * g
        grown = step.iteration + 1
        root = formulas.sqrt(1 - self.beta2**grown)
        return w - step.lr / (1 - self.beta1**grown) * m / (formulas.sqrt(v) / root + self.eps)

    def preconditioner(self, memory: Mapping[str, Floats], steps: int) -> Floats:
        """Return `(1 - beta1^t) (sqrt(v / (1 - beta2^t)) + eps)` (Cohen et al. 2022)."""
        v = memory["square"] / (1 - self.beta2**steps)
        return (1 - self.beta1**steps) * (np.sqrt(v) + self.eps)

    def threshold(self) -> tuple[str, float] | None:
        """Return `(2 / lr - lambda) (1 + beta1) / (1 - beta1)` (Cohen et al. 2022).

        Lambda is decoupled; None with a coupled decay.
        """
        decay = self.weight_decay or 0.0
        if decay and not self.decoupled:
            return None
        value = (2 / self.lr - decay) * (1 + self.beta1) / (1 - self.beta1)
        return f"{value * self.lr:.3g} / η", value  # 38 / η, as the paper writes


class AdamW(Adam, kind="adamw"):
    """Adam whose weights also shrink by `lr lambda w` in every update, whatever the gradient.

    The decay is decoupled (Loshchilov and Hutter 2019), as in `torch.optim.AdamW`.
    """

    example = "{kind: adamw, lr: 1.0e-3, iterations: 1000}"
    decoupled = True
    weight_decay: NonNegative = 0.01
    """lambda; the decay of an update is `lr lambda`."""


class RMSprop(Minibatch, kind="rmsprop"):
    """`v <- decay v + (1 - decay) g^2`, `w <- w - lr g / (sqrt(v) + eps)`, for every weight.

    Tieleman and Hinton 2012.

    As `torch.optim.RMSprop`; v is 0 at first.
    """

    example = "{kind: rmsprop, lr: 1.0e-3, iterations: 1000}"
    decay: Beta = 0.99
    """Share of the mean square that is kept."""
    eps: Positive = 1e-8
    """Added to the denominator."""
    momentum: Beta | None = None
    """mu of `b <- mu b + g / (sqrt(v) + eps)`, `w <- w - lr b`."""
    weight_decay: NonNegative | None = None
    """lambda of `g + lambda w` (coupled decay)."""

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return the weight after a step of `torch.optim.RMSprop`."""
        if self.weight_decay is not None:
            g = g + self.weight_decay * w
        v = memory["square"] = self.decay * memory["square"] + (1 - self.decay) * g * g
        g = g / (formulas.sqrt(v) + self.eps)
        if self.momentum is not None:
            g = memory["momentum"] = self.momentum * memory["momentum"] + g
        return w - step.lr * g

    def preconditioner(self, memory: Mapping[str, Floats], steps: int) -> Floats:
        """Return `sqrt(v) + eps` (Cohen et al. 2022)."""
        return np.sqrt(memory["square"]) + self.eps

    def threshold(self) -> tuple[str, float] | None:
        """Return `(2 + 2 mu) / lr` (Cohen et al. 2022); None with a coupled decay."""
        if self.weight_decay:
            return None
        mu = self.momentum or 0.0
        return "(2 + 2μ) / η" if mu else "2 / η", (2 + 2 * mu) / self.lr


class GroupRMSprop(Minibatch, kind="group_rmsprop"):
    """One normaliser for all weights: `w <- w - lr g / (sqrt(v / (1 - decay^(i+1))) + eps)`.

    `v <- decay v + (1 - decay) ||g||^2`, v = 0 at first: the path is gradient descent's, in a time
    that adapts (the released code of Arora et al. 2019, Implicit regularization in deep matrix
    factorization).
    """

    example = "{kind: group_rmsprop, lr: 1.0e-3, iterations: 1000}"
    decay: Beta = 0.99
    """Share of the mean square that is kept."""
    eps: Positive = 1e-6
    """Added to the denominator."""

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return the weight after a step along the gradient over its norm's root mean square."""
        square = formulas.total_of_all(g * g)
        v = step.memory["square"] = self.decay * step.memory["square"] + (1 - self.decay) * square
        rate = step.lr / (formulas.sqrt(v / (1 - self.decay ** (step.iteration + 1))) + self.eps)
        return w - rate * g


class Muon(Minibatch, kind="muon"):
    """Steps along the orthogonal factor of the momentum.

    `W <- W - lr s O(g + mu b)`, `b <- mu b + g` (Jordan 2024).

    `O(U S V^T)` is about `U V^T`, by iterations `X <- 3.4445 X - 4.775 (X X^T) X + 2.0315 (X X^T)^2
    X` from `X = B / ||B||_F`, which bring singular values to between 0.6 and 1.2; `s = sqrt(max(1,
    rows / columns))`. With `polar: exact` it is `U V^T`. A convolution is a matrix with a row for
    each kernel; a vector is a row, so that its step has a length of about 1.
    """

    example = "{kind: muon, lr: 1.0e-2, iterations: 1000}"
    momentum: Beta = 0.95
    """mu; b is 0 at first."""
    nesterov: bool = True
    """Whether the step is along `O(g + mu b)` instead of `O(b)`."""
    weight_decay: NonNegative | None = None
    """lambda; weights also shrink by `lr lambda w` in every update (decoupled decay)."""
    polar: Literal["exact"] | None = None
    """`exact`: O is the polar factor by a singular value decomposition, so that all singular values
    are 1; by default it is made by iterations, which are faster.
    """

    def update(
        self,
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        *,
        lr: float,
        names: Sequence[str],
        state: MutableMapping[str, Tensor],
        iteration: int,
        loss: Tensor,
    ) -> None:
        """Change the weights in place; see `Descent.update`."""
        orthogonal = orthogonal_factor if self.polar is None else polar_factor
        for name, w, g in zip(names, parameters, gradients, strict=True):
            b = g.clone()
            if name in state:
                b = self.momentum * state[name] + g
            state[name] = b
            step = g + self.momentum * b if self.nesterov else b
            matrix = step[None]
            if step.ndim > 1:
                matrix = step.reshape(len(step), -1)
            factor = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
            if self.weight_decay is not None:
                w.mul_(1 - lr * self.weight_decay)
            w.sub_(lr * factor * orthogonal(matrix).reshape(w.shape))


def orthogonal_factor(matrix: Tensor, iterations: int = 5) -> Tensor:
    """Return about `U V^T` (m, k) of a matrix `U S V^T`, by Newton-Schulz (Jordan 2024).

    It is 0 where the matrix is.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    X: Tensor = matrix.T if tall else matrix
    X = X / X.norm().clamp(min=1e-30)
    for _ in range(iterations):
        A = X @ X.T
        X = 3.4445 * X + (-4.775 * A + 2.0315 * (A @ A)) @ X
    return X.T if tall else X


def polar_factor(matrix: Tensor) -> Tensor:
    """Return `U V^T` (m, k) of a matrix `U S V^T`, over singular values above rounding.

    It is 0 where there are none.
    """
    import torch

    U, singular, Vh = torch.linalg.svd(matrix, full_matrices=False)
    rounding = max(matrix.shape) * torch.finfo(singular.dtype).eps * singular.max()
    factor: Tensor = (U * (singular > rounding)) @ Vh
    return factor


class ConstantRate(Schedule, kind="constant"):
    """The step size stays as it is."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return 1."""
        return 1.0


class Cosine(Schedule, kind="cosine"):
    """`(1 + cos(pi t)) / 2` after a linear rise over the first `warm_up` iterations.

    Loshchilov and Hutter 2017.
    """

    warm_up: Annotated[int, Field(ge=0)] = 0
    """Iterations over which the factor rises from `1 / warm_up` to 1."""

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor; 1 at the end of the warm-up, near 0 at the last update."""
        if iteration < self.warm_up:
            return (iteration + 1) / self.warm_up
        angle = math.pi * (iteration - self.warm_up) / max(1, iterations - self.warm_up)
        return (1 + math.cos(angle)) / 2


class Step(Schedule, kind="step"):
    """`gamma^k` after k times `every` iterations."""

    example = "{kind: step, every: 500}"
    every: PositiveInt
    """Iterations between two drops."""
    gamma: Positive = 0.1
    """The factor of the step size at a drop."""

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


class WarmUpStableDecay(Schedule, kind="warm_up_stable_decay"):
    """A linear rise over `warm_up` iterations, then 1, then a fall over the last `decay`.

    Hu et al. 2024, MiniCPM.
    """

    example = "{kind: warm_up_stable_decay, warm_up: 50, decay: 200}"
    warm_up: Annotated[int, Field(ge=0)] = 0
    """Iterations over which the factor rises from `1 / warm_up` to 1."""
    decay: PositiveInt
    """Iterations of the fall from 1 to 0, which the update after the last one would have."""
    shape: Literal["linear", "cosine", "sqrt"] = "linear"
    """With the share s of the fall that is done: `1 - s`, `(1 + cos(pi s)) / 2`, or `1 - sqrt(s)`
    (Hägele et al. 2024).
    """

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor; where rise and fall overlap, the smaller one."""
        rise = 1.0
        if iteration < self.warm_up:
            rise = (iteration + 1) / self.warm_up
        share = max(0.0, (iteration - iterations + self.decay) / self.decay)
        fall = 1 - share
        if self.shape == "cosine":
            fall = (1 + math.cos(math.pi * share)) / 2
        elif self.shape == "sqrt":
            fall = 1 - math.sqrt(share)
        return min(rise, fall)


class Piecewise(Schedule, kind="piecewise"):
    """Given factors at given iterations, and between them a line, a geometric curve or a step."""

    example = "{kind: piecewise, at: [0, 100, 800, 1000], factors: [0.1, 1.0, 1.0, 0.0]}"
    at: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """Iterations in ascending order; before the first and after the last the factor is constant."""
    factors: Annotated[list[NonNegative], Field(min_length=1)]
    """The factor of the update from each of these states."""
    between: Literal["linear", "geometric", "constant"] = "linear"
    """`constant` keeps a factor up to the next iteration of `at`; `geometric` is linear in the
    logarithm.
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield iterations that do not ascend, and factors that are too many, too few or 0."""
        if len(self.at) != len(self.factors):
            told = f"has {len(self.factors)} numbers, and at has {len(self.at)} iterations"
            yield ("schedule", "factors"), told
        for k, (before, after) in enumerate(pairwise(self.at), start=1):
            if after <= before:
                yield ("schedule", "at", k), f"must be above {before}, not {after}"
        if self.between == "geometric" and 0 in self.factors:
            place = self.factors.index(0)
            yield ("schedule", "factors", place), "must be > 0 where between is geometric, not 0"

    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor at or between the given iterations."""
        after = bisect_right(self.at, iteration)
        if after == 0:
            return self.factors[0]
        if after == len(self.at) or self.between == "constant":
            return self.factors[after - 1]
        share = (iteration - self.at[after - 1]) / (self.at[after] - self.at[after - 1])
        low = self.factors[after - 1]
        high = self.factors[after]
        if self.between == "geometric":
            return float(low ** (1 - share) * high**share)
        return (1 - share) * low + share * high
