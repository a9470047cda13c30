"""The base class of every section that has kinds: what a kind of it must say, and what it may.

`dyn explain SECTION.KIND` shows what a kind says of itself: its docstring, its keys and their docstrings.
"""

from __future__ import annotations

import copy
import math
import sys
from abc import abstractmethod
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType, ModuleType, new_class
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.config.base import Finding, Kind, NonNegative, Positive, PositiveInt, Sections
from dynamics_cli.config.registry import OneOf, all_kinds
from dynamics_cli.config.text import alternatives
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import formulas, tracing

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from dynamics_cli.config.clocks import Clock
    from dynamics_cli.config.streams import FreshStreams, Streams
    from dynamics_cli.datasets.samples import Samples, Sizes
    from dynamics_cli.training.problem import Problem


Floats = NDArray[np.float64]
Parameters = Mapping[str, NDArray[np.floating]]
"""Weights of a network by name."""
Evaluation = Callable[[Floats], Floats]
"""`x (n, d) -> h(x)`, (n,) or (n, C)."""
Array = Any
"""A NumPy array or a torch tensor."""
Shapes = Mapping[str, tuple[int, ...]]
"""name -> shape of every parameter of a network, trained or not."""
Labels = Literal["real", "signs", "classes"]
"""What labels are: real numbers, ±1, or class numbers 0..C-1."""


def namespace(array: Array) -> ModuleType:
    """Return the module whose functions apply to `array`: `numpy`, `torch` (never imported here), or `formulas`."""
    if isinstance(array, formulas.Expression):
        return formulas
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else np


class Dataset(Kind):
    """Where training samples come from."""

    section: ClassVar[str] = "dataset"
    random: ClassVar[bool] = True
    """Whether the samples may depend on the seed."""
    endless: ClassVar[bool] = False
    """Whether `load` draws `n` independent samples from `data` and noise streams alone, so that there are ever more."""

    random_labels: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the training labels that are permuted among each other, at random by the seed; by default none."""

    label_noise: Positive | None = None
    """Standard deviation of Gaussian noise that is added to the training labels once; by default none."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of what is drawn here; by default that of the run."""
    whiten: bool | None = None
    """Map training inputs linearly so that `sum_k x_k x_k^T / n = I`, held-out ones alike; a bias column stays."""

    @property
    def seeded(self) -> bool:
        """Whether the samples of this section depend on the seed."""
        return self.seed is None and self._drawn

    @property
    def _drawn(self) -> bool:
        return self.random or self.random_labels is not None or self.label_noise is not None

    def own(self, streams: Streams) -> Streams:
        """Return the streams of `seed`, or those of the run."""
        return streams if self.seed is None else replace(streams, seed=self.seed)

    def samples(self, streams: Streams) -> Samples:
        """Return the samples of `load`, changed as `whiten`, `random_labels` and `label_noise` say.

        Raises:
            InputError: see `load`; or the inputs span too few directions to be whitened.
        """
        streams = self.own(streams)
        samples = self.load(streams)
        if self.whiten:
            samples = samples.whitened()
        if self.random_labels is None and self.label_noise is None:
            return samples
        rng, y = streams.rng("labels"), samples.y.copy()
        if self.random_labels is not None:
            chosen = rng.permutation(samples.n)[: round(self.random_labels * samples.n)]
            y[chosen] = y[rng.permutation(chosen)]
        if self.label_noise is not None:
            y += self.label_noise * rng.standard_normal(y.shape)
        return replace(samples, y=y)

    def fresh(self, streams: FreshStreams, count: int) -> Samples:
        """Return `count` samples of the same law as those of `load`; of data sets that are `endless`."""
        keys = {"n": count, "n_test": None}
        return self.model_copy(update={k: v for k, v in keys.items() if k in type(self).model_fields}).samples(streams)

    @abstractmethod
    def load(self, streams: Streams) -> Samples:
        """Read or draw the samples; draw from `streams.rng("data")`, which depends on the seed alone.

        Raises:
            DataMissingError: a file is not there; the message says how to get it.
            InputError: the samples cannot be used, or do not fit into memory.
        """

    def sizes(self) -> Sizes | None:
        """Return how many numbers the samples have, where all are drawn and none of the inputs is 0; else None."""
        return None

    def resolve(self) -> Self:
        """Return this section with every `auto` replaced by what it stands for on this machine."""
        return self


