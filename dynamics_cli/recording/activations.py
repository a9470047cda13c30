"""Measures of the outputs of modules of a network.

Mean, spread, zeros and rank of activations, and dead units.

Hooks see the outputs of modules during a pass over the training samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import network_of
from dynamics_cli.kinds import Architecture, Floats, Measure, Problem, Sections, State
from dynamics_cli.text import shorten

if TYPE_CHECKING:
    from torch import Tensor, nn

WIDEST = 4000
"""Most units of a module whose stable rank is computed, from a matrix of pairs of units."""
_LONGEST = 200
"""Characters of the names of modules in a message."""
_NO_UNITS = ("MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax")
"""Modules among torch's activations that are no function of a single number."""


def gives_units(module: nn.Module) -> bool:
    """Return whether a module is an activation of torch or of a network of `dyn`."""
    from dynamics_cli.architectures._networks import Units

    cls = type(module)
    of_torch = cls.__module__ == "torch.nn.modules.activation" and cls.__name__ not in _NO_UNITS
    return of_torch or isinstance(module, Units)


@contextmanager
def units_watched() -> Iterator[Callable[[Tensor], int]]:
    """Yield a function that returns the axis of units of outputs (n, ..., units, ...).

    Channels of convolutions and of the normalisations of channels are along the second axis, units
    of linear layers, embeddings and recurrent layers along the last. The operation that came last
    decides, where its outputs have the same size along this axis; otherwise units are along the
    last axis, of outputs (n, C, H, W) along the second.
    """
    import torch
    from torch import Tensor
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    second = {getattr(functional, f"conv{k}d") for k in (1, 2, 3)}
    second |= {getattr(functional, f"conv_transpose{k}d") for k in (1, 2, 3)}
    second |= {functional.batch_norm, functional.group_norm, functional.instance_norm}
    last = {
        functional.linear,
        functional.bilinear,
        functional.embedding,
        functional.layer_norm,
        functional.rms_norm,
    }
    last |= {torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu}
    last |= {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.einsum}
    axes = {**dict.fromkeys(second, 1), **dict.fromkeys(last, -1)}
    made: list[tuple[int, int, int]] = []
    """The axis, and the number of axes and of units, of what the last operation gave."""

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            outputs = function(*args, **(kwargs or {}))
            axis = axes.get(function)
            if axis is not None:
                shape = first_of(outputs).shape
                made[:] = [(axis, len(shape), shape[axis])]
            return outputs

    def axis_of(outputs: Tensor) -> int:
        for axis, ndim, units in made:
            if outputs.ndim == ndim and outputs.shape[axis] == units:
                return axis
        return 1 if outputs.ndim > 3 else -1

    with Watch():
        yield axis_of


def first_of(outputs: Any) -> Tensor:
    """Return the outputs of a module, or the first tensor among them."""
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    return next(one for one in tree_leaves(outputs) if isinstance(one, Tensor))


def rows_of(outputs: Tensor, axis: int) -> Tensor:
    """Return outputs as a matrix (rows, units), given the axis of units.

    Samples, and positions in them, are rows.
    """
    outputs = outputs.detach().double()
    if outputs.ndim < 2:
        return outputs.reshape(-1, 1)
    outputs = outputs.movedim(axis, -1)
    return outputs.reshape(-1, outputs.shape[-1])


@contextmanager
def watched(
    model: nn.Module, names: Sequence[str], see: Callable[[str, Any], None]
) -> Iterator[None]:
    """Let `see` have the name and the outputs of modules whenever they are called.

    The hooks are removed at the end.
    """
    modules = dict(model.named_modules())

    def hook(_module: nn.Module, _inputs: Any, outputs: Any, name: str) -> None:
        see(name, outputs)

    with ExitStack() as hooks:
        for name in names:
            hooks.callback(modules[name].register_forward_hook(partial(hook, name=name)).remove)
        yield


