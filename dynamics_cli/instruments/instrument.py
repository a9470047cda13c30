"""The instrument: a copy of a network, its data and its loss as a problem that is measured."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dynamics_cli import kinds
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError
from dynamics_cli.instruments.data import Data
from dynamics_cli.instruments.losses import own_loss
from dynamics_cli.instruments.modules import freeze_others, model_copy, opened
from dynamics_cli.instruments.network import Given
from dynamics_cli.instruments.obstacles import obstacle, told
from dynamics_cli.kinds import Loss, Measure, Parameters, Problem, State
from dynamics_cli.kinds.torch_optimizers import PRECONDITIONERS, torch_preconditioner
from dynamics_cli.recording.measures import measure_of
from dynamics_cli.training.problem import check_labels


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute in the modes of runs whatever the caller's are, and keep torch's random state.

    Raises InputError: the model or the loss calls `sys.exit()`.
    """
    try:
        with (
            torch.random.fork_rng(),
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
        ):
            yield
    except SystemExit as error:
        raise InputError(f"the model or the loss ended the process: {told(error)}") from error


@dataclass(frozen=True, eq=False, repr=False)
class OwnBuffers(State):
    """A state whose network has buffers of its own, such as running means.

    So has the network of the initial state.
    """

    origin: Callable[[], Problem] = field(kw_only=True)

    @property
    def first(self) -> State:
        """The initial state; it shares nothing with this state."""
        return State(self.origin(), self.start, self._start, 0)