class Activation(Kind):
    """A function of one number, applied to every neuron; `activation: tanh` is short for `{kind: tanh}`."""

    section: ClassVar[str] = "activation"
    smooth: ClassVar[bool] = False
    """Whether it has no kinks, so that gradient flow may be integrated to any order."""

    @property
    def negative_slope(self) -> float | None:
        """`alpha` of an activation `max(z, 0) + alpha min(z, 0)`; None for all others."""
        return None

    @abstractmethod
    def value(self, z: Array) -> Array:
        """Return `sigma(z)`, of the shape of `z`: a formula, of which the derivatives and the compiled form are made.

        A value that is no formula is differentiated automatically, and trains by autograd.
        """

    def derivative(self, z: Array) -> Array:
        """Return `sigma'(z)`, of the shape of `z`, an array or a tensor."""
        return self._differentiated(z, 1)

    def second_derivative(self, z: Floats) -> Floats:
        """Return `sigma''(z)`, of the shape of `z`; kinks count as 0."""
        return np.asarray(self._differentiated(z, 2))

    def _differentiated(self, z: Array, order: int) -> Array:
        try:
            return tracing.slopes(self, z, order)
        except formulas.NotAFormulaError:
            return _automatic(self.value, z, order)


def _automatic(function: Callable[[Array], Array], z: Array, order: int) -> Array:
    """Return the derivative of some order of a function of numbers, at an array or a tensor, by autograd."""
    import torch

    tensor = isinstance(z, torch.Tensor)
    with torch.enable_grad():
        at = z if tensor and z.requires_grad else (z if tensor else torch.from_numpy(z)).detach().requires_grad_()
        found = function(at)
        for _ in range(order):
            zero = torch.zeros_like(at)
            found = torch.autograd.grad(found.sum(), at, create_graph=True)[0] if found.requires_grad else zero
    if tensor:
        return found if z.requires_grad else found.detach()
    return found.detach().numpy()


