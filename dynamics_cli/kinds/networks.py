"""Base classes of networks: activations and architectures."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.formulas import tracing
from dynamics_cli.kinds.arrays import Array, Evaluation, Floats, Parameters, Shapes
from dynamics_cli.kinds.base import Kind, Positive, bundled, from_outside
from dynamics_cli.kinds.modules import buffers_of, cast, has_modes, put_buffers
from dynamics_cli.process import plain_process

if TYPE_CHECKING:
    import torch
    from torch import nn


class Activation(Kind):
    """A function of a number, applied to every neuron.

    `activation: tanh` is short for `{kind: tanh}`.
    """

    section: ClassVar[str] = "activation"
    smooth: ClassVar[bool] = False
    """Whether it has no kinks, so that gradient flow may be integrated to any order."""

    negative_slope: ClassVar[float | None] = None
    """`alpha` of an activation `max(z, 0) + alpha min(z, 0)`, `alpha >= 0`; None for all others."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "value" in vars(cls) and "negative_slope" not in vars(cls):
            cls.negative_slope = None  # that of a base class holds for its value alone

    @abstractmethod
    def value(self, z: Array) -> Array:
        """Return `sigma(z)`, of the shape of `z`, as a formula.

        Derivatives and the compiled form are made from it.

        A value that is no formula trains by autograd.
        """

    @property
    def is_linear(self) -> bool:
        """Whether it is `z` itself: a formula that gives numbers of all sizes back."""
        z = np.concatenate([sign * np.logspace(-9, 9, 19) for sign in (-1, 1)])
        return tracing.facts(self) is not None and np.array_equal(self.value(z), z)

    @final
    def derivative(self, z: Array, order: int = 1) -> Array:
        """Return `sigma'(z)`, or a higher derivative, of the shape of `z`, an array or a tensor.

        At kinks it is 0.

        Raises `NotAFormulaError`: the value is no formula.
        """
        return tracing.slopes(self, z, order)


