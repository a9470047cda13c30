"""Modules of torch: the one within wrappers, copies of it, and how a batch goes through it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatchcase
from types import CellType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import tree_leaves, tree_map_only

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.modules import cast, make_dense
from dynamics_cli.process import Shared
from dynamics_cli.text import shorten
from dynamics_cli.training.obstacles import LONGEST, told

BatchLoss = Callable[[nn.Module, Any], Any]
"""Module and batch -> the mean loss of the samples in it; or (sum, count) of its labels."""
WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel)
"""Parallel training and averaged weights; `torch.compile` is known by `_orig_mod`."""
FORWARD_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
"""Attributes of a module with the hooks of a call."""
HELD = (list, dict, set, Tensor, nn.Module)
"""What a copied hook has copies of; other objects, such as a writer of logs, it shares."""


def opened(model: nn.Module) -> nn.Module:
    """Return the module within wrappers of `torch.compile`, `WRAPPERS` and the like."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, WRAPPERS):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def copied(module: nn.Module) -> nn.Module:
    """Return a whole copy of a module: weights, buffers, attributes, modes and forward hooks.

    Weights that hooks compute, as `weight_norm` does, are copied by value, which torch refuses.
    """
    memo: dict[int, Any] = {}
    for inner in module.modules():
        _copy_computed(vars(inner), memo)
    twin = copy.deepcopy(module, memo)
    for inner, other in zip(module.modules(), twin.modules(), strict=True):
        for kind in FORWARD_HOOKS:
            hooks = getattr(other, kind)
            hooks |= {key: _copied_hook(hook, memo) for key, hook in getattr(inner, kind).items()}
    return twin


def _copied_hook(hook: Callable[..., Any], memo: dict[int, Any]) -> Callable[..., Any]:
    """Return a hook that writes to a copy of what it holds, such as a list of activations.

    Python copies objects and their methods, but not functions: their containers, tensors and
    modules are copied here.
    """
    if not isinstance(hook, FunctionType):
        return copy.deepcopy(hook, memo)

    def own(value: Any) -> Any:
        if not isinstance(value, HELD):
            return value
        _copy_computed(value, memo)
        return copy.deepcopy(value, memo)

    scope = dict(hook.__globals__)
    scope |= {name: own(scope[name]) for name in hook.__code__.co_names if name in scope}
    cells = tuple(CellType(own(cell.cell_contents)) for cell in hook.__closure__ or ())
    twin = FunctionType(hook.__code__, scope, hook.__name__, hook.__defaults__, cells)
    twin.__kwdefaults__ = hook.__kwdefaults__
    return twin


def _copy_computed(values: Any, memo: dict[int, Any]) -> None:
    """Copy the tensors in a container that have a graph, which torch refuses to copy with it."""
    for value in tree_leaves(values):
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone()


def model_copy(model: Any, device: str, dtype: torch.dtype) -> nn.Module:
    """Return a whole copy of the user's model on a device, in its eval mode, without wrappers.

    Backward hooks are left out: a measure is a derivative of the loss, whatever a loop makes of it.

    Raises InputError: it is no module, has weights without values, or cannot be copied.
    """
    if not isinstance(model, nn.Module):
        given = f"a {type(model).__name__}"
        if isinstance(model, type):
            given = f"the class {model.__name__}"
        raise InputError(f"the model is {given}, needed is a torch.nn.Module")
    tensors = (*model.parameters(), *model.buffers())
    if any(map(is_lazy, tensors)):
        raise InputError(
            "the model has lazy modules, whose weights have no shape yet: call it once with inputs"
        )
    if any(tensor.is_meta for tensor in tensors):
        raise InputError("the model has weights without values (device meta): load them first")
    try:
        network = copied(opened(model))
        for inner in list(network.modules()):
            for name, child in inner.named_children():
                setattr(inner, name, opened(child))
            inner._backward_pre_hooks.clear()
            inner._backward_hooks.clear()
        make_dense(network)
        return cast(network, dtype, device).eval()
    except Exception as error:
        raise InputError(f"the model cannot be copied to {device}: {told(error)}") from error


