"""The base class of optimizers that are objects of `torch.optim.Optimizer`, and their memory as
tensors by name, which a checkpoint holds.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.arrays import Floats, Shapes
from dynamics_cli.kinds.optimizers import Minibatch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

_REST = "rest"
"""The name of the JSON text, as bytes, of all that an optimizer remembers but its tensors."""


class TorchOptimizer(Minibatch):
    """The base of optimizers that are objects of `torch.optim.Optimizer`, of any package.

    A kind defines `optimizer`. The checkpoint holds what the object keeps for its parameters
    (`state`) and for groups of them (`param_groups`), and the attributes that `keeps` names. The
    object gets the gradient once an update, and no closure.
    """

    keeps: ClassVar[tuple[str, ...]] = ()
    """Attributes of the object that change from update to update, beside `state` and
    `param_groups`.
    """

    @abstractmethod
    def optimizer(self, parameters: list[Tensor]) -> Optimizer:
        """Return a new optimizer of these tensors; its step size is set before every update."""

    def updater(self, names: Sequence[str], parameters: Sequence[Tensor]) -> TorchUpdater:
        """Return an optimizer of these tensors that goes on from update to update."""
        return TorchUpdater(self, names, parameters)

    def refuse_weights(self, shapes: Shapes) -> None:
        """Refuse weights that the optimizer does not take; see `Descent.refuse_weights`."""
        import torch

        for name, shape in shapes.items():
            try:
                self.optimizer([torch.empty(shape)])
            except ValueError as error:
                remedy = "take another optimizer, or leave the weight out of architecture.train"
                raise InputError(
                    f"optimizer.kind {self.kind} does not take {name}: {error}; {remedy}"
                ) from error

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
        """Change the weights in place by a new optimizer with this state; see `Descent.update`."""
        updater = self.updater(names, parameters)
        if state:
            updater.put(state)
        updater.update(parameters, gradients, lr=lr)
        state.clear()
        state.update(updater.kept())


def torch_preconditioner(
    optimizer: Optimizer, named: Mapping[str, Tensor], saved: Mapping[str, Any] | None = None
) -> dict[str, Floats]:
    """Return the diagonal preconditioner of tensors of an optimizer, see `Descent.preconditioner`.

    It is empty before the first update, and infinite for a tensor that none has moved, such as one
    that the loss does not depend on.

    Args:
        optimizer: an Adam, AdamW or RMSprop of torch.
        named: the tensors by name.
        saved: its state at another time, by `optimizer.state_dict()`; by default that of now.

    Raises:
        InputError: the optimizer does not update one of the tensors, or the state is of another.
    """
    formula = PRECONDITIONERS[type(optimizer).__name__]
    places = {
        id(w): place
        for place, w in enumerate(chain(*(group["params"] for group in optimizer.param_groups)))
    }
    if saved is None:
        saved = optimizer.state_dict()
    groups = [group for group in saved["param_groups"] for _ in group["params"]]
    keys = list(chain(*(group["params"] for group in saved["param_groups"])))
    if len(keys) != len(places):
        raise InputError(
            f"optimizer: its saved state is of {len(keys)} tensors, the optimizer has {len(places)}"
        )
    for name, w in named.items():
        if id(w) not in places:
            raise InputError(
                f"optimizer: it does not update {name}; leave the weight out by"
                " requires_grad_(False), or give the optimizer of this model"
            )

    diagonals = {}
    unmoved = []
    for name, w in named.items():
        place = places[id(w)]
        state = saved["state"].get(keys[place])
        if not state:
            unmoved.append(name)
            continue
        diagonal = formula(groups[place], state)
        if diagonal.shape != w.shape:
            raise InputError(
                f"optimizer: its saved state of {name} is {tuple(diagonal.shape)}, the weight is"
                f" {tuple(w.shape)}"
            )
        diagonals[name] = diagonal.cpu().numpy()
    if diagonals:
        diagonals |= {name: np.full(tuple(named[name].shape), np.inf) for name in unmoved}
    return diagonals


def _of_adam(group: Mapping[str, Any], state: Mapping[str, Any]) -> Tensor:
    """Return `(1 - beta1^t) (sqrt(v / (1 - beta2^t)) + eps)`; of AMSGrad v is the largest."""
    steps = float(state["step"])
    beta1, beta2 = map(float, group["betas"])
    v = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"].double()
    diagonal: Tensor = (1 - beta1**steps) * ((v / (1 - beta2**steps)).sqrt() + group["eps"])
    return diagonal


def _of_rmsprop(group: Mapping[str, Any], state: Mapping[str, Any]) -> Tensor:
    """Return `sqrt(v) + eps`, centred where the optimizer is."""
    v: Tensor = state["square_avg"].double()
    if group["centered"]:
        v = v - state["grad_avg"].double() ** 2
    return v.sqrt() + float(group["eps"])


PRECONDITIONERS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Tensor]] = {
    "Adam": _of_adam,
    "AdamW": _of_adam,
    "RMSprop": _of_rmsprop,
}
"""Class of `torch.optim` -> diagonal of a tensor, given its group and its state."""


class TorchUpdater:
    """An optimizer of torch with the tensors that it changes."""

    def __init__(
        self, kind: TorchOptimizer, names: Sequence[str], parameters: Sequence[Tensor]
    ) -> None:
        """Make the optimizer of tensors with these names."""
        self._title = f"optimizer.kind {kind.kind}"
        self._keeps = kind.keeps
        self._parameters = dict(zip(names, parameters, strict=True))
        self._optimizer = kind.optimizer(list(parameters))

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], *, lr: float, **_: Any
    ) -> None:
        """Change the tensors in place; see `Descent.update`."""
        for w, g in zip(parameters, gradients, strict=True):
            w.grad = g
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        self._optimizer.step()
        for w in parameters:
            w.grad = None

    def kept(self) -> dict[str, Tensor]:
        """Return all that the optimizer remembers, by name.

        Raises:
            InputError: it remembers something that a checkpoint cannot hold.
        """
        import torch

        kept: dict[str, Tensor] = {}
        state = {
            name: self._split(self._optimizer.state[w], name, kept)
            for name, w in self._parameters.items()
            if w in self._optimizer.state
        }
        if len(state) < len(self._optimizer.state):
            raise InputError(f"{self._title}: it has a state that is of no parameter")
        groups = [
            self._split(_without_parameters(group), f"group {k}", kept)
            for k, group in enumerate(self._optimizer.param_groups)
        ]
        attributes = {
            name: self._split(getattr(self._optimizer, name), name, kept) for name in self._keeps
        }
        text = json.dumps([state, groups, attributes])
        kept[_REST] = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
        return kept

    def put(self, kept: Mapping[str, Tensor]) -> None:
        """Go on with what `kept()` returned."""
        state, groups, attributes = json.loads(bytes(kept[_REST].tolist()))
        self._optimizer.state.clear()
        for name, values in state.items():
            self._optimizer.state[self._parameters[name]] = _joined(values, kept)
        for group, values in zip(self._optimizer.param_groups, groups, strict=True):
            group.update(_joined(values, kept))
        for name, value in attributes.items():
            setattr(self._optimizer, name, _joined(value, kept))

    def preconditioner(self) -> dict[str, Floats]:
        """Return the preconditioner of each tensor; see `torch_preconditioner`."""
        return torch_preconditioner(self._optimizer, self._parameters)

    def _split(self, value: Any, place: str, kept: dict[str, Tensor]) -> Any:
        """Put the tensors of a value into `kept`, and return the rest as plain data.

        A tensor becomes its name and device, a list or a mapping a pair of its type and contents.
        """
        import torch

        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, torch.Tensor):
            kept[place] = value
            return ["tensor", place, value.device.type]
        if isinstance(value, set):
            return ["set", self._split(sorted(value, key=repr), place, kept)]
        if isinstance(value, list | tuple):
            items = [self._split(item, f"{place}/{k}", kept) for k, item in enumerate(value)]
            return [type(value).__name__, items]
        if isinstance(value, dict) and all(isinstance(key, str | int) for key in value):
            pairs = [
                [key, self._split(item, f"{place}/{key}", kept)] for key, item in value.items()
            ]
            return ["dict", pairs]
        raise InputError(
            f"{self._title}: {place} is a {type(value).__name__}, which a checkpoint cannot hold"
        )


def _without_parameters(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in ("params", "lr")}


def _joined(value: Any, kept: Mapping[str, Tensor]) -> Any:
    """Return the value that was split."""
    match value:
        case ["tensor", name, device]:
            # Adam counts its updates on the CPU, wherever the weights are
            return kept[name].to(device).clone()
        case ["dict", pairs]:
            return {key: _joined(item, kept) for key, item in pairs}
        case ["list", items]:
            return [_joined(item, kept) for item in items]
        case ["set", items]:
            return set(_joined(items, kept))
        case ["tuple", items]:
            return tuple(_joined(item, kept) for item in items)
    return value