class Architecture(Kind):
    """A network."""

    section: ClassVar[str] = "architecture"
    own_precision: ClassVar[bool] = False
    """Whether functions are evaluated in the precision of the weights instead of in float64."""
    output_scale: Positive | None = None
    """Multiplies the output: `alpha` of lazy training (Chizat et al. 2019, Eq. 2); by default 1."""
    centered: bool | None = None
    """Subtract the output of the initial network, so that the function begins at 0."""
    train: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the weights that are trained, the others stay as initialised (`random features`); by default all."""

    @property
    def between_samples(self) -> bool:
        """Whether inputs are any real numbers, so that the network is a function between samples too."""
        return True

    @property
    def plain(self) -> bool:
        """Whether the network is its kind alone: neither scaled nor centred, nothing frozen."""
        return self.output_scale is None and not self.centered and self.train is None

    def rates(self, shapes: Shapes, *, adaptive: bool) -> Mapping[str, float]:
        """Return name -> factor of the step size of weights whose step is not `optimizer.lr` itself.

        `adaptive` says that updates do not grow with the gradient, as those of Adam.
        """
        return {}

    @abstractmethod
    def build(self, d: int) -> nn.Module:
        """Return the network for inputs (n, d), bias column included; its outputs are (n,), or (n, C) for several.

        The values of its weights do not matter: the initialisation replaces them.

        Raises:
            InputError: the network does not suit the inputs.
        """

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every parameter for inputs of `d` columns; nothing is allocated.

        Raises:
            InputError: the network does not suit the inputs, or has more weights than can be counted.
        """
        import torch

        try:
            with torch.device("meta"):
                model = self.build(d)
        except (RuntimeError, OverflowError, TypeError) as error:  # torch counts in 64 bits
            raise InputError(f"architecture: the network is too large ({str(error).splitlines()[0]})") from error
        return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}

    def refuse_unknown_weights(self, names: Collection[str]) -> None:
        """Refuse a `train` that names a weight that the network, of such `names`, does not have.

        Raises:
            InputError: it does.
        """
        for name in self.train or ():
            if name not in names:
                there = f"it has {', '.join(names)}"
                raise InputError(f"architecture.train: the network has no weight {name!r}; {there}")

    def network(self, d: int, initial: Parameters, dtype: torch.dtype, device: str = "cpu") -> nn.Module:
        """Return the network as it is trained, with its initial weights: scaled, centred, some weights frozen.

        Raises:
            InputError: `train` names a weight that the network does not have.
        """
        import torch

        network = self.build(d).to(device=device, dtype=dtype)
        weights = dict(network.named_parameters())
        self.refuse_unknown_weights(weights)
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(torch.from_numpy(np.array(initial[name])))
                weight.requires_grad_(weight.requires_grad and (self.train is None or name in self.train))
        if self.output_scale is not None or self.centered:
            alpha = 1.0 if self.output_scale is None else self.output_scale
            start = copy.deepcopy(network).requires_grad_(False) if self.centered else None
            network.register_forward_hook(lambda _, x, h: alpha * (h if start is None else h - start(*x)))
        return network

    def loaded(self, parameters: Parameters, d: int, *, strict: bool = True) -> tuple[Any, Any]:
        """Return the network with the given weights, and its dtype; with `strict` all weights must be given."""
        import torch

        tensors = {name: torch.from_numpy(np.array(value)) for name, value in parameters.items()}
        dtype = next(iter(tensors.values())).dtype if self.own_precision else torch.float64
        model = self.build(d).to(dtype)
        model.load_state_dict(tensors, strict=strict)
        return model, dtype

    def evaluation(self, parameters: Parameters, d: int) -> Evaluation:
        """Return `x (n, d) -> h(x)`, (n,) or (n, C) in float64, of the network with the given weights."""
        import torch

        model, dtype = self.loaded(parameters, d)

        def h(x: Floats) -> Floats:
            with torch.no_grad():
                return model(torch.tensor(np.asarray(x), dtype=dtype)).double().numpy()  # type: ignore[no-any-return]

        return h

    def function(self, parameters: Parameters, start: Parameters | None = None) -> Evaluation:
        """Return `x (n, d) -> h(x)` in float64 for the given weights; `d` includes the bias column.

        Many samples are taken in blocks. A centred network needs its initial weights too.
        """
        if self.output_scale is None and not self.centered:
            return self._function(parameters)
        alpha, now = self.output_scale or 1.0, self._function(parameters)
        if not self.centered:
            return lambda x: alpha * now(x)
        if start is None:
            raise InputError("architecture.centered: without its initial weights the function of a network is unknown")
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
            return np.concatenate([at_once(x[first : first + block]) for first in range(0, len(x), block)])

        return h

    def multiply_adds(self, shapes: Shapes, d: int) -> int:
        """Return the multiply-adds that the network takes for one input of `d` columns."""
        return sum(math.prod(shape) for shape in shapes.values())

    def layer_sizes(self, shapes: Shapes, d: int) -> list[int]:
        """Return how many numbers every layer gives for one input of `d` columns."""
        return [shape[0] for shape in shapes.values() if len(shape) > 1]


class Initialization(Kind):
    """Where the initial weights come from."""

    section: ClassVar[str] = "initialization"

    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the initial weights; by default that of the run."""
    rescale: Positive | None = None
    """Multiplies all initial weights; by default 1."""

    @abstractmethod
    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the initial value of every parameter of `problem.shapes`, float64, by name.

        Draw from `streams.rng("initialization")`. `problem.dataset` holds the samples, `problem.loss` the loss.

        Raises:
            InputError: there are no such weights for this network or these data.
        """