@dataclass
class Seen:
    """What was seen of the outputs of a call of a module, block by block."""

    blocks: int = 0
    count: int = 0
    """Numbers so far, and blocks that they came in."""
    mean: float = 0.0
    squares: float = 0.0
    """Sum of squared distances from the mean."""
    zeros: int = 0
    active: Any = None
    """Of each unit, whether any of its outputs was positive (units,)."""
    products: Any = None
    """Sums of products of pairs of units (units, units), where they are wanted."""

    def add(self, rows: Tensor, *, pairs: bool) -> None:
        """Take a matrix (rows, units) of outputs, with the products of `pairs` of units."""
        self.blocks += 1
        count = rows.numel()
        mean = float(rows.mean())
        self.squares += float(((rows - mean) ** 2).sum())
        total = self.count + count
        # Chan et al. 1983: no difference of large numbers
        apart = mean - self.mean
        # a product, for a power raises where it is inf
        self.squares += apart * apart * self.count * count / total
        self.mean += apart * count / total
        self.count = total
        self.zeros += int((rows == 0).sum())
        positive = (rows > 0).any(0)
        self.active = positive if self.active is None else self.active | positive
        if pairs:
            products = rows.T @ rows
            self.products = products if self.products is None else self.products + products

    def stable_rank(self) -> float:
        """Return `||A||_F^2 / ||A||_2^2` of all rows A; NaN where they are 0 or not finite."""
        products = self.products.cpu().numpy()
        if not np.isfinite(products).all():
            return float("nan")
        largest = np.linalg.eigvalsh(products)[-1]
        if not largest > 0:
            return float("nan")
        return float(products.trace() / largest)


class OfModules(Measure):
    """The base of measures of the outputs of modules."""

    needs = "a single network"
    modules: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of modules, or patterns such as `layers.*.mlp`; by default all activations: `hidden` or
    `hidden_1`, `hidden_2`, ... of networks of `dyn`, and `torch.nn.ReLU` and its relatives.
    """

    def offered(self, problem: Problem) -> bool:
        """Return whether a single network is trained.

        Raises:
            InputError: no module is an activation, or has such a name.
        """
        architecture = problem.config.architecture
        if architecture.players:
            return False
        self.chosen(architecture.built(problem.dataset.d))
        return True

    def chosen(self, model: nn.Module) -> list[str]:
        """Return the names of the modules that are measured.

        Raises:
            InputError: there is none.
        """
        inner = {name: module for name, module in model.named_modules() if name}
        if self.modules is None:
            units = [name for name, module in inner.items() if gives_units(module)]
            if not units:
                listed = shorten(", ".join(inner) or "none", _LONGEST)
                raise InputError(
                    f"record.measures: {self.kind}.modules is missing: no module is an activation;"
                    f" name some of: {listed}"
                )
            return units
        names: dict[str, None] = {}
        for pattern in self.modules:
            matched = [name for name in inner if fnmatchcase(name, pattern)]
            if not matched:
                listed = shorten(", ".join(inner) or "none", _LONGEST)
                raise InputError(
                    f"record.measures: {self.kind}.modules: {pattern!r} is no module of the"
                    f" network: {listed}"
                )
            names.update(dict.fromkeys(matched))
        return list(names)

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the modules, where they do not depend on the inputs."""
        architecture = sections["architecture"]
        with suppress(InputError):
            if isinstance(architecture, Architecture):
                return self.chosen(architecture.built(2))
        if self.modules and not any(set("*?[") & set(name) for name in self.modules):
            return self.modules
        return ()

    def seen(self, state: State, *, pairs: bool = False) -> list[Seen]:
        """Return the outputs of the calls of modules for the training samples.

        Measures share the pass.

        Raises:
            InputError: a module has too many units for `pairs` of them, or is called more often for
                some samples than for others.
        """
        model = network_of(state)
        names = self.chosen(model)
        key = f"outputs of {names}, pairs: {pairs}"
        if key in state.shared:
            return state.shared[key]  # type: ignore[no-any-return]
        problem = state.problem
        device = problem.config.architecture.device
        inputs = problem.config.architecture.inputs_of(problem.dataset.x)
        block = problem.block_samples(device)
        found: dict[str, list[Seen]] = {name: [] for name in names}
        calls: Counter[str] = Counter()

        def see(name: str, outputs: Any) -> None:
            first = first_of(outputs)
            rows = rows_of(first, axis_of(first))
            if pairs and rows.shape[1] > WIDEST:
                raise InputError(
                    f"{self.name}: {name} has {rows.shape[1]} units, the stable rank is of at most"
                    f" {WIDEST}; name other `modules`"
                )
            if calls[name] == len(found[name]):
                found[name].append(Seen())
            found[name][calls[name]].add(rows, pairs=pairs)
            calls[name] += 1

        with watched(model, names, see), units_watched() as axis_of:
            for first in range(0, problem.dataset.n, block):
                calls.clear()
                model(inputs[first : min(first + block, problem.dataset.n)])
                for name in names:
                    if not calls[name]:
                        raise InputError(
                            f"{self.name}: the network does not call its module {name}"
                        )
                    if not found[name][0].blocks == found[name][-1].blocks == first // block + 1:
                        raise InputError(
                            f"{self.name}: the network calls its module {name} more often for some"
                            " samples than for others; name other `modules`"
                        )
        every = [one for name in names for one in found[name]]
        state.shared[key] = every
        return every

    def of_modules(self, values: list[float]) -> float | Floats:
        """Return the numbers of the calls of modules (calls,); of a single one its number."""
        if len(values) == 1:
            return values[0]
        return np.array(values)


