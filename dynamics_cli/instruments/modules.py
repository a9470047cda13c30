"""Modules of torch: the one within wrappers, copies of it, and how a batch goes through it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import tree_leaves, tree_map_only

from dynamics_cli.errors import InputError
from dynamics_cli.instruments.obstacles import LONGEST, told
from dynamics_cli.text import shorten

BatchLoss = Callable[[nn.Module, Any], Any]
"""Module and batch -> the mean loss of the samples in it; or (sum, count) of its labels."""
WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel)
"""Parallel training and averaged weights; `torch.compile` is known by `_orig_mod`."""


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
    """Return a copy of a module.

    Weights that hooks compute, as those of `weight_norm`, are copied by value, which torch refuses.
    """
    memo: dict[int, Any] = {}
    for inner in module.modules():
        for value in vars(inner).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    return copy.deepcopy(module, memo)


def model_copy(model: Any, device: str, dtype: torch.dtype) -> nn.Module:
    """Return a copy of the user's model on a device, in its eval mode, without its wrappers.

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
            _drop_hooks(inner)
        return network.to(device, dtype).eval()
    except Exception as error:
        raise InputError(f"the model cannot be copied to {device}: {told(error)}") from error


def _drop_hooks(module: nn.Module) -> None:
    """Drop the user's hooks, which would log what is measured; torch's own may compute weights."""
    hooks = (
        module._forward_pre_hooks,
        module._forward_hooks,
        module._backward_pre_hooks,
        module._backward_hooks,
    )
    for named in hooks:
        for key, hook in list(named.items()):
            if not f"{hook.__module__}.".startswith("torch."):
                del named[key]


def freeze_others(module: nn.Module, patterns: str | Sequence[str] | None) -> None:
    """Freeze the weights whose names match no pattern; None keeps all, and warns of frozen ones.

    Raises InputError: all would be frozen.
    """
    wanted = [patterns] if isinstance(patterns, str) else patterns
    weights = dict(module.named_parameters())
    frozen = ", ".join(name for name, weight in weights.items() if not weight.requires_grad)
    if wanted is not None:
        for name, weight in weights.items():
            matches = any(fnmatchcase(name, pattern) for pattern in wanted)
            weight.requires_grad_(weight.requires_grad and matches)
    if not any(weight.requires_grad for weight in weights.values()):
        if wanted is None:
            raise InputError("the model has no weights that are trained (requires_grad)")
        names = shorten(", ".join(weights), LONGEST)
        raise InputError(f"parameters {list(wanted)} match no trained weight of: {names}")
    if frozen and wanted is None:
        warnings.warn(
            f"weights without requires_grad are left out: {shorten(frozen, LONGEST)}", stacklevel=5
        )


def counts(value: Any) -> bool:
    """Return whether the value of a loss is (sum, count)."""
    return isinstance(value, tuple | list) and len(value) == 2


def passed(
    module: nn.Module,
    batch: Any,
    loss: BatchLoss | None = None,
    forward: Callable[..., Any] | None = None,
) -> Any:
    """Return the outputs for a batch, in the module's precision; of a `loss` its value, once for
    each sample, of (sum, count) the sum over the number of samples.

    `forward` stands in for the module, whose own hooks may compute weights.
    """
    weight = next(module.parameters())

    def like_weights(t: Tensor) -> Tensor:
        if t.is_floating_point():
            return t.to(weight.device, weight.dtype)
        return t.to(weight.device)

    batch = tree_map_only(Tensor, like_weights, batch)
    if loss is not None:
        # the loss calls the module
        own = module.forward
        module.forward = forward or own
        try:
            value = loss(module, batch)
            n = len(tree_leaves(batch)[0])
            if counts(value):
                value = value[0] / n
            return value.expand(n)
        finally:
            module.forward = own
    call = forward or module
    if isinstance(batch, dict):
        return call(**batch)
    if isinstance(batch, tuple | list):
        return call(*batch)
    return call(batch)


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
def differentiable() -> Iterator[None]:
    """Let attention be computed by operations that can be differentiated twice."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