class Loss(Kind):
    """A training loss `L = reduce_k l(h(x_k), y_k)`, `reduce` the mean or the sum over samples."""

    section: ClassVar[str] = "loss"
    labels: ClassVar[Labels] = "real"
    """What labels must be."""
    many_outputs: ClassVar[bool] = False
    """Whether the network must have several outputs (True) or one."""
    vector_labels: ClassVar[bool] = False
    """Whether labels may be vectors (n, C), one number for each output."""
    smooth: ClassVar[bool] = True
    """Whether it has no kinks."""
    reduction: Literal["mean", "sum"] = "mean"
    """Mean or sum over the samples."""
    divide_by: Literal["output_scale_squared"] | None = None
    """Divide the loss by `alpha^2`, `alpha = architecture.output_scale` (Chizat et al. 2019, Eq. 2); by default not."""

    def of(self, architecture: Architecture) -> Loss:
        """Return the loss that trains a network: this one, divided as `divide_by` says, derivatives and all."""
        if self.divide_by is None:
            return self
        cls, share = type(self), 1 / (architecture.output_scale or 1.0) ** 2
        body = {
            "__doc__": cls.__doc__,
            "__module__": __name__,
            "values": lambda self, h, y: share * cls.values(self, h, y),
        }
        if cls.derivatives is not Loss.derivatives:
            body["derivatives"] = lambda self, h, y: share * cls.derivatives(self, h, y)
        divided: type[Loss] = new_class(f"Divided{cls.__name__}", (cls,), {}, lambda namespace: namespace.update(body))
        return divided(**self.model_dump())

    @abstractmethod
    def values(self, h: Array, y: Array) -> Array:
        """Return `l(h_k, y_k)` per sample: shape (..., n) from outputs `h` (..., n) and labels `y` (n,).

        Losses of `vector_labels` also take outputs (..., n, C) with labels (n, C). It is a formula: of one output and
        its label, which are summed over the outputs, or, for labels that are classes, of the outputs of a sample.
        """

    def derivatives(self, h: Array, y: Array) -> Array:
        """Return `dl/dh` per sample, of the shape of `h`."""
        try:
            return tracing.loss_slopes(self, h, y)
        except formulas.NotAFormulaError:
            return _automatic(lambda at: self.values(at, _like(at, y)), h, 1)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether the network has one output or, for losses of `many_outputs`, several."""
        architecture = sections.get("architecture")
        outputs = getattr(architecture, "outputs", None)
        if self.divide_by is not None and architecture is not None and architecture.output_scale is None:
            yield ("loss", "divide_by"), "needs architecture.output_scale, the alpha whose square divides the loss"
        if architecture is not None and self.many_outputs and outputs is None and architecture.kind != "gan":
            able = [repr(name) for name, cls in all_kinds("architecture").items() if "outputs" in cls.model_fields]
            needed = f"{self.kind} needs architecture.kind {alternatives(able)} with outputs >= 2"
            yield ("loss", "kind"), f"{needed}; {architecture.kind} has one output"
        if self.many_outputs and outputs == 1:
            yield ("architecture", "outputs"), f"must be the number of classes, >= 2, for the loss {self.kind}, not 1"
        if not (self.many_outputs or self.vector_labels) and outputs is not None and outputs > 1:
            yield ("architecture", "outputs"), f"must be 1 for the loss {self.kind}, not {outputs}"

    def check_written_labels(self, sections: Sections, allowed: Sequence[int] | None, names: str) -> Iterator[Finding]:
        """Yield the first label written in the config that is not allowed; `names` says which are, None all >= 0."""
        for key in ("y", "y_test"):
            labels = getattr(sections.get("dataset"), key, None)
            for place, label in enumerate(labels if isinstance(labels, list) else ()):
                # as an integer: a number with a point would be compared with every member of a range
                if label != int(label) or not (int(label) in allowed if allowed is not None else label >= 0):
                    yield ("dataset", key, place), f"must be {names} for the loss {self.kind}, not {label:g}"
                    break

    def total(self, h: Array, y: Array) -> Array:
        """Return the reduced loss, shape (...)."""
        values = self.values(h, y)
        return values.mean(-1) if self.reduction == "mean" else values.sum(-1)

    def sample_weight(self, n: int) -> float:
        """Return the weight of one of `n` samples in the reduction: 1/n or 1."""
        return 1.0 / n if self.reduction == "mean" else 1.0

    def predictions(self, h: Array) -> Array:
        """Return predicted labels: signs for margin losses, the largest output's number for classes."""
        raise TypeError(f"{type(self).__name__} does not classify")