class Instrument:
    """Measures a network at any of its states.

    Vectors that carry over from a state start the next measurement.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Any,
        y: Any,
        *,
        loss: str | Mapping[str, Any] | Loss | Callable[..., Tensor],
        measures: Sequence[str | Mapping[str, Any] | Measure | Callable[[State], Any]],
        start: Any = None,
        parameters: str | Sequence[str] | None = None,
        x_test: Any = None,
        y_test: Any = None,
        optimizer: torch.optim.Optimizer | None = None,
        seed: int = 0,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] | None = None,
    ) -> None:
        """Copy the model, and take data, loss and measures as `measure` does.

        `start` are the initial weights.

        Raises:
            InputError: model, data, loss and measures do not fit together.
            ConfigError: there is no such loss or measure, or it has no such key.
        """
        if dtype is None:
            dtype = "float64" if device == "cpu" else "float32"
        batch_loss = None
        if callable(loss) and next(iter(inspect.signature(loss).parameters), "") == "model":
            batch_loss = loss
            loss = lambda h, y: h  # noqa: E731
        self.data = Data(x, y, x_test, y_test, of_batches=batch_loss is not None)
        n = self.data.trained

        module = model_copy(model, device, getattr(torch, dtype))
        freeze_others(module, parameters)
        self._optimizer = optimizer
        self.tensors = {
            name: given
            for (name, copied), given in zip(
                module.named_parameters(), opened(model).parameters(), strict=True
            )
            if copied.requires_grad
        }
        """The trained tensors of the model itself, which the optimizer knows."""
        self.network = Given.of(module, self.data.inputs, min(n, 2), batch_loss)
        if batch_loss is not None:
            counted = self.network.label_counts(n + self.data.held_out)
            if counted is not None:
                self.data.count_labels(counted)
                loss = _sum_and_count
        config = _config(loss, measures, optimizer, self.network, n, seed=seed, dtype=dtype)
        named = isinstance(loss, str | Mapping | Loss)
        if named and _at_positions(config.loss, self.data.labels, self.network):
            self.data.positions = True
            self.network = self.network.by_positions()
        elif config.loss.labels != "real" and len(self.network._shape) > 1:
            outputs = self.network._shape
            needed = "a row of them, or a label at each position"
            raise InputError(
                f"outputs {outputs} of a sample: the {config.loss.kind} loss needs {needed}"
            )
        self.samples = self.data.samples
        self.config = config.model_copy(update={"architecture": self.network})
        at_once = self.problem(None).block_samples(self.network.device)
        self.network.refuse_mixing(n, 0, at_once)
        self.network.refuse_mixing(self.data.held_out, n, at_once)
        if isinstance(loss, str | Mapping | Loss):
            check_labels(self.samples, self.config.loss, self.config)
        else:
            own = own_loss(loss, self.network, self.data.labels)
            self.config = self.config.model_copy(update={"loss": own})
        self.start = start
        self.measures = self.problem(None).measures
        self.updates = max((measure.updates for measure in self.measures.values()), default=0)
        """How many updates before a state the measures need."""
        self.preconditioned = any(measure.preconditioned for measure in self.measures.values())
        """Whether a measure needs the preconditioner of the optimizer."""
        self.memories: dict[str, dict[str, Any]] = {name: {} for name in self.measures}

    def problem(self, weights: Any) -> Problem:
        """Return the problem of the network with some weights and buffers, by default its own."""
        architecture = self.network
        if weights is not None:
            architecture = architecture.at(weights)
        config = self.config.model_copy(update={"architecture": architecture})
        return Problem(config, self.samples, self.config.loss, architecture.shapes(self.samples.d))

    def preconditioner(self, saved: Mapping[str, Any] | None = None) -> Mapping[str, kinds.Floats]:
        """Return the preconditioner of the optimizer, of now or of a state dict of it; empty where
        no measure needs it.

        Raises InputError: the optimizer does not update all trained weights.
        """
        if not self.preconditioned:
            return {}
        assert self._optimizer is not None
        return torch_preconditioner(self._optimizer, self.tensors, saved)

    @cached_property
    def first(self) -> Problem:
        """The problem of the initial weights.

        Raises InputError: they are not known.
        """
        if self.start is None:
            raise InputError("start is missing: the initial weights, with which a measure compares")
        return self.problem(self.start)

    def at(
        self,
        weights: Any,
        iteration: int,
        names: Iterable[str] | None = None,
        before: Sequence[Any] = (),
        preconditioner: Mapping[str, kinds.Floats] = MappingProxyType({}),
    ) -> Iterator[tuple[str, kinds.Floats]]:
        """Yield name and numbers of each measure of a state, or of the measures of some names.

        `before` are the weights one update ago, two updates ago, ..., where they are known;
        `preconditioner` that of the state.

        Raises InputError: the weights do not fit, or torch cannot compute a measure.
        """
        problem = self.problem(weights)
        shared = dict[str, Any]()
        now = _parameters(problem)
        former = tuple(_parameters(self.problem(given)) for given in before)
        start = lambda: _parameters(self.first)  # noqa: E731
        for name in self.measures if names is None else names:
            measure = self.measures[name]
            state = OwnBuffers(
                problem,
                now,
                start,
                iteration,
                self.memories[name],
                shared,
                former,
                preconditioner=preconditioner,
                origin=lambda: self.first,
            )
            try:
                numbers = np.asarray(measure.measure(state), np.float64)
            except RuntimeError as error:
                # an operation without a derivative, or that cannot be mapped over samples
                raise InputError(f"{name}: {obstacle(error)}") from error
            if doubt := measure.doubt(numbers):
                warnings.warn(f"{name} at iteration {iteration}: {doubt}", stacklevel=5)
            yield name, numbers


def _parameters(problem: Problem) -> Parameters:
    network = problem.config.architecture
    assert isinstance(network, Given)
    return kinds.read_only(network.weights(), problem.shapes)


def _config(
    loss: Any,
    measures: Sequence[Any],
    optimizer: torch.optim.Optimizer | None,
    network: Given,
    n: int,
    *,
    seed: int,
    dtype: str,
) -> kinds.RunConfig:
    """Return a config with the loss and the measures.

    A linear model and data of the same sizes stand in for the network and its data, a class of
    torch for an optimizer whose preconditioner is known.
    """
    outputs = network.outputs or 1
    sizes = {"n": n, "inputs": 1, "outputs": outputs}
    stand_in: dict[str, Any] = {
        "name": "measure",
        "dataset": {"kind": "linear_map", "singular_values": [1.0], **sizes},
        "architecture": {"kind": "fully_connected", "widths": [], "outputs": outputs},
        "loss": {"kind": "mse"},
        "initialization": {"kind": "default_scaled"},
        "optimizer": {"kind": "gd", "lr": 1.0, "iterations": 1},
    }

    optimizer_name = type(optimizer).__name__
    if optimizer_name in PRECONDITIONERS:
        stand_in["optimizer"] = {"kind": "torch", "name": optimizer_name, "iterations": 1}
    if isinstance(loss, str):
        stand_in["loss"] = {"kind": loss}
    elif isinstance(loss, Mapping | Loss):
        stand_in["loss"] = _plain(loss)
    stand_in["record"] = {"measures": [_plain(asked) for asked in measures]}
    try:
        config = load_config(stand_in, seed=seed, dtype=dtype)
    except ConfigError as error:
        if outputs == 1 and any(
            "architecture.outputs" in str(problem) for problem in error.problems
        ):
            needed = (
                "the model has a single output: give the loss that it is trained with, such as"
                ' loss="mse"'
            )
            raise InputError(f"{needed}, not cross_entropy") from error
        raise ConfigError(
            [replace(problem, file="measure") for problem in error.problems]
        ) from error
    return config


def _sum_and_count(h: Tensor, y: Tensor) -> Any:
    """Return the sum of parts of a loss of batches, and of the numbers of labels."""
    return h.sum(), y.sum()


def _at_positions(loss: Loss, labels: Tensor, network: Given) -> bool:
    """Return whether labels are given at each position: classes (n, T) for outputs (T, C) of a
    sample, numbers (n, T, k) for outputs (T, k).
    """
    shape = tuple(labels.shape[1:])
    outputs = network._shape
    if loss.labels == "classes":
        return len(outputs) == 2 and shape == outputs[:1]
    if loss.labels == "signs":
        return len(outputs) == 1 and shape == outputs
    return len(shape) == 2 and shape == outputs


def _plain(asked: Any) -> Any:
    """Return a kind, or a function of a state as a measure, as a config writes it."""
    if callable(asked):
        asked = measure_of(asked)
    if isinstance(asked, kinds.Kind):
        return asked.model_dump(exclude_none=True)
    return asked