def computing_dtype(module: nn.Module) -> torch.dtype:
    """Return the precision in which a module computes; complex weights count by their parts."""
    return next(module.parameters()).dtype.to_real()


def as_real_pairs(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """Replace complex weights by real ones (..., 2), and return their places.

    `complex_weights` gives them back to the module for a call.
    """
    pairs: dict[int, nn.Parameter] = {}
    places = []
    for inner in module.modules():
        for name, weight in inner._parameters.items():
            if weight is not None and weight.is_complex():
                parts = torch.view_as_real(weight.detach()).clone()
                pair = nn.Parameter(parts, requires_grad=weight.requires_grad)
                inner._parameters[name] = pairs.setdefault(id(weight), pair)
                places.append((inner, name))
    return places


@contextmanager
def complex_weights(places: Sequence[tuple[nn.Module, str]]) -> Iterator[None]:
    """Let modules find complex weights where `as_real_pairs` has put real ones."""
    for module, name in places:
        vars(module)[name] = torch.view_as_complex(module._parameters[name])  # type: ignore[arg-type]
    try:
        yield
    finally:
        for module, name in places:
            del vars(module)[name]


def freeze_others(module: nn.Module, patterns: str | Sequence[str] | None) -> list[str]:
    """Freeze the weights whose names match no pattern, and return those that are trained.

    None keeps all. Raises InputError: all would be frozen.
    """
    wanted = [patterns] if isinstance(patterns, str) else patterns
    weights = dict(module.named_parameters())
    if wanted is not None:
        for name, weight in weights.items():
            matches = any(fnmatchcase(name, pattern) for pattern in wanted)
            weight.requires_grad_(weight.requires_grad and matches)
    trained = [name for name, weight in weights.items() if weight.requires_grad]
    if not trained:
        if wanted is None:
            raise InputError("the model has no weights that are trained (requires_grad)")
        names = shorten(", ".join(weights), LONGEST)
        raise InputError(f"parameters {list(wanted)} match no trained weight of: {names}")
    return trained


def is_sum_and_count(value: Any) -> bool:
    """Return whether the value of a loss is (sum, count)."""
    return isinstance(value, tuple | list) and len(value) == 2


def passed(module: nn.Module, batch: Any, loss: BatchLoss | None = None) -> Any:
    """Return the outputs for a batch, in the module's precision.

    A `loss` gives its value for each sample; (sum, count) gives the sum over the number of samples.
    """
    device = next(module.parameters()).device
    dtype = computing_dtype(module)

    def like_weights(t: Tensor) -> Tensor:
        if t.is_floating_point():
            return t.to(device, dtype)
        if t.is_complex():
            return t.to(device, dtype.to_complex())
        return t.to(device)

    batch = tree_map_only(Tensor, like_weights, batch)
    if loss is not None:
        value = loss(module, batch)
        n = len(tree_leaves(batch)[0])
        if is_sum_and_count(value):
            value = value[0] / n
        return value.expand(n)
    if isinstance(batch, dict):
        return module(**batch)
    if isinstance(batch, tuple | list):
        return module(*batch)
    return module(batch)


def remedy(module: nn.Module, batch: Any, loss: BatchLoss | None) -> str:
    """Return how a network takes a batch that it does not take as it is, where a trial finds it."""
    single = copied(module).float()
    ways = {
        "": (module, batch),  # an error that comes once
        '; it computes in float32 only: give dtype="float32"': (single, batch),
        "; its argument is one dictionary: give (x,) in place of x": (module, (batch,)),
    }
    for way, (network, inputs) in ways.items():
        with suppress(Exception):  # any error of the model: it does not take this either
            passed(network, inputs, loss)
            return way
    return ""


@contextmanager
def _attention_by_operations() -> Iterator[None]:
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


_DIFFERENTIABLE = Shared(_attention_by_operations)


def differentiable() -> AbstractContextManager[None]:
    """Let attention be computed by operations that can be differentiated twice."""
    return _DIFFERENTIABLE.held()