def _like(array: Array, y: Array) -> Array:
    """Return labels as what `array` is, a tensor or an array."""
    if namespace(array) is np or namespace(y) is not np:
        return y
    return namespace(array).from_numpy(np.ascontiguousarray(y))


class Schedule(Kind):
    """How the step size of an optimizer changes along the run."""

    section: ClassVar[str] = "schedule"

    @abstractmethod
    def factor(self, iteration: int, iterations: int) -> float:
        """Return what multiplies `lr` in the update from state `iteration`, of a run of so many `iterations`."""


class Optimizer(Kind):
    """How a run is trained."""

    section: ClassVar[str] = "optimizer"
    stop_below: NonNegative | None = None
    """Stop at the first recorded loss at or below this value."""

    @abstractmethod
    def count(self, steps_per_epoch: int) -> int:
        """Return the number of the last state of a whole run."""

    def clock(self, iterations: int) -> Clock | None:
        """Return what tells the time along a run; None where time is iterations times the step."""
        return None

    def advice(self) -> str:
        """Return what may help where a run diverges."""
        return ""


class Descent(Optimizer):
    """What optimizers share that take steps from gradients; a new one says `update`.

    A step is `update(parameters, gradients, ...)`; the rest (batches, losses, checkpoints) is done around it.
    """

    adaptive: ClassVar[bool] = False
    """Whether the size of an update does not depend on that of the gradient, as for Adam."""
    lr: Positive
    """Step size."""
    layer_lr: dict[str, NonNegative] | None = None
    """Factors of the step size by the names of weights, such as `{output_weight: 0.1}`; by default 1."""
    schedule: Annotated[Schedule, OneOf("schedule", word=True)] | None = None
    """How the step size changes along the run; by default it does not."""

    def step_size(self, iteration: int, iterations: int) -> float:
        """Return the step of the update from state `iteration` of a run of so many `iterations`."""
        return self.lr if self.schedule is None else self.lr * self.schedule.factor(iteration, iterations)

    def clock(self, iterations: int) -> Clock | None:
        """Return the sums of the steps, where a schedule changes them."""
        from dynamics_cli.config.clocks import GridClock

        if self.schedule is None:
            return None
        steps = np.fromiter((self.step_size(i, iterations) for i in range(iterations)), np.float64, iterations)
        return GridClock(np.concatenate([[0.0], np.cumsum(steps)]))

    def advice(self) -> str:
        """Return a smaller step."""
        return f"Try a smaller step, e.g. --set optimizer.lr={self.lr / 10:.3g}"

    sums_over: ClassVar[Literal["network", "tensor"]] = "network"
    """What `total` sums over in `updated`: all trained weights, or those of a tensor."""

    def updated(self, w: Array, g: Array, memory: MutableMapping[str, Array], step: tracing.StepNumbers) -> Array:
        """Return a weight after an update, given its gradient `g`, what is remembered of it, and numbers of the step.

        A formula. `memory["name"]` is 0 at first, and what was assigned to it in the update before; it is kept in the
        checkpoint. `step` has `lr`, `iteration`, `loss`, and a `memory` of the network (or tensor) as a whole.
        """
        raise NotImplementedError

    @property
    def by_formula(self) -> bool:
        """Whether the update is a formula of one weight."""
        return type(self).updated is not Descent.updated and type(self).update is Descent.update

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
        """Change the `parameters` in place, from state `iteration` to the next: by `updated`, unless a kind says how.

        Args:
            parameters: those that are trained.
            gradients: of the loss, of the same shapes.
            lr: step size of this iteration, the schedule taken into account.
            names: of the parameters.
            state: what the optimizer remembers, empty at first; it is kept in the checkpoint. A key is any text.
            iteration: number of updates done.
            loss: of the batch, before the update.

        """
        tracing.update_tensors(self, parameters, gradients, names, state, tracing.StepNumbers(lr, iteration, loss))


