"""Modules of torch that have state of their own: buffers, and layers that differ in training.

A *buffer* is what a module keeps beside its weights, such as the running statistics of batch
normalisation (`register_buffer`). A module *has modes* where its class, or that of a layer inside,
reads `self.training`, as dropout and batch normalisation do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.kinds.streams import stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


def buffers_of(module: nn.Module) -> dict[str, Tensor]:
    """Return the buffers of a module by name, without those that its `state_dict` leaves out."""
    found: dict[str, Tensor] = {}
    for prefix, part in module.named_modules():
        place = f"{prefix}." if prefix else ""
        for name, buffer in part.named_buffers(recurse=False):
            if name not in part._non_persistent_buffers_set:
                found[f"{place}{name}"] = buffer
    return found


def put_buffers(module: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set the buffers of a module to the arrays of their names; others stay as they are."""
    import torch

    with torch.no_grad():
        for name, buffer in buffers_of(module).items():
            if name in arrays:
                buffer.copy_(torch.from_numpy(np.array(arrays[name])))


def cast(module: nn.Module, dtype: torch.dtype, device: str = "cpu") -> nn.Module:
    """Move a module to a device and its numbers to a precision.

    Complex ones become complex numbers of two such parts: `Module.to` drops imaginary parts.
    """
    if not any(t.is_complex() for t in (*module.parameters(), *module.buffers())):
        return module.to(device, dtype)

    def moved(t: Tensor) -> Tensor:
        if t.is_complex():
            return t.to(device, dtype.to_complex())
        if t.is_floating_point():
            return t.to(device, dtype)
        return t.to(device)

    moved_module: nn.Module = module._apply(moved)  # type: ignore[no-untyped-call]
    return moved_module


def make_dense(module: nn.Module) -> None:
    """Have embeddings with `sparse=True` give the same gradients as dense tensors."""
    for part in module.modules():
        if getattr(part, "sparse", False) is True:
            part.sparse = False  # type: ignore[assignment]


def as_real(t: Tensor) -> Tensor:
    """Return a tensor, a complex one as pairs of numbers (..., 2)."""
    import torch

    return torch.view_as_real(t) if t.is_complex() else t


def nodes_of(number: Tensor) -> Iterator[Any]:
    """Yield the nodes of the graph that a number depends on."""
    seen: set[Any] = {None}
    todo: list[Any] = [number.grad_fn]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [before for before, _ in node.next_functions]
            yield node


def has_modes(module: nn.Module) -> bool:
    """Return whether a layer of a module reads whether it is trained or evaluated."""
    from dynamics_cli.draws import reads_mode

    return any(reads_mode(kind) for kind in {type(part) for part in module.modules()})


def layers_seed(seed: int, iteration: int) -> int:
    """Return the seed of what random layers draw in the update from a state.

    It is of the run's stream `layers`: a function of (seed, iteration), never of earlier draws.
    """
    return int(stream(seed, "layers", iteration).integers(2**63))


def train_repeatedly(module: nn.Module, seed: int, *, apart: bool) -> None:
    """Put a module into training mode in which each call is the same function.

    Random layers draw the same numbers in each call, from a seed; `apart` as in `RandomLayers`.
    Batch normalisation takes the statistics of the samples of a call, and keeps none.
    """
    from torch.func import replace_all_batch_norm_modules_

    from dynamics_cli.draws import RandomLayers

    replace_all_batch_norm_modules_(module)
    module.train()
    layers = RandomLayers(module, apart=apart)
    forward = module.forward

    def drawn(*inputs: Any) -> Any:
        with layers.seeded(seed):
            return forward(*inputs)

    module.forward = drawn
