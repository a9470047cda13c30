"""The config of a run, the training problem made of it, and its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds.arrays import AVERAGE, Floats, Parameters, Shapes
from dynamics_cli.kinds.base import PositiveInt, Section
from dynamics_cli.kinds.data import Dataset, Samples
from dynamics_cli.kinds.initializations import Initialization
from dynamics_cli.kinds.losses import Loss
from dynamics_cli.kinds.measures import Measure
from dynamics_cli.kinds.networks import Architecture
from dynamics_cli.kinds.optimizers import Optimizer
from dynamics_cli.kinds.pictures import Whole
from dynamics_cli.kinds.registry import OneOf, get_kind, loaded_kinds
from dynamics_cli.kinds.snapshots import Iterations, Snapshots, snapshot_iterations
from dynamics_cli.kinds.streams import Streams
from dynamics_cli.memory import block_samples

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _geometric() -> Snapshots:
    return get_kind("snapshots", "geometric")()  # type: ignore[return-value]


class Record(Section):
    """The contents of the run directory."""

    example = (
        "record: {snapshots: {kind: every, interval: 100}, measures: [weight_norm, sharpness],"
        " loss_every: 10}\n"
    )
    snapshots: Annotated[Snapshots, OneOf("snapshots", default="geometric")] = Field(
        default_factory=_geometric
    )
    """When parameters and measures are recorded."""
    parameters: Literal["all", "none"] | list[str] = "all"
    """Which parameters are recorded: all, none, or a list of names."""
    measures: list[Annotated[Measure, OneOf("measure", word=True)]] | None = None
    """Which measures are recorded (default: those that the loss and the data set offer, e.g.
    accuracies).
    """
    loss_every: PositiveInt | None = None
    """Iterations between two recorded losses (default: 1 for full batch, an epoch otherwise)."""
    checkpoints: PositiveInt | list[PositiveInt] | None = None
    """States from which another run can go on (see `changes`): those listed, or every k-th; by
    default none is kept.
    """
    limit_gib: Annotated[float, Field(gt=0)] = 4.0
    """Refuse a run whose recording is estimated above this size, in GiB."""


class Change(Section):
    """What is changed on the way: `at` is the last state before it.

    Only the keys that are given change: `optimizer.lr: 0.02` is short for `optimizer: {lr: 0.02}`.
    A data set or a loss with a `kind` takes the place of the one before.
    """

    example = """\
changes:
  - {at: 500, optimizer.lr: 0.02}
  - {at: 800, freeze: [hidden_weight], scale: {output_weight: 2.0}}