class Minibatch(Descent):
    """What optimizers share that may work on batches; exactly one of `iterations` and `epochs` is given."""

    iterations: PositiveInt | None = None
    """Number of updates."""
    epochs: PositiveInt | None = None
    """Number of passes over the training set."""
    batch_size: PositiveInt | None = None
    """Samples per update; all of them when absent."""
    replacement: bool = False
    """Draw every batch with replacement instead of splitting a permutation per epoch."""
    samples: Literal["fresh"] | None = None
    """`fresh`: every update draws new samples (online); the `n` of the data set are for the recorded loss alone."""

    def count(self, steps_per_epoch: int) -> int:
        """Return the number of updates."""
        return self.iterations if self.iterations is not None else (self.epochs or 0) * steps_per_epoch

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield what is wrong with the length of the run and its batches."""
        if self.iterations is None and self.epochs is None:
            yield ("optimizer", "iterations"), "is missing; exactly one of iterations and epochs must be given"
        if self.iterations is not None and self.epochs is not None:
            yield ("optimizer", "epochs"), "exactly one of iterations and epochs must be given, not both"
        if self.replacement and self.batch_size is None:
            yield ("optimizer", "replacement"), "needs a batch_size: a full batch is not drawn"
        if self.samples == "fresh":
            yield from self._check_fresh(sections.get("dataset"))

    def _check_fresh(self, dataset: Dataset | None) -> Iterator[Finding]:
        """Yield what does not go with fresh samples."""
        if self.batch_size is None:
            yield ("optimizer", "batch_size"), "is missing; fresh samples need their number per update, e.g. 1"
        if self.epochs is not None:
            yield ("optimizer", "epochs"), "there are none of fresh samples; give iterations"
        if self.replacement:
            yield ("optimizer", "replacement"), "does not go with fresh samples, which are never drawn twice"
        if dataset is None:
            return
        if not dataset.endless:
            able = alternatives([repr(name) for name, cls in all_kinds("dataset").items() if cls.endless])  # type: ignore[attr-defined]
            yield ("optimizer", "samples"), f"fresh needs dataset.kind {able}; {dataset.kind} has only its own samples"
        for key in ("whiten", "random_labels"):
            if getattr(dataset, key):
                yield ("dataset", key), "is of the samples as a whole, it does not go with optimizer.samples: fresh"


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The state of a network in training, as a measure sees it.

    A run gives its arrays read-only: NumPy refuses to write to them, and torch to share their memory, where
    `torch.tensor(array)` makes a copy.
    """

    problem: Problem
    """The training problem: config, samples, shapes, loss."""
    parameters: Parameters
    """Weights by name, in the order of the network."""
    _start: Callable[[], Parameters]
    iteration: int
    memory: MutableMapping[str, NDArray[Any]] = field(default_factory=dict)
    """What the measure at work remembers from state to state, empty at first; it is kept in the checkpoint."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What the measures of this state share."""

    @property
    def network(self) -> Callable[[Floats], Floats]:
        """The network as a function `x (n, d) -> h(x)` in float64."""
        if "network" not in self.shared:
            architecture = self.problem.config.architecture
            start = self.start if architecture.centered else None
            self.shared["network"] = architecture.function(self.parameters, start)
        found: Callable[[Floats], Floats] = self.shared["network"]
        return found

    @property
    def start(self) -> Parameters:
        """The initial weights by name."""
        return self._start()


