"""The base class of optimizers that are objects of `torch.optim.Optimizer`.

A checkpoint holds their memory as tensors by name.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from copy import deepcopy
from io import BytesIO
from itertools import chain
from pickle import PicklingError, UnpicklingError
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.arrays import Floats, Shapes
from dynamics_cli.kinds.modules import as_real
from dynamics_cli.kinds.optimizers import Minibatch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

_OF_TORCH = {
    "state",
    "param_groups",
    "defaults",
    "_need_device_dtype_check_for_fused",
    "_warned_capturable_if_run_uncaptured",
    "_step_count",
    "_opt_called",
}
"""Attributes that the checkpoint holds otherwise, or in which torch notes what it has told."""
_SAVED = "saved"
"""The name of the bytes of all that an optimizer remembers."""
_GLOBAL = re.compile(r"GLOBAL (\S+)")
"""The name, in torch's message, of a class that `weights_only` does not read."""


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
        saved: its state at another time, by `optimizer.state_dict()` (default: its state now).

    Raises:
        InputError: the optimizer does not update one of the tensors, or the state is of another.
    """
    import torch

    formula = PRECONDITIONERS[type(optimizer).__name__]
    places = {
        id(w): place
        for place, w in enumerate(chain(*(group["params"] for group in optimizer.param_groups)))
    }
    if saved is None:
        saved = optimizer.state_dict()
    groups = [group for group in saved["param_groups"] for _ in group["params"]]
    keys = list(chain(*(group["params"] for group in saved["param_groups"])))
    saved_names = _names_of(saved["param_groups"])
    own_names = _names_of(optimizer.param_groups)
    if len(keys) != len(places):
        raise InputError(
            f"optimizer: its saved state is of {len(keys)} tensors, the optimizer has {len(places)}"
        )
    if not any(id(w) in places for w in named.values()):
        raise InputError(
            "optimizer: it updates no weight of this model; of averaged weights, as of an"
            " AveragedModel, leave optimizer and preconditioned_sharpness out"
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
        if saved_names:  # whose order may be another
            called = own_names[place] if own_names else name
            if called not in saved_names:
                raise InputError(
                    f"optimizer: its saved state is of other weights, without {called}"
                )
            place = saved_names.index(called)
        state = saved["state"].get(keys[place])
        if not state:
            unmoved.append(name)
            continue
        state = {key: as_real(v) if isinstance(v, torch.Tensor) else v for key, v in state.items()}
        diagonal = formula(groups[place], state)
        if diagonal.shape != as_real(w).shape:
            raise InputError(
                f"optimizer: its saved state of {name} is {tuple(diagonal.shape)}, the weight is"
                f" {tuple(as_real(w).shape)}"
            )
        diagonals[name] = diagonal.cpu().numpy()
    if diagonals:
        diagonals |= {name: np.full(tuple(as_real(named[name]).shape), np.inf) for name in unmoved}
    return diagonals


def _names_of(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all tensors of an optimizer that was given names, else none."""
    if not all("param_names" in group for group in groups):
        return []
    return list(chain(*(group["param_names"] for group in groups)))


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
        self._kind = kind
        self._keeps = kind.keeps
        self._parameters = dict(zip(names, parameters, strict=True))
        self._optimizer = kind.optimizer(list(parameters))
        self._new_groups = deepcopy(self._groups())
        self._new_attributes = self._attributes()

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
        """Return all that the optimizer remembers: the bytes of `torch.save`, by name.

        Raises:
            InputError: it remembers something that a checkpoint cannot hold, or an attribute is
                another than in an optimizer that is read from it.
        """
        import torch

        for name, value in self._attributes().items():
            if name not in self._keeps and self._new_attributes.get(name) != value:
                raise InputError(
                    f"{self._title}: its attribute {name} changes from update to update, and no"
                    f" checkpoint holds it: say keeps = ({name!r},) in the kind"
                )
        remembered = self._remembered()
        self._refuse_weights(remembered)
        buffer = BytesIO()
        try:
            torch.save(remembered, buffer)
            buffer.seek(0)
            torch.load(buffer, weights_only=True)
        except (UnpicklingError, PicklingError, AttributeError, TypeError) as error:
            named = _GLOBAL.search(str(error))
            what = named[1] if named else str(error)
            raise InputError(
                f"{self._title}: it remembers {what}, which a checkpoint cannot hold"
            ) from error
        return {_SAVED: torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)}

    def _remembered(self) -> tuple[Any, Any, Any]:
        """Return what the optimizer remembers of each tensor, of groups, and in attributes.

        Raises:
            InputError: it remembers something of other tensors.
        """
        state = self._optimizer.state
        memory = {name: state[w] for name, w in self._parameters.items() if w in state}
        if len(memory) < len(state):
            raise InputError(f"{self._title}: it has a state that is of no parameter")
        attributes = {name: getattr(self._optimizer, name) for name in self._keeps}
        return memory, self._groups(), attributes

    def _refuse_weights(self, remembered: Any) -> None:
        """Refuse a weight, or a part of it, among what is remembered: a copy is none."""
        import torch
        from torch.utils._pytree import tree_leaves

        weights = {w.untyped_storage().data_ptr() for w in self._parameters.values()}
        for leaf in tree_leaves(remembered):
            dense = isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
            if dense and leaf.numel() and leaf.untyped_storage().data_ptr() in weights:
                raise InputError(
                    f"{self._title}: it remembers a weight itself, or a part of it, which a"
                    " checkpoint cannot hold"
                )

    def put(self, kept: Mapping[str, Tensor]) -> None:
        """Go on with what `kept()` returned."""
        import torch

        if _SAVED in kept:
            saved = BytesIO(kept[_SAVED].cpu().numpy().tobytes())
            memory, groups, attributes = torch.load(saved, weights_only=True)
        else:
            # checkpoints of before have tensors by name, and JSON of the rest
            memory, groups, attributes = json.loads(bytes(kept["rest"].tolist()))
            for named in (memory, attributes):
                named.update({name: _joined(value, kept) for name, value in named.items()})
            groups = [_joined(group, kept) for group in groups]
        self._optimizer.state.clear()
        for name, values in memory.items():
            self._optimizer.state[self._parameters[name]] = values
        for group, values in zip(self._optimizer.param_groups, groups, strict=True):
            group.update(values)
        for name, value in attributes.items():
            setattr(self._optimizer, name, value)

    def follow(self, others: Sequence[TorchUpdater]) -> list[str]:
        """Take over the memory of optimizers of the same class, with its own settings.

        Return the names of what begins anew.
        """
        same = [other for other in others if type(other._optimizer) is type(self._optimizer)]
        of_name = {name: other for other in same for name in other._parameters}
        before = [of_name[name] for name in self._parameters if name in of_name]
        if not before:
            return ["of its own"]

        anew: Mapping[str, Any] = {}
        if not all(_are_same(other._new_groups, self._new_groups) for other in before):
            anew = self._state_at_zero()
        begun: dict[str, None] = {}
        for name, w in self._parameters.items():
            state = {}
            if name in of_name:
                other = of_name[name]
                state = deepcopy(other._optimizer.state.get(other._parameters[name], {}))
            missing = {key: value for key, value in anew.get(name, {}).items() if key not in state}
            begun |= dict.fromkeys(missing)
            if state:  # the class itself makes all of it otherwise
                self._optimizer.state[w] = {**state, **missing}
        self._go_on(before[0])
        return [*begun]

    def _go_on(self, other: TorchUpdater) -> None:
        """Take over what another optimizer has changed in its groups, and what `keeps` names."""
        groups = (self._optimizer.param_groups, other._groups(), other._new_groups)
        for group, now, new in zip(*groups, strict=False):
            for key, value in now.items():
                if key not in new or not _are_same(value, new[key]):
                    group[key] = deepcopy(value)
        for name in self._keeps:
            setattr(self._optimizer, name, deepcopy(getattr(other._optimizer, name)))

    def _attributes(self) -> dict[str, str]:
        """Return a digest of each attribute of the object but its memory."""
        optimizer = self._optimizer
        names = {id(w): name for name, w in self._parameters.items()}
        for kept in (optimizer, optimizer.state, optimizer.param_groups, *optimizer.param_groups):
            names[id(kept)] = "of the optimizer"
        return {
            name: _digest(value, names)
            for name, value in vars(optimizer).items()
            if name not in _OF_TORCH
        }

    def _groups(self) -> list[dict[str, Any]]:
        """Return the settings of the groups of tensors, but the step size."""
        return [_without_parameters(group) for group in self._optimizer.param_groups]

    def _state_at_zero(self) -> dict[str, dict[str, Any]]:
        """Return what a new optimizer remembers of each tensor after a gradient of 0."""
        import torch

        zeros = {name: torch.zeros_like(w) for name, w in self._parameters.items()}
        optimizer = self._kind.optimizer(list(zeros.values()))
        for w in zeros.values():
            w.grad = torch.zeros_like(w)
        optimizer.step()
        return {name: dict(optimizer.state.get(w, {})) for name, w in zeros.items()}

    def preconditioner(self) -> dict[str, Floats]:
        """Return the preconditioner of each tensor; see `torch_preconditioner`."""
        return torch_preconditioner(self._optimizer, self._parameters)


