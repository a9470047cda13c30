"""A training problem: the data, the shapes and initial weights of the network, and the loss of one config."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.architectures import layer_sizes, multiply_adds, parameter_shapes
from dynamics_cli.architectures.blocks import block_samples
from dynamics_cli.config.optimizer import Adam, GradientDescent, GradientFlow, StochasticGradientDescent
from dynamics_cli.config.run import RunConfig
from dynamics_cli.datasets import Dataset, build_dataset, resolve_dataset
from dynamics_cli.errors import InputError
from dynamics_cli.losses import Loss, get_loss
from dynamics_cli.training.initialization import initial_parameters


@dataclass(frozen=True)
class Problem:
    """Everything that a stepper starts from."""

    config: RunConfig
    """The config, its data set resolved: it names the source that was used, never `auto`."""
    dataset: Dataset
    loss: Loss
    shapes: dict[str, tuple[int, ...]]
    """name -> shape of every parameter, trained or not."""
    batch_size: int | None = field(default=None)
    """Samples per update; None for the full batch."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of weights and data."""
        return np.dtype(self.config.dtype)

    @property
    def steps_per_epoch(self) -> int:
        """Updates in one pass over the training set."""
        return 1 if self.batch_size is None else -(-self.dataset.n // self.batch_size)

    @property
    def iterations(self) -> int:
        """Number of the last state of the whole run: of updates, or of points in time along gradient flow."""
        optimizer = self.config.optimizer
        if isinstance(optimizer, GradientFlow):
            return optimizer.points
        if optimizer.iterations is not None:
            return optimizer.iterations
        assert not isinstance(optimizer, GradientDescent)
        return (optimizer.epochs or 0) * self.steps_per_epoch

    @property
    def parameter_count(self) -> int:
        """Number of weights, trained or not."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @cached_property
    def multiply_adds(self) -> int:
        """Multiply-adds of the network for one input."""
        return multiply_adds(self.config.architecture, self.shapes, self.dataset.d)

    @cached_property
    def layer_sizes(self) -> list[int]:
        """How many numbers every layer gives for one input."""
        return layer_sizes(self.config.architecture, self.shapes, self.dataset.d)

    def block_samples(self, device: str) -> int:
        """Return how many samples the network takes at once."""
        return block_samples(self.multiply_adds, sum(self.layer_sizes), device)

    def initial_parameters(self) -> dict[str, NDArray[np.floating]]:
        """Return the initial weights in the precision of the run."""
        drawn = initial_parameters(self.config, self.shapes, self.dataset.input_dim, dataset=self.dataset)
        return {name: value.astype(self.dtype) for name, value in drawn.items()}


def build_problem(config: RunConfig, dataset: Dataset | None = None) -> Problem:
    """Load or draw the data and check that it fits the loss, the network and the optimizer; nothing big is allocated.

    Args:
        config: the validated config.
        dataset: the config's data set, where it was built before.

    Raises:
        DataMissingError: a data file is not there.
        InputError: the data cannot be used.

    """
    config = config.model_copy(update={"dataset": resolve_dataset(config.dataset)})
    dataset = build_dataset(config.dataset, config.seed) if dataset is None else dataset
    loss = get_loss(config.loss)
    _check_labels(dataset, loss, config)
    shapes = parameter_shapes(config.architecture, dataset.d)
    return Problem(config, dataset, loss, shapes, _batch_size(config, dataset.n))


def _batch_size(config: RunConfig, n: int) -> int | None:
    optimizer = config.optimizer
    if not isinstance(optimizer, StochasticGradientDescent | Adam) or optimizer.batch_size is None:
        return None
    if optimizer.batch_size > n:
        raise InputError(f"optimizer.batch_size is {optimizer.batch_size}, the training set has {n} samples")
    return optimizer.batch_size


def _check_labels(dataset: Dataset, loss: Loss, config: RunConfig) -> None:
    kind = config.loss.kind
    for y, name in ((dataset.y, "y"), (dataset.y_test, "y_test")):
        if y is None or loss.labels == "real":
            continue
        if loss.labels == "signs":
            allowed, needed = np.isin(y, [-1.0, 1.0]), "-1 or 1"
        else:
            C = getattr(config.architecture, "outputs", 1)
            allowed, needed = (y >= 0) & (y < C) & (y == np.floor(y)), f"a class number 0..{C - 1}"
        if not allowed.all():
            k = int(np.argmin(allowed))
            raise InputError(f"dataset: {name}[{k}] is {y[k]:g}, the {kind} loss needs {needed}")
