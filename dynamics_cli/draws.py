"""Random numbers of torch's operations, which have one generator for all threads of a process.

Dropout and the modules' own initialisation draw from it. Bundled networks on a CPU draw from a
generator of their own instead, with the same bits: neither another run nor a loop of the user's
takes numbers from them, or gets its own again. Code that is not bundled may seed the generator of
the process, or draw again what it drew (`torch.utils.checkpoint`), and CUDA has operations that
take no other generator: these hold it `alone`, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from dynamics_cli.process import alone


class _Redirected(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Random operations of the calling thread draw from a generator of one's own."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = generator
        self.draws: bool = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return that no code of `torch.compile` is needed, which takes a second to import."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and given.get("generator") is None:
            drawing = _taking_a_generator(func)
            if drawing is not None:
                self.draws = True
                return drawing(*args, **given, generator=self._generator)
        return func(*args, **given)


@cache
def _taking_a_generator(func: Any) -> Any:
    """Return the form of an operation that takes a generator; None where it has none.

    `rand` and its like have a form of its own for that, with the same other arguments.
    """
    wanted = {*_arguments(func), "generator"}
    packet = func.overloadpacket
    for form in (func, *(getattr(packet, name) for name in packet.overloads())):
        if {*_arguments(form)} == wanted:
            return form
    return None


def _arguments(form: Any) -> list[str]:
    return [argument.name for argument in form._schema.arguments]


@contextmanager
def drawing_apart(*, bundled: bool, seed: int | None = None) -> Iterator[None]:
    """Draw from `seed`, and leave the generator of the process as it was.

    Code that is not `bundled` draws from the generator of the process, whatever its state is where
    no seed is given.
    """
    if bundled:
        with _Redirected(torch.Generator().manual_seed(seed or 0)):
            yield
        return
    with alone(), torch.random.fork_rng():
        if seed is not None:
            torch.manual_seed(seed)
        yield


def draws(call: Callable[[], Any]) -> bool:
    """Return whether a call draws random numbers by torch, whatever other threads do meanwhile."""
    mode = _Redirected(torch.Generator())
    with mode:
        call()
    return mode.draws


class RandomLayers:
    """The layers of a module that may draw in training, such as dropout, and their numbers."""

    def __init__(self, module: nn.Module, *, apart: bool) -> None:
        """Have the layers draw from a generator of their own, where they are to draw `apart`."""
        self._generator: torch.Generator | None = None
        layers = [
            layer
            for layer in _outermost_with_modes(module)
            if not isinstance(layer, nn.modules.batchnorm._NormBase)
        ]
        self.draw = not apart or bool(layers)
        """Whether they may draw: batch normalisation, which has modes too, does not."""
        if apart:
            self._generator = torch.Generator()
            mode = _Redirected(self._generator)
            for layer in layers:
                layer.forward = _within(mode, layer.forward)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Have what the layers draw inside of the context be a function of the seed."""
        if self._generator is not None:
            self._generator.manual_seed(seed)
            yield
            return
        with drawing_apart(bundled=False, seed=seed):
            yield


def _within(mode: _Redirected, forward: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(*inputs: Any, **named: Any) -> Any:
        with mode:
            return forward(*inputs, **named)

    return drawn


def _outermost_with_modes(module: nn.Module) -> Iterator[nn.Module]:
    if reads_mode(type(module)):
        yield module
        return
    for part in module.children():
        yield from _outermost_with_modes(part)


def reads_mode(kind: type) -> bool:
    """Return whether a class of modules reads whether it is trained or evaluated."""
    for cls in kind.__mro__:
        if cls is nn.Module:
            return False
        for function in vars(cls).values():
            code = getattr(function, "__code__", None)
            if code is not None and "training" in code.co_names:
                return True
    return False