class Architecture(Kind):
    """A network."""

    section: ClassVar[str] = "architecture"
    own_precision: ClassVar[bool] = False
    """Whether functions are evaluated in the precision of the weights instead of in float64."""
    players: ClassVar[tuple[str, ...]] = ()
    """Names of networks that are trained against each other, each with a loss of its own; none
    of a single network.
    """
    factors: ClassVar[bool] = False
    """Whether the weights are factors of a matrix, which are multiplied once for all samples."""
    engine: ClassVar[bool] = False
    """Whether it is made of matrices `...weight...`, biases `...bias...`, one activation `sigma`
    between them and `skips`, or a diagonal network, so that the engine trains it. It holds for the
    class that says so: relatives may differ.
    """
    stateful: ClassVar[bool] = True
    """Whether its module may have buffers, or layers that differ in training, such as dropout; it
    is built to see. A class whose module never has says False, for itself alone.
    """
    titles: ClassVar[Mapping[str, str]] = {"output_scale": "output scale α", "depth": "depth L"}
    output_scale: Positive | None = None
    """Multiplies the output: `alpha` of lazy training (Chizat et al. 2019, Eq. 2); by default 1."""
    centered: bool | None = None
    """Subtract the output of the initial network, so that the function begins at 0."""
    train: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the weights that are trained, the others stay as initialised (`random features`);
    by default all.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.engine = vars(cls).get("engine", False)
        cls.stateful = vars(cls).get("stateful", True)

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices of a network of layers, inputs first; none for other networks."""
        return ()

    @property
    def skips(self) -> Collection[str]:
        """Names of the matrices with a skip connection around their layer.

        It adds the preactivations `z` of the layer below: `z + W sigma(z)`.
        """
        return ()

    @property
    def two_layers(self) -> bool:
        """Whether it is `sum_j a_j sigma(<w_j, x>)`.

        Its weights are `hidden_weight` (m, d) and `output_weight` (m,).
        """
        return "hidden_weight" in self.matrices

    @property
    def two_layer(self) -> bool:
        """Whether it has `two_layers`, and a single output."""
        return self.two_layers and getattr(self, "outputs", None) is None

    @property
    def multiplied(self) -> bool:
        """Whether its matrices, or factors, follow each other without skip connections."""
        return self.factors or bool(self.matrices and not self.skips)

    @property
    def is_linear(self) -> bool:
        """Whether it multiplies its inputs by `product`, and adds biases."""
        return self.multiplied and (len(self.matrices) == 1 or self.sigma.is_linear)  # type: ignore[attr-defined]

    def matrices_of(self, parameters: Parameters) -> list[Floats]:
        """Return the matrices, or factors, from the input on, float64; output weights as (C, m)."""
        names = self.matrices or (parameters if self.factors else ())
        return [np.atleast_2d(np.asarray(parameters[name], np.float64)) for name in names]

    def product(self, parameters: Parameters) -> Floats:
        """Return the product `W_L ... W_1` (C, d) of a linear network's matrices."""
        product, *others = self.matrices_of(parameters)
        for W in others:
            product = W @ product
        return product

    @property
    def between_samples(self) -> bool:
        """Whether inputs are real numbers: the network is a function between samples too."""
        return True

    @property
    def at_positions(self) -> bool:
        """Whether outputs are given at each position of a sequence: (n, T), or (n, T, C)."""
        return False

    @property
    def gives_losses(self) -> bool:
        """Whether what it gives for a sample is the loss itself, so that outputs are not known."""
        return False

    @property
    def plain(self) -> bool:
        """Whether the network is its kind alone: neither scaled nor centred, nothing frozen."""
        return self.output_scale is None and not self.centered and self.train is None

    @abstractmethod
    def build(self, d: int) -> nn.Module:
        """Return the network for inputs (n, d), bias column included.

        Its outputs are (n,), or (n, C) for several; with `at_positions` (n, T) or (n, T, C).

        The values of its weights do not matter: the initialisation replaces them.

        Raises:
            InputError: the network does not suit the inputs.
        """

    def built(self, d: int, seed: int | None = None) -> nn.Module:
        """Return `build(d)` with weights drawn after `torch.manual_seed(seed)`.

        The generator of the process stays as it is.
        """
        from dynamics_cli.draws import drawing_apart

        with plain_process(), drawing_apart(bundled=bundled(self), seed=seed):
            return self.build(d)

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every parameter for inputs of `d` columns; nothing is allocated.

        Raises:
            InputError: the network does not suit the inputs, or has more weights than can be
                counted.
        """
        import torch

        try:
            with plain_process(), torch.device("meta"):
                model = self.build(d)
        except (RuntimeError, OverflowError, TypeError) as error:  # torch counts in 64 bits
            if from_outside(type(self)):
                raise  # it may mean anything, and is told with its line
            raise InputError(
                f"architecture: the network is too large ({str(error).splitlines()[0]})"
            ) from error
        for name, parameter in model.named_parameters():
            if isinstance(parameter, torch.nn.UninitializedParameter):
                raise InputError(
                    f"architecture.kind {self.kind}: {name} is of a lazy module and has no shape"
                    " yet: give its sizes, or call the network once in build()"
                )
            if parameter.is_complex():
                raise InputError(
                    f"architecture.kind {self.kind}: {name} is complex, and weights are real: make"
                    " two weights of its real and imaginary parts"
                )
        for name, buffer in buffers_of(model).items():
            if buffer.is_complex():
                raise InputError(
                    f"architecture.kind {self.kind}: the buffer {name} is complex, which runs do"
                    " not record: register it with persistent=False"
                )
        return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}

    def buffers(self, d: int) -> dict[str, NDArray[Any]]:
        """Return the initial buffers of the network by name, such as running means.

        Checkpoints and recorded states hold them beside the weights.
        """
        if self.engine or not self.stateful:
            return {}
        return {name: buffer.numpy().copy() for name, buffer in buffers_of(self.built(d)).items()}

    def has_modes(self, d: int) -> bool:
        """Return whether the network differs between training and evaluation mode.

        Dropout and batch normalisation do.
        """
        if self.engine or not self.stateful:
            return False
        return has_modes(self.built(d))

    @property
    def device(self) -> str:
        """Where measures compute it: `cpu` or `cuda`."""
        return "cpu"

    def inputs_of(self, x: Floats) -> Any:
        """Return inputs (n, d) as measures give them to the network, indexed by sample."""
        import torch

        return torch.tensor(x)

    def refuse_unknown_weights(self, names: Collection[str]) -> None:
        """Refuse a `train` that names a weight that the network, of such `names`, does not have.

        Raises:
            InputError: it does.
        """
        for name in self.train or ():
            if name not in names:
                told = f"the network has no weight {name!r}; it has {', '.join(names)}"
                raise InputError(f"architecture.train: {told}")

    def network(
        self, d: int, initial: Parameters, dtype: torch.dtype, device: str = "cpu"
    ) -> nn.Module:
        """Return the network to train, with its initial weights: scaled, centred, some frozen.

        `initial` may have buffers too. The outputs that a centred network subtracts are those of
        its initial network in evaluation mode.

        Raises:
            InputError: `train` names a weight that the network does not have.
        """
        import torch

        network = cast(self.built(d), dtype, device)
        weights = dict(network.named_parameters())
        self.refuse_unknown_weights(weights)
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(torch.from_numpy(np.array(initial[name])))
                weight.requires_grad_(
                    weight.requires_grad and (self.train is None or name in self.train)
                )
        put_buffers(network, initial)
        alpha = self.output_scale or 1.0
        if self.centered:
            start = copy.deepcopy(network).requires_grad_(False).eval()
            network.register_forward_hook(lambda _, x, h: alpha * (h - start(*x)))
        elif self.output_scale is not None:
            network.register_forward_hook(lambda _, x, h: alpha * h)
        return network

    def loaded(self, parameters: Parameters, d: int, *, strict: bool = True) -> tuple[Any, Any]:
        """Return the network in evaluation mode with the given weights and buffers, and its dtype.

        With `strict` all weights must be given. Buffers that are not given are the initial ones.

        Raises:
            RuntimeError: weights are missing, or have other names or shapes.
        """
        import torch

        tensors = {name: torch.from_numpy(np.array(value)) for name, value in parameters.items()}
        dtype = torch.float64
        if self.own_precision:
            dtype = next(iter(tensors.values())).dtype
        model = cast(self.built(d), dtype).eval()
        given = model.load_state_dict(tensors, strict=False)
        # a weight that two layers share has one name
        missing = [name for name, _ in model.named_parameters() if name in given.missing_keys]
        unexpected = given.unexpected_keys
        if strict and (missing or unexpected):
            told = f"the network lacks {unexpected}, and {missing} are not given"
            raise RuntimeError(told)
        return model, dtype

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> h(x)`, (n,) or (n, C) in float64, with the given weights."""
        import torch

        model, dtype = self.loaded(parameters, d)

        def h(x: Floats) -> Floats:
            with plain_process(), torch.no_grad():
                return model(torch.tensor(np.asarray(x), dtype=dtype)).double().numpy()  # type: ignore[no-any-return]

        return h

    def function(self, parameters: Parameters, start: Parameters | None = None) -> Evaluation:
        """Return `x (n, d) -> h(x)` in float64 for the given weights; `d` includes the bias column.

        Many samples are taken in blocks. A centred network needs its initial weights too.
        """
        if self.output_scale is None and not self.centered:
            return self._function(parameters)
        alpha = self.output_scale or 1.0
        now = self._function(parameters)
        if not self.centered:
            return lambda x: alpha * now(x)
        if start is None:
            raise InputError(
                "architecture.centered: without its initial weights the function of a network is"
                " unknown"
            )
        first = self._function(start)
        return lambda x: alpha * (now(x) - first(x))

    def _function(self, parameters: Parameters) -> Evaluation:
        from dynamics_cli.memory import block_samples

        shapes = {name: value.shape for name, value in parameters.items()}
        prepared = cache(lambda d: self.evaluation(parameters, d))

        def h(x: Floats) -> Floats:
            x = np.asarray(x)
            d = x.shape[1]
            block = block_samples(self.multiply_adds(shapes, d), sum(self.layer_sizes(shapes, d)))
            at_once = prepared(d)
            if len(x) <= block:
                return at_once(x)
            return np.concatenate(
                [at_once(x[first : first + block]) for first in range(0, len(x), block)]
            )

        return h

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds that the network takes for an input of `d` columns."""
        return sum(math.prod(shape) for shape in shapes.values())

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return how many numbers every layer gives for an input of `d` columns."""
        return [shape[0] for shape in shapes.values() if len(shape) > 1]