def _digest(value: Any, names: Mapping[int, str]) -> str:
    """Return a text that differs where two values do; objects of `names` are called by them."""
    import torch

    if id(value) in names:
        return names[id(value)]
    names = {**names, id(value): "itself"}
    parts: Iterable[Any]
    match value:
        case torch.Tensor():
            dense = value.detach().cpu().to_dense().contiguous().flatten()
            parts = [value.dtype, value.shape, _sha256(dense.view(torch.uint8).numpy())]
        case np.ndarray():
            parts = [value.dtype, value.shape, _sha256(np.ascontiguousarray(value))]
        case torch.Generator():
            parts = [value.get_state()]
        case np.random.Generator():
            parts = [value.bit_generator.state]
        case random.Random():
            parts = [value.getstate()]
        case Mapping():
            parts = chain.from_iterable(value.items())
        case set() | frozenset():
            parts = sorted(_digest(item, names) for item in value)
        case list() | tuple() | deque():
            parts = value
        case _ if hasattr(value, "__qualname__"):  # a function or a class
            parts = [value.__module__, value.__qualname__]
        case _ if hasattr(value, "__dict__"):
            parts = [vars(value)]
        case _:
            return repr(value)
    texts = [_digest(part, names) for part in parts]
    return f"{type(value).__name__}({', '.join(texts)})"


def _sha256(array: Any) -> str:
    return hashlib.sha256(array).hexdigest()


def _without_parameters(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in ("params", "lr")}


def _are_same(a: Any, b: Any) -> bool:
    """Return whether two settings are equal, tensors in them too."""
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return type(a) is type(b) and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_are_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_are_same, a, b))
    return bool(a == b)


def _joined(value: Any, kept: Mapping[str, Tensor]) -> Any:
    """Return the memory that a checkpoint of before holds as plain data and tensors by name."""
    import torch

    match value:
        case ["tensor", name, device, *form]:
            tensor = kept[name].detach()
            if form and str(tensor.dtype) != f"torch.{form[0]}":
                tensor = tensor.view(getattr(torch, form[0])).reshape(form[1])
            # Adam counts its updates on the CPU, wherever the weights are
            return tensor.to(device).clone()
        case ["dict", pairs]:
            return {key: _joined(item, kept) for key, item in pairs}
        case ["set", items]:
            return set(_joined(items, kept))
        case ["list" | "tuple" | "Size" as kind, items]:
            made = {"list": list, "tuple": tuple, "Size": torch.Size}[kind]
            return made([_joined(item, kept) for item in items])
    return value