"""
    at: PositiveInt
    """The last state before the change; it is always recorded."""
    dataset: dict[str, Any] | None = None
    """Another data set, or other keys of it; inputs and labels keep their shapes."""
    loss: dict[str, Any] | None = None
    """Another loss, or other keys of it."""
    optimizer: dict[str, Any] | None = None
    """Another optimizer, or other keys of it; settings that are not named stay, and so does the
    memory where the formula stays.
    """
    record: dict[str, Any] | None = None
    """`snapshots` and `loss_every` from here on."""
    freeze: list[str] | None = None
    """The weights that are not trained from here on, instead of an earlier change's; `[]`
    trains all again.
    """
    reset: dict[str, float] | None = None
    """Weights that are set to a number, each entry of them."""
    scale: dict[str, float] | None = None
    """Weights that are multiplied by a number."""


class RunConfig(Section):
    """Everything that determines a run; the same config is the same run."""

    recorded: Literal[True] | dict[str, Any] | None = None
    """Written by `dyn.Recorder`: a training loop outside of `dyn` made the run, which `dyn
    train` cannot repeat. Of a job of a sweep: the function, the SHA-256 of its source, and its
    settings.
    """
    name: Name
    """Opens the name of the run directory."""
    seed: Seed = 0
    """Root of three independent random streams: data, initialisation, batches."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; `auto` takes a GPU for iterations of more than 1e8 multiply-adds."""
    backend: Literal["auto", "torch", "torch_compile", "compiled"] = "auto"
    """The code that trains; `auto`: compiled on a CPU for networks of layers, `torch` (the
    reference) otherwise. `torch_compile` is `torch` with the network compiled by `torch.compile`,
    which takes 5 to 30 seconds, and rounds in other ways.
    """
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of weights and data."""
    dataset: Annotated[Dataset, OneOf("dataset")]
    architecture: Annotated[Architecture, OneOf("architecture")]
    initialization: Annotated[Initialization, OneOf("initialization")]
    loss: Annotated[Loss, OneOf("loss")]
    optimizer: Annotated[Optimizer, OneOf("optimizer")]
    record: Record = Field(default_factory=Record)
    changes: Annotated[list[Change], Field(min_length=1)] | None = None
    """What is changed on the way, in the order of the states; by default nothing."""
    pictures: dict[Name, Whole] | None = Field(None, exclude=True)  # no part of what is computed
    """Pictures by name, which `dyn plot RUN --panel NAME` draws of this run."""


@dataclass(frozen=True)
class Problem:
    """Everything that a stepper starts from."""

    config: RunConfig
    """The config, its data set resolved: it names the source that was used, never `auto`."""
    dataset: Samples
    loss: Loss
    shapes: Mapping[str, tuple[int, ...]]
    """name -> shape of every parameter, trained or not."""
    batch_size: int | None = field(default=None)
    """Samples per update; None for the full batch."""
    start: Parameters | None = field(default=None, repr=False, compare=False)
    """The weights with which training goes on after a change; None at the beginning of a run."""
    resting: tuple[str, ...] = ()
    """Weights that a change has frozen: `architecture.train` leaves them out, the optimizer keeps
    its memory of them.
    """
    shared: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Intermediate results that all states of the problem share."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of weights and data."""
        return np.dtype(self.config.dtype)

    @property
    def fresh(self) -> bool:
        """Whether every update draws new samples, and the data set only serves to evaluate."""
        return getattr(self.config.optimizer, "samples", None) == "fresh"

    @property
    def steps_per_epoch(self) -> int:
        """Updates in a pass over the training set."""
        n = self.dataset.n
        size = self.batch_size or n
        if getattr(self.config.optimizer, "drop_last", None):
            return n // size
        return -(-n // size)

    @property
    def smallest_batch(self) -> int:
        """Samples of the last update of an epoch, which may be fewer than in other updates."""
        n = self.dataset.n
        size = self.batch_size or n
        drawn = self.fresh or getattr(self.config.optimizer, "replacement", False)
        if drawn or self.steps_per_epoch * size <= n:
            return size
        return n % size

    @property
    def iterations(self) -> int:
        """Number of the last state of the run: of updates, or of times along gradient flow."""
        return self.config.optimizer.count(self.steps_per_epoch)

    @property
    def outputs(self) -> int:
        """Numbers that the network gives for a sample, at all positions."""
        each = getattr(self.config.architecture, "outputs", None) or 1
        return each * (self.dataset.y.shape[1] if self.dataset.positions else 1)

    @property
    def parameter_count(self) -> int:
        """Number of weights, trained or not."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def threaded_work(self, samples: int) -> int | None:
        """Return the multiply-adds of the network for samples, which decide on torch's threads.

        None with convolutions, whose last digits depend on the number of threads for any work.
        """
        if any(len(shape) > 2 for shape in self.shapes.values()):
            return None
        return samples * self.multiply_adds

    @cached_property
    def buffers(self) -> Mapping[str, NDArray[Any]]:
        """The initial buffers of the network by name; see `Architecture.buffers`."""
        found = self.config.architecture.buffers(self.dataset.d)
        for name, buffer in found.items():
            if buffer.dtype.kind == "f":
                found[name] = buffer.astype(self.dtype)
        return found

    @property
    def averages(self) -> Shapes:
        """The shapes of the averages of the weights, by `average.NAME`.

        There are none unless `optimizer.average` keeps them.
        """
        if getattr(self.config.optimizer, "average", None) is None:
            return {}
        return {f"{AVERAGE}{name}": shape for name, shape in self.shapes.items()}

    @cached_property
    def has_modes(self) -> bool:
        """Whether the network in training differs from that in evaluation."""
        return self.config.architecture.has_modes(self.dataset.d)

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """The measures that the config asks for, or those that are recorded by default, by name.

        Raises:
            InputError: the config asks for a measure that this problem does not offer.
        """
        wanted = self.config.record.measures
        if wanted is None:
            return self._measures_by_default()

        named: dict[str, Measure] = {}
        for measure in wanted:
            if not measure.offered(self):
                why = f", it needs {measure.needs}" if measure.needs else ""
                raise InputError(f"record.measures: no measure {measure.kind!r} here{why}")
            if measure.name in named:
                raise InputError(f"record.measures: {measure.name} is there twice")
            named[measure.name] = measure
        return named

    def _measures_by_default(self) -> dict[str, Measure]:
        named = {}
        for cls in loaded_kinds("measure").values():
            if issubclass(cls, Measure) and cls.by_default:
                measure = cls()
                if measure.offered(self) and measure.usual(self):
                    named[measure.name] = measure
        return named

    @cached_property
    def recorded_states(self) -> Iterations:
        """The states that are recorded: by `record.snapshots`, and where measures are due.

        Raises:
            InputError: these would be too many to be recorded.
        """
        schedules = [self.config.record.snapshots]
        schedules += [measure.at for measure in self.measures.values() if measure.at is not None]
        return reduce(np.union1d, [snapshot_iterations(at, self.iterations) for at in schedules])

    @property
    def kept_states(self) -> Iterations:
        """The states whose checkpoints are kept, by `record.checkpoints`."""
        wanted = self.config.record.checkpoints or []
        if isinstance(wanted, int):
            wanted = range(wanted, self.iterations, wanted)  # type: ignore[assignment]
        return np.unique([i for i in wanted if i < self.iterations]).astype(np.int64)  # type: ignore[union-attr]

    @cached_property
    def multiply_adds(self) -> int:
        """Multiply-adds of the network for an input."""
        return self.config.architecture.multiply_adds(self.shapes, self.dataset.d)

    @cached_property
    def layer_sizes(self) -> list[int]:
        """How many numbers every layer gives for an input."""
        return self.config.architecture.layer_sizes(self.shapes, self.dataset.d)

    def block_samples(self, device: str) -> int:
        """Return how many samples the network takes at once."""
        return block_samples(self.multiply_adds, sum(self.layer_sizes), device)

    def step_factors(self) -> Mapping[str, float]:
        """Return name -> factor of the step of weights whose step is not `optimizer.lr` itself.

        Raises:
            InputError: `optimizer.layer_lr` names a weight that the network does not have.
        """
        given: Mapping[str, float] = getattr(self.config.optimizer, "layer_lr", None) or {}
        factors: dict[str, float] = {}
        for pattern, factor in given.items():
            matched = [name for name in self.shapes if fnmatchcase(name, pattern)]
            if not matched:
                raise InputError(
                    f"optimizer.layer_lr: no weight {pattern!r}; there are {', '.join(self.shapes)}"
                )
            factors |= dict.fromkeys(matched, factor)
        named = {name: factor for name, factor in given.items() if name in self.shapes}
        return factors | named

    def starting_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the weights from which training goes on: initially, or at a change.

        Measures, and networks that subtract their initial outputs, take the initial ones.
        """
        if self.start is None:
            return self.initial_parameters()
        return {name: np.array(self.start[name]) for name in self.shapes}

    def initial_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the initial weights in the precision of the run."""
        section = self.config.initialization
        seed = self.config.seed
        if section.seed is not None:
            seed = section.seed
        drawn = section.draw(self, Streams(seed))
        for name, shape in self.shapes.items():
            if name not in drawn:
                raise InputError(f"initialization.kind {section.kind}: it gives no {name}")
            if np.shape(drawn[name]) != shape:
                told = f"{np.shape(drawn[name])}, the network needs {shape}"
                raise InputError(
                    f"initialization.kind {section.kind}: it gives {name} the shape {told}"
                )
        times = section.rescale or 1.0
        return {
            name: (times * np.asarray(drawn[name], np.float64)).astype(self.dtype)
            for name in self.shapes
        }


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The state of a network in training, as a measure sees it.

    A run gives its arrays read-only: NumPy refuses to write to them, and torch to share their
    memory, where `torch.tensor(array)` makes a copy.
    """

    problem: Problem
    """The training problem: config, samples, shapes, loss."""
    parameters: Parameters
    """Weights by name, in the order of the network."""
    _start: Callable[[], Parameters]
    iteration: int
    _: KW_ONLY
    memory: MutableMapping[str, NDArray[Any]] = field(default_factory=dict)
    """The memory of the measure at work from state to state, empty at first; it is kept in the
    checkpoint.
    """
    shared: dict[str, Any] = field(default_factory=dict)
    """Intermediate results that the measures of this state share."""
    before: tuple[Parameters, ...] = ()
    """Weights and buffers one update ago, two updates ago, ..., where a measure asks for them
    (`updates`) and they are known.
    """
    buffers: Parameters = field(default_factory=dict)
    """The buffers of the network by name, such as running means."""
    preconditioner: Parameters = field(default_factory=dict)
    """Diagonal P of `w <- w - lr P^-1 m` by the names of trained weights, where a measure asks for
    it (`preconditioned`) and it is known; empty otherwise.
    """
    averages: Parameters = field(default_factory=dict)
    """The averages of the weights, by the names of the weights, where `optimizer.average` keeps
    them.
    """

    @property
    def averaged(self) -> State:
        """The state with the averages as its weights, made once.

        Raises:
            InputError: the run keeps no averages.
        """
        if not self.averages:
            raise InputError("average: true needs optimizer.average, which keeps the averages")
        if "averaged" not in self.shared:
            self.shared["averaged"] = replace(
                self,
                parameters=self.averages,
                memory={},
                shared={},
                before=(),
                preconditioner={},
                averages={},
            )
        averaged: State = self.shared["averaged"]
        return averaged

    @property
    def previous(self) -> State | None:
        """The state one update ago, made once; None where its weights are not known."""
        if not self.before:
            return None
        if "previous" not in self.shared:
            self.shared["previous"] = replace(
                self,
                parameters=read_only(self.before[0], self.problem.shapes),
                buffers=read_only(self.before[0], self.buffers),
                iteration=self.iteration - 1,
                memory={},
                shared={},
                before=self.before[1:],
                preconditioner={},
                averages={},
            )
        previous: State = self.shared["previous"]
        return previous

    @property
    def network(self) -> Callable[[Floats], Floats]:
        """The network in evaluation mode as a function `x (n, d) -> h(x)` in float64."""
        if "network" not in self.shared:
            architecture = self.problem.config.architecture
            start = None
            if architecture.centered:
                start = self.start
            now = {**self.parameters, **self.buffers}
            self.shared["network"] = architecture.function(now, start)
        network: Callable[[Floats], Floats] = self.shared["network"]
        return network

    @property
    def start(self) -> Parameters:
        """The initial weights by name."""
        return self._start()

    @property
    def first(self) -> State:
        """The initial state; it shares nothing with this state."""
        return State(self.problem, self.start, self._start, 0)


def read_only(arrays: Mapping[str, NDArray[Any]], order: Iterable[str]) -> Mapping[str, Any]:
    """Return read-only views of arrays by name, in an order of the names."""
    views = {name: arrays[name].view() for name in order}
    for view in views.values():
        view.flags.writeable = False
    return MappingProxyType(views)
