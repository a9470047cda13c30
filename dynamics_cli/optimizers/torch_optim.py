"""The classes of `torch.optim` by their names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, model_validator

from dynamics_cli.errors import did_you_mean
from dynamics_cli.kinds import Finding, Sections, TorchOptimizer
from dynamics_cli.kinds.base import LENIENT
from dynamics_cli.kinds.torch_optimizers import PRECONDITIONERS

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

REFUSED = {
    "LBFGS": "it asks for the gradient several times an update, and dyn computes it once",
    "SparseAdam": "it needs sparse gradients, and networks give dense ones",
}
"""Class of `torch.optim` -> why it cannot train."""
READ_ONCE = {
    "Adagrad": ("initial_accumulator_value",),
    "Rprop": ("lr", "layer_lr", "schedule"),
}
"""Class of `torch.optim` -> arguments that only its first update reads."""
_UNSUITED = {"capturable", "differentiable"}
"""Arguments for graphs of CUDA, and for derivatives of an update."""


class NamedTorchOptimizer(TorchOptimizer, kind="torch"):
    """A class of `torch.optim`, with its arguments as further keys.

    As in `{kind: torch, name: RMSprop, alpha: 0.9}`.

    Defaults, `lr` among them, are the class's own, and stand in the config of the run. PyTorch's
    autograd trains.
    """

    model_config = ConfigDict(extra="allow")
    example = "{kind: torch, name: NAdam, lr: 1.0e-3, iterations: 1000}"
    titles: ClassVar[Mapping[str, str]] = {"name": "optimizer"}
    name: str
    """Adadelta, Adafactor, Adagrad, Adam, Adamax, AdamW, ASGD, Muon, NAdam, RAdam, RMSprop, Rprop,
    SGD, or another class of the installed `torch.optim` but LBFGS and SparseAdam.
    """

    @property
    def preconditions(self) -> bool:
        """Whether the class has a preconditioner that is known."""
        return self.name in PRECONDITIONERS

    @property
    def read_once(self) -> Collection[str]:
        """What `READ_ONCE` says of the class."""
        return READ_ONCE.get(self.name, ())

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, value: Any, info: ValidationInfo) -> Any:
        """Return the section with all arguments of the class, each of the type of its default."""
        if not isinstance(value, dict) or (info.context and info.context.get(LENIENT)):
            return value
        arguments = arguments_of(str(value.get("name")))
        if arguments is None:  # `check` tells it
            return {"lr": 1.0, **value}
        given = {key: value[key] for key in value if key in arguments.model_fields}
        return {**value, **arguments.model_validate(given).model_dump(exclude_none=True)}

    @classmethod
    def further_keys(cls, given: Mapping[str, Any]) -> list[str]:
        """Return the arguments of the named class.

        Numbers that are given as lists, and lists given as numbers, are left out.
        """
        arguments = arguments_of(str(given.get("name")))
        fields = {} if arguments is None else arguments.model_fields
        return [
            key
            for key, field in fields.items()
            if key not in given or isinstance(given[key], list) == isinstance(field.default, list)
        ]

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield an unknown name of `torch.optim`, and arguments that the class does not take."""
        yield from super().check(sections)
        arguments = arguments_of(self.name)
        if arguments is None:
            names = class_names()
            told = f"torch.optim has no {self.name!r}; allowed are {', '.join(names)}"
            told += did_you_mean(self.name, names)
            if self.name in REFUSED:
                told = f"{self.name} cannot train here: {REFUSED[self.name]}"
            yield ("optimizer", "name"), told
            return

        allowed = [*arguments.model_fields]
        unknown = [key for key in self.model_extra or {} if key not in allowed]
        for key in unknown:
            own = [name for name in type(self).model_fields if name not in (*allowed, "kind")]
            told = f"unknown key of torch.optim.{self.name}; allowed are {', '.join(allowed)}"
            yield ("optimizer", key), f"{told}{did_you_mean(key, [*allowed, *own])}"
        if "schedule" in self.read_once and self.schedule is not None:
            told = f"{self.name} takes the step size for its first update alone"
            told += "; leave the schedule out"
            yield ("optimizer", "schedule"), told
        if not unknown:
            yield from self._refused_values()

    def _refused_values(self) -> Iterator[Finding]:
        """Yield what the class itself says of its arguments."""
        import torch

        try:
            self.optimizer([torch.zeros(1, 1)])
        except (ValueError, TypeError, RuntimeError) as error:
            told = str(error)
            keys = sorted(self.model_extra or {}, key=len, reverse=True)
            # `betas` is called beta there, and `eps` epsilon
            named = (key for key in keys if re.search(rf"\b{key.removesuffix('s')}", told))
            yield ("optimizer", next(named, "name")), f"torch.optim.{self.name} says: {told}"

    def optimizer(self, parameters: list[Tensor]) -> Optimizer:
        """Return the optimizer of `torch.optim`."""
        import torch

        made: Optimizer = getattr(torch.optim, self.name)(
            parameters, lr=self.lr, **(self.model_extra or {})
        )
        return made


@cache
def class_names() -> list[str]:
    """Return the names of the classes of `torch.optim` that can train."""
    import torch

    names = [
        name
        for name, cls in vars(torch.optim).items()
        if isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)
    ]
    return sorted(set(names) - {"Optimizer", *REFUSED}, key=str.lower)


@cache
def arguments_of(name: str) -> type[BaseModel] | None:
    """Return the arguments of a class of `torch.optim` with their types and defaults.

    None where no such class can train.
    """
    if name not in class_names():
        return None
    import torch

    signature = inspect.signature(getattr(torch.optim, name))
    fields: dict[str, Any] = {
        key: _typed(argument.annotation, argument.default)
        for key, argument in list(signature.parameters.items())[1:]
        if key not in _UNSUITED
    }
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    return create_model(name, __config__=config, **fields)


def _typed(annotation: Any, default: Any) -> tuple[Any, Any]:
    """Return the type of an argument in a config and its default.

    Tuples are lists there, and tensors numbers.
    """
    if isinstance(default, tuple):
        count = len(default)
        numbers = Annotated[list[float | None], Field(min_length=count, max_length=count)]
        return numbers, list(default)
    if default is None:
        return annotation, None
    if annotation is float or float in get_args(annotation):
        return float, float(default)
    return type(default), default
