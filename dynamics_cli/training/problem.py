"""A training problem: the data, the shapes and initial weights of the network, and the loss of one config."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.bases import Descent, Loss
from dynamics_cli.config.registry import blamed
from dynamics_cli.config.run import RunConfig
from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.samples import Samples
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.memory import block_samples
from dynamics_cli.training.by_hand import check_derivatives


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

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of weights and data."""
        return np.dtype(self.config.dtype)

    @property
    def fresh(self) -> bool:
        """Whether every update draws new samples, and those of the data set are only looked at."""
        return getattr(self.config.optimizer, "samples", None) == "fresh"

    @property
    def steps_per_epoch(self) -> int:
        """Updates in one pass over the training set."""
        return 1 if self.batch_size is None else -(-self.dataset.n // self.batch_size)

    @property
    def iterations(self) -> int:
        """Number of the last state of the whole run: of updates, or of points in time along gradient flow."""
        return self.config.optimizer.count(self.steps_per_epoch)

    @property
    def parameter_count(self) -> int:
        """Number of weights, trained or not."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def convolutional(self) -> bool:
        """Whether there are convolutions, whose last digits depend on the number of threads."""
        return any(len(shape) > 2 for shape in self.shapes.values())

    @cached_property
    def multiply_adds(self) -> int:
        """Multiply-adds of the network for one input."""
        return self.config.architecture.multiply_adds(self.shapes, self.dataset.d)

    @cached_property
    def layer_sizes(self) -> list[int]:
        """How many numbers every layer gives for one input."""
        return self.config.architecture.layer_sizes(self.shapes, self.dataset.d)

    def block_samples(self, device: str) -> int:
        """Return how many samples the network takes at once."""
        return block_samples(self.multiply_adds, sum(self.layer_sizes), device)

    def step_factors(self) -> dict[str, float]:
        """Return name -> factor of the step of weights whose step is not `optimizer.lr` itself.

        Raises:
            InputError: `optimizer.layer_lr` names a weight that the network does not have.
        """
        optimizer = self.config.optimizer
        assert isinstance(optimizer, Descent)
        factors = dict(self.config.architecture.rates(self.shapes, adaptive=optimizer.adaptive))
        for weight, factor in (optimizer.layer_lr or {}).items():
            if weight not in self.shapes:
                raise InputError(f"optimizer.layer_lr: no weight {weight!r}; there are {', '.join(self.shapes)}")
            factors[weight] = factors.get(weight, 1.0) * factor
        return factors

    def initial_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the initial weights in the precision of the run."""
        own = self.config.initialization.seed
        drawn = self.config.initialization.draw(self, Streams(self.config.seed if own is None else own))
        if wrong := _wrong_weights(self.shapes, drawn):
            raise InputError(f"initialization.kind {self.config.initialization.kind}: {wrong}")
        times = self.config.initialization.rescale or 1.0
        return {name: (times * np.asarray(drawn[name], np.float64)).astype(self.dtype) for name in self.shapes}


DRAWN = 2**21
"""Numbers of a data set that are drawn in a moment, 16 MiB."""


@blamed()
def build_problem(config: RunConfig, dataset: Samples | None = None, *, drawn: bool = True) -> Problem:
    """Load or draw the data and check that it fits the loss, the network and the optimizer; nothing big is allocated.

    Args:
        config: the validated config.
        dataset: the config's data set, where it was built before.
        drawn: without it much random data is not drawn; samples of its sizes stand for it, which take no memory.

    Raises:
        DataMissingError: a data file is not there.
        InputError: the data cannot be used.

    """
    config = config.model_copy(update={"dataset": config.dataset.resolve()})
    dataset = samples_of(config, drawn=drawn) if dataset is None else dataset
    check_derivatives(config)
    loss = config.loss.of(config.architecture)
    _check_labels(dataset, loss, config)
    shapes = config.architecture.shapes(dataset.d)
    return Problem(config, dataset, loss, shapes, _batch_size(config, dataset.n))


@blamed()
def samples_of(config: RunConfig, *, drawn: bool = True) -> Samples:
    """Return the data set of a config; unless it is to be `drawn`, one of its sizes for much random data.

    Raises:
        DataMissingError: a data file is not there.
        InputError: the data cannot be used.
    """
    sizes = None if drawn else config.dataset.sizes()
    if sizes is not None and sizes.numbers > DRAWN:
        return sizes.samples()
    return config.dataset.samples(Streams(config.seed))


def label_moments(config: RunConfig) -> tuple[float, float] | None:
    """Return mean and standard deviation of real training labels; None of others, of many, and of missing data."""
    sizes = config.dataset.sizes()
    if config.loss.labels != "real" or (sizes is not None and sizes.numbers > DRAWN):
        return None
    with suppress(DataMissingError, InputError):
        y = samples_of(config).y
        return float(y.mean()), float(y.std())
    return None


def _wrong_weights(shapes: Mapping[str, tuple[int, ...]], drawn: Mapping[str, NDArray[np.floating]]) -> str:
    """Return what is wrong with initial weights; empty when each has the shape that the network needs."""
    for name, shape in shapes.items():
        if name not in drawn:
            return f"it gives no {name}"
        if np.shape(drawn[name]) != shape:
            return f"it gives {name} the shape {np.shape(drawn[name])}, the network needs {shape}"
    return ""


def _batch_size(config: RunConfig, n: int) -> int | None:
    size: int | None = getattr(config.optimizer, "batch_size", None)
    if size is not None and size > n and getattr(config.optimizer, "samples", None) is None:
        raise InputError(f"optimizer.batch_size is {size}, the training set has {n} samples")
    return size


def _check_labels(dataset: Samples, loss: Loss, config: RunConfig) -> None:
    kind = config.loss.kind
    outputs, columns = (
        getattr(config.architecture, "outputs", None) or 1,
        1 if dataset.y.ndim == 1 else dataset.y.shape[1],
    )
    if loss.labels == "real" and outputs != columns:
        needed = f"architecture.outputs: {columns}" if columns > 1 else "vectors of as many numbers, or one output"
        raise InputError(
            f"dataset: labels of {columns} numbers beside {outputs} outputs; the {kind} loss needs {needed}"
        )
    if loss.labels != "real" and columns > 1:
        raise InputError(f"dataset: labels are vectors of {columns} numbers, the {kind} loss needs one label a sample")
    for y, name in ((dataset.y, "y"), (dataset.y_test, "y_test")):
        if y is None or loss.labels == "real":
            continue
        if loss.labels == "signs":
            allowed, needed = np.isin(y, [-1.0, 1.0]), "-1 or 1"
        else:
            C = outputs
            allowed, needed = (y >= 0) & (y < C) & (y == np.floor(y)), f"a class number 0..{C - 1}"
        if not allowed.all():
            k = int(np.argmin(allowed))
            raise InputError(f"dataset: {name}[{k}] is {y[k]:g}, the {kind} loss needs {needed}")
