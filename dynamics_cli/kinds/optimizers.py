"""Base classes of optimizers and of schedules of their steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field

from dynamics_cli.errors import InputError, alternatives
from dynamics_cli.formulas import algebra as formulas
from dynamics_cli.formulas.algebra import zeros_like
from dynamics_cli.formulas.tracing import OptimizerMemory, StepNumbers, facts, obstacle
from dynamics_cli.kinds.arrays import Array, Floats, Shapes
from dynamics_cli.kinds.base import (
    Finding,
    Kind,
    NonNegative,
    Positive,
    PositiveInt,
    Section,
    Sections,
)
from dynamics_cli.kinds.clocks import Clock
from dynamics_cli.kinds.data import Dataset
from dynamics_cli.kinds.registry import OneOf, all_kinds

if TYPE_CHECKING:
    from torch import Tensor


CLIP_EPS = 1e-6
"""Added to the norm of a gradient that is clipped, as PyTorch does."""


class Schedule(Kind):
    """How the step size of an optimizer changes along the run."""

    section: ClassVar[str] = "schedule"

    @abstractmethod
    def factor(self, iteration: int, iterations: int) -> float:
        """Return the factor of `lr` in update `iteration` of `iterations`, counted from 0."""


class Average(Section):
    """A mean of the weights along the run, kept beside them; training does not see it.

    It moves after each update, from the weights of the state that `start` says.
    """

    example = "{kind: ema, decay: 0.999}"
    kind: Literal["ema"]
    """`ema`: the exponential moving average (Polyak and Juditsky 1992 take the plain mean)."""
    decay: Annotated[float, Field(ge=0.0, lt=1.0)]
    """The average keeps this share of itself in each update, and takes the rest of the weights."""
    start: Literal["first_update"] | None = None
    """`first_update`: the average begins at the weights after the first update, as
    `torch.optim.swa_utils.AveragedModel` does that a loop updates after each step; by default at
    the initial weights, as a copy that is made before the loop.
    """


class Optimizer(Kind):
    """How a run is trained."""

    section: ClassVar[str] = "optimizer"
    is_flow: ClassVar[bool] = False
    """Whether it is gradient flow itself, without steps: with `times()` of the states, `until`
    the last, and `rtol`.
    """
    stop_below: NonNegative | None = None
    """Stop at the first recorded loss at or below this value."""

    @property
    def level(self) -> float:
        """`stop_below`, and -inf without it."""
        return -math.inf if self.stop_below is None else self.stop_below

    @property
    def plain(self) -> bool:
        """Whether a step is along the gradient, or the gradient over the loss, by default."""
        return False

    @property
    def spans_gradients(self) -> bool:
        """Whether weights move by sums of their gradients, with equal factors for a tensor."""
        return False

    @property
    def read_once(self) -> Collection[str]:
        """Settings that matter at the first update alone: a later change would have no effect."""
        return ()

    @abstractmethod
    def count(self, steps_per_epoch: int) -> int:
        """Return the number of the last state of a whole run."""

    def goes_on_from(self, before: Optimizer) -> bool:
        """Return whether another optimizer's memory means the same here.

        Both have one formula, or one class repeats the formula of the other, as `gd` and `sgd` do.
        """
        here = formula_owner(type(self))
        there = formula_owner(type(before))
        return issubclass(here, there) or issubclass(there, here)

    def clock(self, iterations: int) -> Clock | None:
        """Return the clock of a run; None where time is iterations times the step."""
        return None

    def advice(self) -> str:
        """Return advice for a run that diverges."""
        return ""


def formula_owner(cls: type) -> type:
    """Return the class that defines the update of an optimizer."""
    owners = (base for base in cls.__mro__ if {"updated", "update"} & vars(base).keys())
    return next(owners, cls)


class Descent(Optimizer):
    """The base of optimizers that take steps from gradients.

    A new optimizer defines `updated`, the formula of a single weight, or `update`, which moves
    tensors as a whole. The rest (batches, losses, checkpoints) is done around it.
    """

    titles: ClassVar[Mapping[str, str]] = {
        "lr": "step size η",
        "momentum": "momentum μ",
        "weight_decay": "weight decay λ",
    }
    lr: Positive
    """Step size."""
    layer_lr: dict[str, float] | None = None
    """Factors of the step size by the names of weights, such as `{output_weight: 0.1}`, or by
    patterns of names, `{"bias_*": 0.5}`; by default 1. A name goes before patterns, and of several
    patterns that a name matches the last counts. A negative factor moves a weight against its
    update, as `dyn audit` does under `wrong_gradient`.
    """
    schedule: Annotated[Schedule, OneOf("schedule", word=True)] | None = None
    """How the step size changes along the run; by default it does not."""
    clip: Positive | None = None
    """Largest norm of the gradient: a longer one is shortened to it, all trained weights together,
    before decay and momentum (Pascanu et al. 2013). Compiled code does it where all weights have
    one step size.
    """
    clip_by: Literal["norm", "value"] | None = None
    """`value`: each entry of the gradient is cut off at `clip` and `-clip`; by default `norm`."""
    average: Average | None = None
    """Keep an average of the weights, `{kind: ema, decay: 0.999}`: in each update it keeps a share
    `decay` of itself and takes the rest of the new weights. Measures with `average: true` are of
    the network with these weights. PyTorch trains such a run.
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield `clip_by` without a bound."""
        yield from super().check(sections)
        if self.clip_by is not None and self.clip is None:
            yield ("optimizer", "clip_by"), "needs optimizer.clip, e.g. 1.0"
        if self.average is not None and getattr(sections.get("architecture"), "players", None):
            yield ("optimizer", "average"), "needs a single network"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if {"updated", "update"} & vars(cls).keys() and "threshold" not in vars(cls):
            cls.threshold = Descent.threshold  # type: ignore[method-assign]  # of another formula

    def threshold(self) -> tuple[str, float] | None:
        """Return name and value of the largest stable curvature of a quadratic, at a constant step.

        None where the value is not known.

        Curvature is the largest eigenvalue of the Hessian H, or of `P^-1 H` with a preconditioner.
        It holds for the class, and relatives with the same `updated`.
        """
        return None

    @property
    def unclipped(self) -> Self:
        """The same optimizer, of gradients that are clipped already."""
        return self if self.clip is None else self.model_copy(update={"clip": None})

    def clipped(self, g: Array) -> Array:
        """Return the clipped gradient of a weight, a formula.

        As `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` clip it.
        """
        if self.clip is None:
            return g
        if self.clip_by == "value":
            return formulas.clip(g, -self.clip, self.clip)
        norm = formulas.sqrt(formulas.total_of_all(g * g))
        return formulas.minimum(self.clip / (norm + CLIP_EPS), 1.0) * g

    def step_size(self, iteration: int, iterations: int) -> float:
        """Return the step of the update from state `iteration` of a run of `iterations` updates."""
        if self.schedule is None:
            return self.lr
        return self.lr * self.schedule.factor(iteration, iterations)

    def clock(self, iterations: int) -> Clock | None:
        """Return the sums of the steps, where a schedule changes them."""
        if self.schedule is None:
            return None
        steps = np.fromiter(
            (self.step_size(i, iterations) for i in range(iterations)), np.float64, iterations
        )
        return Clock(np.concatenate([[0.0], np.cumsum(steps)]))

    def advice(self) -> str:
        """Return a smaller step."""
        return f"Try a smaller step, e.g. --set optimizer.lr={self.lr / 10:.3g}"

    def updated(self, w: Array, g: Array, memory: OptimizerMemory, step: StepNumbers) -> Array:
        """Return a weight after an update.

        It is given its clipped gradient `g`, its memory, and numbers of the step.

        A formula. `memory["name"]` is 0 at first, then the value that the update before assigned;
        it is kept in the checkpoint. `step` has `lr`, `iteration`, `loss`, and a `memory` of the
        tensor as a whole. `formulas.total` sums over the weights of a tensor;
        `formulas.total_of_all` over all trained weights, whose `step.memory` is then.
        """
        raise NotImplementedError

    def preconditioner(self, memory: Mapping[str, Floats], steps: int) -> Floats:
        """Return the diagonal P of the update `w <- w - lr P^-1 m`, m a mean of gradients.

        Args:
            memory: what `updated` assigned to `memory` after the last of the updates, by name.
            steps: number of updates, at least 1.
        """
        raise NotImplementedError

    @property
    def preconditions(self) -> bool:
        """Whether the optimizer tells its preconditioner."""
        return type(self).preconditioner is not Descent.preconditioner

    @property
    def by_formula(self) -> bool:
        """Whether the update is a formula of a single weight."""
        return type(self).updated is not Descent.updated and type(self).update is Descent.update

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
        """Change the `parameters` in place, from state `iteration` to the next.

        By default it calls `updated`.

        Args:
            parameters: those that are trained.
            gradients: of the loss, of the same shapes, clipped already.
            lr: step size of this iteration, the schedule taken into account.
            names: of the parameters.
            state: the memory of the optimizer, empty at first; it is kept in the checkpoint. A key
                is any text.
            iteration: number of updates done.
            loss: of the batch, before the update.

        Raises:
            InputError: an update that is no formula sums over all of them.
        """
        step = StepNumbers(lr, iteration, loss)
        known = facts(self)
        together = known is not None and known.over_all and list(names) != ["all"]
        # checkpoints of before have the memory of a single weight under its own name
        if together and not any(key.startswith(f"{names[0]}/whole/") for key in state):
            import torch

            w, g = (
                torch.cat([tensor.flatten() for tensor in tensors])
                for tensors in (parameters, gradients)
            )
            self.update([w], [g], lr=lr, names=["all"], state=state, iteration=iteration, loss=loss)
            parts = w.split([parameter.numel() for parameter in parameters])  # type: ignore[no-untyped-call]
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.copy_(part.view_as(parameter))
            return
        sums_over_all = "total_of_all" in type(self).updated.__code__.co_names
        if len(parameters) > 1 and known is None and sums_over_all:
            told = f"optimizer.kind {self.kind!r}: `total_of_all` needs an update that is a formula"
            raise InputError(f"{told}, and this one is none: {obstacle(self)}")
        for name, w, g in zip(names, parameters, gradients, strict=True):
            step.memory = StateMemory(state, f"{name}/whole/", g.new_empty(()))
            flat = w.flatten()
            memory = StateMemory(state, f"{name}/", flat)
            w.copy_(self.updated(flat, g.flatten(), memory, step).view_as(w))

    def refuse_weights(self, shapes: Shapes) -> None:
        """Refuse weights of such shapes that the optimizer cannot train; by default none.

        Raises:
            InputError: there is one.
        """


class StateMemory:
    """The memory for a tensor, or as a whole, as tensors in the state of an optimizer."""

    def __init__(self, state: MutableMapping[str, Tensor], prefix: str, like: Tensor) -> None:
        self._state = state
        self._prefix = prefix
        self._like = like

    def __getitem__(self, name: str) -> Tensor:
        key = f"{self._prefix}{name}"
        if key not in self._state:
            zero: Tensor = zeros_like(self._like)
            return zero
        return self._state[key]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self._state[f"{self._prefix}{name}"] = value


class Minibatch(Descent):
    """The base of optimizers that may work on batches.

    Exactly one of `iterations` and `epochs` is given.
    """

    titles: ClassVar[Mapping[str, str]] = {"batch_size": "batch size B"}
    iterations: PositiveInt | None = None
    """Number of updates."""
    epochs: PositiveInt | None = None
    """Number of passes over the training set."""
    batch_size: PositiveInt | None = None
    """Samples per update; all of them when absent."""
    replacement: bool = False
    """Draw every batch with replacement instead of splitting a permutation per epoch."""
    drop_last: Annotated[bool | None, AfterValidator(lambda drop: drop or None)] = None
    """Leave out the last batch of an epoch where it has fewer samples than the others, as a
    `DataLoader` of torch with `drop_last=True` does; by default it is trained on.
    """
    samples: Literal["fresh"] | None = None
    """`fresh`: every update draws new samples (online); the `n` of the data set are for the
    recorded loss alone.
    """

    def count(self, steps_per_epoch: int) -> int:
        """Return the number of updates."""
        return self.iterations or (self.epochs or 0) * steps_per_epoch

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the mistakes in the length of the run and its batches."""
        yield from super().check(sections)
        if self.iterations is None and self.epochs is None:
            yield (
                ("optimizer", "iterations"),
                "is missing; exactly one of iterations and epochs must be given",
            )
        if self.iterations is not None and self.epochs is not None:
            yield (
                ("optimizer", "epochs"),
                "exactly one of iterations and epochs must be given, not both",
            )
        if self.replacement and self.batch_size is None:
            yield ("optimizer", "replacement"), "needs a batch_size: a full batch is not drawn"
        if self.drop_last and self.batch_size is None:
            yield ("optimizer", "drop_last"), "needs a batch_size: a full batch is never short"
        for key in ("replacement", "samples"):
            if self.drop_last and getattr(self, key):
                told = f"does not go with {key}, whose batches have all the same size"
                yield ("optimizer", "drop_last"), told
        if self.samples == "fresh":
            yield from self._check_fresh(sections.get("dataset"))

    def _check_fresh(self, dataset: Dataset | None) -> Iterator[Finding]:
        """Yield the settings that do not go with fresh samples."""
        if self.batch_size is None:
            yield (
                ("optimizer", "batch_size"),
                "is missing; fresh samples need their number per update, e.g. 1",
            )
        if self.epochs is not None:
            yield ("optimizer", "epochs"), "there are none of fresh samples; give iterations"
        if self.replacement:
            yield (
                ("optimizer", "replacement"),
                "does not go with fresh samples, which are never drawn twice",
            )
        if dataset is None:
            return
        if not dataset.endless:
            endless = [
                repr(name)
                for name, cls in all_kinds("dataset").items()
                if cls.endless  # type: ignore[attr-defined]
            ]
            able = alternatives(endless)
            yield (
                ("optimizer", "samples"),
                f"fresh needs dataset.kind {able}; {dataset.kind} has only its own samples",
            )
        for key in ("whiten", "random_labels", "replaced_labels"):
            if getattr(dataset, key):
                yield (
                    ("dataset", key),
                    "is of the samples as a whole, it does not go with optimizer.samples: fresh",
                )