def read_only(arrays: Mapping[str, NDArray[Any]], order: Iterable[str]) -> Mapping[str, Any]:
    """Return views of arrays by name, in an order of the names, that nobody can write to or replace."""
    views = {name: arrays[name].view() for name in order}
    for view in views.values():
        view.flags.writeable = False
    return MappingProxyType(views)


class Snapshots(Kind):
    """When weights and measures are recorded; states 0 and N always are."""

    section: ClassVar[str] = "snapshots"
    fewer: ClassVar[str] = "a schedule of fewer states"
    """What makes them fewer, for a message."""
    include: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(default_factory=list)
    """Iterations kept besides those of the schedule; those after the end of the run are not reached."""

    @abstractmethod
    def next_after(self, iteration: int) -> int | None:
        """Return the next state of the schedule after one of it; None when there is none."""

    def least(self, total: int) -> int:
        """Return a number of states that the schedule has at least up to `total`, known without listing them."""
        return 0

    def regular(self, total: int, most: int) -> array[int]:
        """Return the states 0, ... up to `total` of the schedule, ascending; at most one more than `most` of them."""
        states = array("q")  # eight bytes a state, where a list of integers takes forty
        last: int | None = 0
        while last is not None and last <= total and len(states) <= most:
            states.append(last)
            last = self.next_after(last)
        return states


class Measure(Kind):
    """A number or an array that is recorded beside the weights; the word alone is short for `{kind: word}`."""

    section: ClassVar[str] = "measure"
    by_default: ClassVar[bool] = False
    """Whether it is recorded where a config does not say what is."""
    panel: ClassVar[str] = "measures"
    """The panel that draws it."""
    at: Annotated[Snapshots, OneOf("snapshots", default="geometric")] | None = None
    """When it measures; other recorded states hold NaN. By default at every recorded state."""

    @property
    def name(self) -> str:
        """What its array and its curve are called; two measures of one run need different names."""
        return self.kind

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return the name and value of a line to draw beside the curve, such as `2 / lr` beside the sharpness."""
        return None

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return what several numbers of it are called, for a legend; nothing where shades tell them apart."""
        return ()

    @abstractmethod
    def measure(self, state: State) -> float | Floats:
        """Return what is recorded of a state; of the same shape at every state."""

    def offered(self, problem: Problem) -> bool:
        """Return whether a problem has this measure, such as a loss on held-out samples."""
        return True

    def usual(self, problem: Problem) -> bool:
        """Return whether one that is recorded by default is, of a problem that offers it."""
        return True

    def samples(self, problem: Problem) -> int:
        """Return on how many samples the network is evaluated: what the measure costs."""
        return 0


@dataclass(frozen=True)
class Curve:
    """A quantity of a run, and what a theory predicts for it."""

    label: str
    x: Floats
    """(K,)"""
    measured: Floats
    """(K,), or (K, c) for c numbers each."""
    predicted: Floats
    """Of the same shape; NaN where the theory says nothing."""
    xlabel: str = "iteration"

    @property
    def deviation(self) -> float:
        """Largest `|predicted - measured|` over the largest `|measured|`; NaN where the theory says nothing at all."""
        gap = np.abs(np.asarray(self.predicted, np.float64) - self.measured)
        known = np.isfinite(gap)
        size = float(np.abs(self.measured[known]).max(initial=0.0))
        return float(gap[known].max() / size) if known.any() and size > 0 else math.nan


class Theory(Kind):
    """What a theory predicts of a run: `dyn plot RUN --theory` draws it beside what was measured.

    Papers keep their own in `experiments/<paper>/theory/`. `example` names the sections of a run that it speaks of.
    """

    section: ClassVar[str] = "theory"

    @abstractmethod
    def applies(self, run: Any) -> list[str] | None:
        """Return the assumptions that a run (`runs.Run`) violates; None where the theory is about other networks."""

    @abstractmethod
    def predict(self, run: Any) -> Mapping[str, Floats | Curve]:
        """Return predictions by name: of the recorded `loss` or a measure its values at all its records, or a `Curve`.

        Raises:
            ValueError: nothing can be predicted for this run.
        """
