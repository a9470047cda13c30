"""A module of torch as an architecture, its inputs looked up by numbers of samples."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import PrivateAttr
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves, tree_map_only

from dynamics_cli import kinds
from dynamics_cli.draws import draws
from dynamics_cli.errors import InputError
from dynamics_cli.instruments.checkpoints import file_name, fitting, tensors_of
from dynamics_cli.instruments.data import TOGETHER, LookUp, from_all_over
from dynamics_cli.instruments.modules import (
    FORWARD_HOOKS,
    BatchLoss,
    as_real_pairs,
    complex_weights,
    computing_dtype,
    copied,
    differentiable,
    is_sum_and_count,
    passed,
    remedy,
)
from dynamics_cli.kinds import Parameters
from dynamics_cli.kinds.modules import as_real
from dynamics_cli.training.obstacles import told

ROUNDING = 1e-4
"""Relative difference of numbers that are equal but for rounding, of float32 too."""
CLOSE = 1e-6
"""The same where the network computes in float64; a layer inside may round to float32."""

BESIDE = 0.1
"""Relative change of the weights at which gradients of parts are compared."""


class Numbered:
    """Inputs of samples, looked up by their numbers."""

    def __init__(self, look_up: LookUp, rows: kinds.Floats) -> None:
        self._look_up = look_up
        self._numbers = rows[:, 0].astype(np.int64)

    def __getitem__(self, index: Any) -> Any:
        numbers = self._numbers[index]
        inputs = self._look_up(numbers.ravel())
        return tree_map_only(Tensor, lambda t: t.reshape(*numbers.shape, *t.shape[1:]), inputs)


class Given(kinds.Architecture):
    """A module of torch; outside, its outputs of any shape are rows."""

    outputs: int | None = None
    """Numbers that it gives for a sample; None for a single number."""
    sample: tuple[tuple[int, ...], ...] = ()
    """The shape of a sample of each input."""
    _module: Any = PrivateAttr()
    _look_up: Any = PrivateAttr()
    _shape: tuple[int, ...] = PrivateAttr(())
    """The shape of the outputs for a sample."""
    _positions: int = PrivateAttr(0)
    """Positions at which outputs are given; 0 where a sample has one row of them."""
    _kept: int = PrivateAttr(0)
    """Numbers that autograd keeps of a sample."""
    _loss: BatchLoss | None = PrivateAttr(None)

    @classmethod
    def of(cls, module: nn.Module, look_up: LookUp, count: int, loss: BatchLoss | None) -> Given:
        """Return the architecture of a module, or of its `loss`, tried with `count` samples.

        Raises:
            InputError: it does not take them, gives no tensor of a row for each sample, or draws
                random numbers.
        """
        weights = dict(module.named_parameters())
        kept = {weight.data_ptr(): 0 for weight in weights.values()}

        def keep(tensor: Tensor) -> Tensor:
            kept.setdefault(tensor.data_ptr(), tensor.numel())
            return tensor

        batch = look_up(np.arange(count))
        shapes = tuple(tuple(t.shape[1:]) for t in tree_leaves(batch) if isinstance(t, Tensor))
        try:
            before = torch.get_rng_state()
            with torch.set_grad_enabled(loss is not None):  # where attention may take another way
                fast = passed(module, batch, loss)
            with differentiable():
                with saved_tensors_hooks(keep, lambda tensor: tensor):
                    h = passed(module, batch, loss)
                # a loop in another thread may draw meanwhile
                moved = not torch.equal(before, torch.get_rng_state())
                drawing = moved and draws(lambda: passed(module, batch, loss))
        except Exception as error:
            asked = ", ".join(str((count, *shape)) for shape in shapes)
            what = "the model does not take"
            if loss is not None:
                what = "the loss cannot be computed of"
            tried = remedy(module, batch, loss)
            raise InputError(f"{what} inputs {asked}: {told(error)}{tried}") from error
        _check_rows(h, count)
        if h.is_complex():
            raise InputError(
                "the model gives complex outputs: let it give real numbers, such as abs() or"
                " torch.view_as_real()"
            )
        if drawing:
            torch.set_rng_state(before)
            why = "so that each measure would see another network: take random layers out of it"
            raise InputError(f"the model draws random numbers in its eval mode, {why}")
        if not _equal(fast.detach(), h.detach(), ROUNDING):
            raise InputError(
                "without gradients the model gives other outputs: switch the fast path of"
                " attention off, by torch.backends.mha.set_fastpath_enabled(False) or by"
                " nn.TransformerEncoder(..., enable_nested_tensor=False)"
            )

        size = h[0].numel()
        network = cls(outputs=size if size > 1 else None, sample=shapes)
        network._look_up = look_up
        network._shape = tuple(h.shape[1:])
        network._kept = max(size, sum(kept.values()) // count)
        trained = [name for name, weight in weights.items() if weight.requires_grad]
        return network.of_module(module, loss).training(trained)

    def of_module(self, module: nn.Module, loss: BatchLoss | None) -> Given:
        """Return the network with its module, and its loss of batches, at another state."""
        network = self.model_copy()
        network._module = module
        network._loss = loss
        return network

    def training(self, names: Collection[str]) -> Given:
        """Return the network of which the weights of some names are trained."""
        weights = dict(self._module.named_parameters())
        for name, weight in weights.items():
            weight.requires_grad_(name in names)
        train = None
        if len(names) < len(weights):
            train = list(names)
        return self.model_copy(update={"train": train})

    @property
    def device(self) -> str:
        """The device of the module."""
        return next(self._module.parameters()).device.type  # type: ignore[no-any-return]

    @property
    def trained(self) -> list[str]:
        """Names of the weights that are trained."""
        return list(self.train or self.shapes(1))

    @property
    def at_positions(self) -> bool:
        """Whether outputs are given at each position of a sequence."""
        return self._positions > 0

    @property
    def gives_losses(self) -> bool:
        """Whether a loss of model and batch hides the outputs."""
        return self._loss is not None

    def by_positions(self) -> Given:
        """Return the network with a row of outputs for each position, its first axis."""
        size = math.prod(self._shape[1:])
        network = self.model_copy(update={"outputs": size if size > 1 else None})
        network._positions = self._shape[0]
        return network

    def label_counts(self, samples: Iterable[int]) -> Tensor | None:
        """Return the number of labels of single samples, where the loss gives (sum, count)."""
        loss = self._loss
        assert loss is not None
        numbers: list[float] = []

        def count_labels(module: nn.Module, batch: Any) -> Tensor:
            value = loss(module, batch)
            if is_sum_and_count(value):
                numbers.append(float(value[1]))
            return torch.zeros(())

        for k in samples:
            with differentiable():
                passed(self._module, self._look_up(np.array([k])), count_labels)
            if not numbers:
                return None
        return torch.tensor(numbers, dtype=torch.float64)

    def refuse_mixing(self, count: int, first: int, at_once: int, which: int | None = None) -> None:
        """Compare parts of samples from all over the data with halves of them, drawn at random.

        Compared are outputs or losses, and gradients beside the weights: at the beginning of
        training all samples may give the same numbers, and at its end a gradient is rounding alone.
        Gradients, which take most of the time, are compared at state 0, 1, 2, 4, 8, ... that is
        looked at.

        Args:
            count: number of samples, 0 for none.
            first: number of the first.
            at_once: how many the network takes at once.
            which: counts the states that were looked at before, of which each takes another part
                of the samples; None compares them all.

        Raises:
            InputError: the outputs of a sample depend on the samples beside it, or the loss is no
                mean over samples.
        """
        if count < 2:
            return
        spread = first + from_all_over(count)
        parts = -(-len(spread) // max(2, min(at_once, TOGETHER)))
        rng = np.random.default_rng(which or 0)
        rounding = CLOSE if computing_dtype(self._module) == torch.float64 else ROUNDING
        looks_at_slopes = which is None or which & (which - 1) == 0
        beside = self._beside(rng) if looks_at_slopes else self._module
        for part in range(parts) if which is None else [which % parts]:
            numbers = rng.permutation(spread[part::parts])
            halves = [half for half in np.array_split(numbers, 2) if len(half)]
            together = self._given(self._module, numbers)
            apart = [self._given(self._module, half) for half in halves]
            means = (together.mean(), torch.cat([h.flatten() for h in apart]).mean())
            if self._loss is not None:
                # the mean of a loss over samples is the mean over both halves
                same = _equal(means[1], means[0], rounding)
            else:
                # row i of the outputs is h(x_i), whatever samples are beside it
                same = all(h.shape[1:] == together.shape[1:] for h in apart)
                same = same and _equal(torch.cat(apart), together, rounding)
            if same and not looks_at_slopes:
                continue
            # the gradient of a sum: ||g_1 + g_2 - g|| <= rounding (||g_1|| + ||g_2||)
            slopes = self._slopes(beside, numbers)
            parted = torch.stack([self._slopes(beside, half) for half in halves])  # (2, P)
            summed = parted.sum(0)
            size = parted.norm(dim=1).sum()
            same_slopes = not bool((summed - slopes).norm() > ROUNDING * size)
            if same and same_slopes:
                continue
            if self._loss is None:
                why = "its outputs for a sample change with the samples beside it"
                raise InputError(f"the model mixes samples: {why}")
            needed = "return (sum, count) of the labels, or the mean of means over samples"
            seen = f"{means[0]:.6g}, in two parts {means[1]:.6g}"
            if same:
                norms = (slopes.norm() / len(numbers), summed.norm() / len(numbers))
                seen = "a gradient of norm {:.6g}, in two parts {:.6g}".format(*norms)
            raise InputError(
                f"the loss is no mean over samples: {len(numbers)} samples together give {seen};"
                f" {needed}"
            )

    def _given(
        self, module: nn.Module, numbers: NDArray[np.int64], *, graph: bool = False
    ) -> Tensor:
        """Return what a module gives for samples: outputs, or the loss."""
        batch = self._look_up(numbers)
        with differentiable(), torch.set_grad_enabled(graph or self._loss is not None):
            h: Tensor = passed(module, batch, self._loss)
        return h if graph else h.detach()

    def _beside(self, rng: np.random.Generator) -> nn.Module:
        """Return a copy of the module with trained weights that are changed by about 10 %."""
        module = copied(self._module)
        for weight in module.parameters():
            if weight.requires_grad:
                noise = torch.from_numpy(rng.standard_normal(weight.shape)).to(weight)
                weight.data = weight.data * (1 + BESIDE * noise)
        return module

    def _slopes(self, module: nn.Module, numbers: NDArray[np.int64]) -> Tensor:
        """Return the gradient (P,) of the sum of the outputs for samples.

        Factors may differ from sample to sample.
        """
        h = self._given(module, numbers, graph=True)
        weights = [w for w in module.parameters() if w.requires_grad]
        if self._loss is None:
            factors = torch.cos(torch.from_numpy(numbers).to(h)).view(-1, *[1] * (h.ndim - 1))
            h = h * factors
        if not h.requires_grad:
            return torch.zeros(1)
        try:
            slopes = torch.autograd.grad(h.sum(), weights, materialize_grads=True)
        except RuntimeError:  # an operation without a derivative, which no measure can take then
            return torch.zeros(1)
        if any(slope.is_sparse for slope in slopes):  # which every measure of gradients refuses
            return torch.zeros(1)
        return torch.cat([as_real(slope).flatten() for slope in slopes])

    def inputs_of(self, x: kinds.Floats) -> Numbered:
        """Return the inputs of samples whose numbers are `x` (n, 1)."""
        return Numbered(self._look_up, x)

    def state_dict(self) -> dict[str, Tensor]:
        """Return weights and buffers by name, with the buffers that the module's own leaves out."""
        return {**dict(self._module.named_buffers()), **self._module.state_dict()}

    def weights(self) -> dict[str, kinds.Floats]:
        """Return the weights of the module by name; complex ones as pairs of numbers."""
        return {
            name: as_real(weight.detach()).cpu().numpy()
            for name, weight in self._module.named_parameters()
        }

    def load(self, weights: Any) -> None:
        """Give the module other weights and buffers.

        Raises:
            InputError: they do not fit this network.
        """
        module = self._module
        own = module.state_dict()
        tensors = fitting(tensors_of(weights), own)
        beside = {name: b for name, b in module.named_buffers() if name not in own}
        for name in beside.keys() & tensors.keys():
            beside[name].copy_(tensors.pop(name))
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:
            named = file_name(weights) or "checkpoint"
            raise InputError(f"{named}: it does not fit the model: {told(error)}") from error

    def built(self, d: int, seed: int | None = None) -> nn.Module:
        """Return `build(d)`, which draws nothing, in the settings of the user's own loop."""
        return self.build(d)

    def build(self, d: int) -> nn.Module:
        """Return a copy of the module that takes inputs as they are looked up.

        Its outputs are (n,) or (n, C), at positions (n, T) or (n, T, C). Its complex weights are
        pairs of numbers.
        """
        module = copied(self._module)
        places = as_real_pairs(module)
        inside = {"forward": module.forward} | {
            name: getattr(module, name) for name in FORWARD_HOOKS
        }

        def rows(batch: Any) -> Tensor:
            vars(module).update(inside)  # the module as it was, with its own hooks
            try:
                with differentiable(), complex_weights(places):
                    h: Tensor = passed(module, batch, self._loss)
            finally:
                vars(module).update(outside)
            shape = [len(h)]
            if self.at_positions:
                shape.append(self._positions)
            if self.outputs is not None:
                shape.append(self.outputs)
            return h.reshape(shape)

        outside: dict[str, Any] = {"forward": rows} | {
            name: OrderedDict() for name in FORWARD_HOOKS
        }
        vars(module).update(outside)
        return module

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every parameter."""
        return {name: tuple(as_real(w).shape) for name, w in self._module.named_parameters()}

    def network(
        self, d: int, initial: Parameters, dtype: torch.dtype, device: str = "cpu"
    ) -> nn.Module:
        """Return the network with some weights, in its own precision and on its own device."""
        own = next(self._module.parameters()).device
        return super().network(d, initial, computing_dtype(self._module), str(own))

    def evaluation(self, parameters: Parameters, d: int) -> Callable[[kinds.Floats], kinds.Floats]:
        """Return numbers of samples (n, 1) -> outputs (n,) or (n, C), in float64."""
        model = self.network(d, parameters, torch.float64)
        gradients = self._loss is not None  # which may take gradients by inputs itself

        def h(x: kinds.Floats) -> kinds.Floats:
            with torch.set_grad_enabled(gradients):
                outputs = model(self.inputs_of(x)[:])
            return np.asarray(outputs.detach().double().cpu().numpy())

        return h

    def layer_sizes(self, shapes: kinds.Shapes, d: int) -> list[int]:
        """Return how many numbers are kept of an input for the way back."""
        return [self._kept]


def _check_rows(h: Any, count: int) -> None:
    """Raise InputError where outputs are no tensor with a row for each of `count` samples."""
    if isinstance(h, Tensor) and h.shape[:1] == (count,):
        return
    gives: Any = type(h).__name__
    if isinstance(h, Tensor):
        gives = tuple(h.shape)
    raise InputError(
        f"the model gives {gives} for {count} samples, needed is a tensor with a row for each"
    )


def _equal(a: Tensor, b: Tensor, rounding: float) -> bool:
    if a.shape != b.shape:
        return False
    return torch.allclose(a, b, rtol=rounding, atol=rounding, equal_nan=True)