class Activations(OfModules, kind="activations"):
    """Mean, standard deviation, share of zeros, or stable rank of the outputs of modules.

    They are of all outputs of a module for the training samples: the standard deviation is that of
    all its numbers together, the stable rank `||A||_F^2 / ||A||_2^2` that of the matrix A with a
    row for each sample, or position in it, and a column for each unit, which is not centred. Units
    are the channels of convolutions, along the second axis, and otherwise along the last axis; of
    several outputs the first counts. The measure is called `activations_mean`, `activations_sd`,
    `activations_zeros` or `activations_stable_rank`, with a number for each module, or for each
    call of a module that the network calls several times. A state takes a pass over the training
    samples, which measures of the same modules share; the stable rank another, with `units^2`
    multiply-adds a row.
    """

    example = "{kind: activations, of: stable_rank}"
    of: Literal["mean", "sd", "zeros", "stable_rank"] = "mean"
    """Which number."""

    @property
    def name(self) -> str:
        """`activations_mean` and so on."""
        return f"{self.kind}_{self.of}"

    def measure(self, state: State) -> float | Floats:
        """Return the number of each call of a module (calls,), or of a single one."""
        seen = self.seen(state, pairs=self.of == "stable_rank")
        if self.of == "mean":
            values = [one.mean for one in seen]
        elif self.of == "sd":
            values = [(one.squares / one.count) ** 0.5 for one in seen]
        elif self.of == "zeros":
            values = [one.zeros / one.count for one in seen]
        else:
            values = [one.stable_rank() for one in seen]
        return self.of_modules(values)


class DeadUnits(OfModules, kind="dead_units"):
    """Share of the units of a module that no training sample activates.

    A sample activates a unit whose output is positive, at any position: so it is with ReLU, and for
    activations with the sign of their argument, such as leaky ReLU, tanh and GELU, where the
    preactivation is positive. A number for each module, or for each call of a module that the
    network calls several times; units are as in `activations`. Where a network calls a
    function instead of a module, name the layer before it: its outputs are the preactivations. A
    state takes a pass over the training samples, which measures of the same modules share.
    """

    linear = True

    def measure(self, state: State) -> float | Floats:
        """Return the share of each call of a module (calls,), or of a single one."""
        dead = [float((~one.active).double().mean()) for one in self.seen(state)]
        return self.of_modules(dead)
