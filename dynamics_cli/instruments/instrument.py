"""The instrument: copies of a network, its data and its loss as problems that are measured."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dynamics_cli import kinds
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import CHECKED
from dynamics_cli.instruments.data import Data
from dynamics_cli.instruments.losses import OwnLoss, copied_loss, own_loss
from dynamics_cli.instruments.modules import freeze_others, model_copy, opened
from dynamics_cli.instruments.network import Given
from dynamics_cli.kinds import Loss, Measure, Parameters, Problem, State
from dynamics_cli.kinds.modules import nodes_of
from dynamics_cli.kinds.torch_optimizers import PRECONDITIONERS, torch_preconditioner
from dynamics_cli.process import one_blas_thread, own_modes
from dynamics_cli.recording.measures import measure_of
from dynamics_cli.text import shorten
from dynamics_cli.training.obstacles import LONGEST, told, torch_obstacle
from dynamics_cli.training.problem import check_labels

FEW = 8
"""Samples by which a loss is tried."""


@contextmanager
def measuring(device: str) -> Iterator[None]:
    """Compute in the modes of runs, whatever modes the calling thread has.

    Settings of torch for the whole process stay the user's: a loop in another thread may be at
    work. NumPy has one thread meanwhile, so that sums do not depend on the number of cores.

    Raises InputError: the model or the loss calls `sys.exit()`.
    """
    try:
        with own_modes(device), one_blas_thread():
            yield
    except SystemExit as error:
        raise InputError(f"the model or the loss ended the process: {told(error)}") from error


@dataclass(frozen=True, eq=False, repr=False)
class WholeState(State):
    """A state whose network is a copy of its own, with the buffers and attributes of its time.

    So have the networks of the states before it, and of the initial state.
    """

    _: KW_ONLY
    former: tuple[Problem, ...]
    """The problems one update ago, two updates ago, ..."""
    origin: Callable[[], Problem]

    @property
    def previous(self) -> State | None:
        """The state one update ago, made once; None where it is not known."""
        if not self.former:
            return None
        if "previous" not in self.shared:
            self.shared["previous"] = replace(
                self,
                problem=self.former[0],
                parameters=self.before[0],
                iteration=self.iteration - 1,
                memory={},
                shared={},
                before=self.before[1:],
                preconditioner={},
                former=self.former[1:],
            )
        previous: State = self.shared["previous"]
        return previous

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
        """Take model, data, loss and measures as `measure` does.

        The model and the loss are copied whole for each state that is measured. `start` are the
        initial weights, or their problem.

        Raises:
            InputError: model, data, loss and measures do not fit together.
            ConfigError: there is no such loss or measure, or it has no such key.
        """
        if dtype is None:
            dtype = "float64" if device == "cpu" else "float32"
        self._batch_loss = None
        if callable(loss) and next(iter(inspect.signature(loss).parameters), "") == "model":
            self._batch_loss = loss
            loss = lambda h, y: h  # noqa: E731
        self.data = Data(x, y, x_test, y_test, of_batches=self._batch_loss is not None)
        n = self.data.trained

        self._model = model
        self._device = device
        self._dtype = getattr(torch, dtype)
        self._patterns = parameters
        self._optimizer = optimizer
        self._frozen: list[str] = []
        self._checked: set[tuple[str, ...]] = set()
        """Trained weights whose second derivatives are right, for the problems of all states."""
        self._looked = 0
        """How many states were looked at for samples that the network mixes."""
        module = self._copy(model)
        self.network = Given.of(module, self.data.inputs, min(n, 2), copied_loss(self._batch_loss))
        self._shapes = self.network.shapes(1)
        self._counted = self._batch_loss is not None and self._count_labels(self.network)
        if self._counted:
            loss = _sum_and_count
        config = _config(loss, measures, optimizer, self.network, n, seed=seed, dtype=dtype)
        self._take_positions(config.loss, named=not callable(loss))
        self.config = config.model_copy(update={"architecture": self.network})
        first = Problem(self.config, self.data.samples, self.config.loss, self._shapes)
        self._at_once = first.block_samples(self.network.device)
        self._refuse_mixing(self.network)
        if callable(loss):
            own = own_loss(loss, self.network, self.data.labels)
            self.config = self.config.model_copy(update={"loss": own})
            self._refuse_weights_of_the_model()
        else:
            check_labels(self.data.samples, self.config.loss, self.config)
        self.start = start
        self.measures = replace(first, config=self.config, loss=self.config.loss).measures
        self.updates = max((measure.updates for measure in self.measures.values()), default=0)
        """How many updates before a state the measures need."""
        self.preconditioned = any(measure.preconditioned for measure in self.measures.values())
        """Whether a measure needs the preconditioner of the optimizer."""
        self.memories: dict[str, dict[str, Any]] = {name: {} for name in self.measures}
        self.trained = self.network.trained
        """Names of the weights that were trained at the state that was measured last."""

    def _count_labels(self, network: Given) -> bool:
        """Count the labels of each sample, and return whether the loss gives (sum, count)."""
        counted = network.label_counts(range(self.data.trained + self.data.held_out))
        if counted is not None:
            self.data.count_labels(counted)
        return counted is not None

    def _take_positions(self, loss: Loss, *, named: bool) -> None:
        """Let the network have outputs at each position where a kind of loss has labels there.

        Raises InputError: outputs and labels do not fit.
        """
        if named and _at_positions(loss, self.data.labels, self.network):
            self.data.positions = True
            self.network = self.network.by_positions()
        elif loss.labels != "real" and len(self.network._shape) > 1:
            outputs = self.network._shape
            needed = "a row of them, or a label at each position"
            raise InputError(f"outputs {outputs} of a sample: the {loss.kind} loss needs {needed}")

    def _copy(self, model: Any) -> nn.Module:
        """Return a whole copy of the model; warn of weights that are frozen."""
        module = model_copy(model, self._device, self._dtype)
        frozen = [name for name, w in module.named_parameters() if not w.requires_grad]
        freeze_others(module, self._patterns)
        if frozen and frozen != self._frozen and self._patterns is None:
            names = shorten(", ".join(frozen), LONGEST)
            warnings.warn(f"weights without requires_grad are left out: {names}", stacklevel=5)
        self._frozen = frozen
        return module

    def problem(self, weights: Any = None) -> Problem:
        """Return the problem of the model, of a module, or with other weights and buffers.

        Raises InputError: they do not fit the model, or the model has other weights than at first.
        """
        as_it_is = isinstance(weights, nn.Module) and type(opened(weights)) is type(
            opened(self._model)
        )
        module = self._copy(weights if as_it_is else self._model)
        network = self.network.of_module(module, copied_loss(self._batch_loss))
        if weights is not None and not as_it_is:
            network.load(weights)
        shapes = network.shapes(1)
        if changed := sorted(dict(shapes.items() ^ self._shapes.items())):
            raise InputError(
                "the network has other weights than the model at first, measure it on its own:"
                f" {shorten(', '.join(changed), LONGEST)}"
            )
        if self._counted:
            some = np.random.default_rng(self._looked).choice(self.data.trained, FEW).tolist()
            counted = network.label_counts(some)
            if counted is not None and not torch.equal(counted, self.data.labels[some]):
                self._count_labels(network)
        trained = [name for name, weight in module.named_parameters() if weight.requires_grad]
        network = network.training(trained)
        loss = self.config.loss
        if isinstance(loss, OwnLoss):
            loss = loss.as_now()
        config = self.config.model_copy(update={"architecture": network, "loss": loss})
        problem = Problem(config, self.data.samples, loss, shapes)
        problem.shared[CHECKED] = self._checked
        return problem

    def preconditioner(
        self, problem: Problem, saved: Mapping[str, Any] | None = None
    ) -> Mapping[str, kinds.Floats]:
        """Return the optimizer's preconditioner for the trained weights of a problem.

        The optimizer is taken as it is, or by its state dict; empty where no measure needs it.

        Raises InputError: the optimizer does not update all trained weights.
        """
        if not self.preconditioned:
            return {}
        assert self._optimizer is not None
        trained = given_network(problem).trained
        # the tensors of the model itself, which the optimizer knows
        named = zip(problem.shapes, opened(self._model).parameters(), strict=True)
        tensors = {name: tensor for name, tensor in named if name in trained}
        return torch_preconditioner(self._optimizer, tensors, saved)

    def _refuse_weights_of_the_model(self) -> None:
        """Refuse a loss that takes weights from the model itself: no derivative sees them.

        Raises InputError: it does.
        """
        problem = self.problem()
        network = given_network(problem)
        h = network.build(1)(network.inputs_of(self.data.samples.x)[:FEW])
        y = torch.tensor(problem.loss.numbered(self.data.samples.y[:FEW]), device=h.device)
        own = {id(weight) for weight in opened(self._model).parameters()}
        if any(
            id(getattr(node, "variable", None)) in own
            for node in nodes_of(problem.loss.total(h, y))
        ):
            raise InputError(
                "the loss takes weights from the model itself, which is measured by a copy: give a"
                " function (model, batch), and take them from its argument"
            )

    def _refuse_mixing(self, network: Given, which: int | None = None) -> None:
        """Refuse a network or a loss that mixes samples; see `Given.refuse_mixing`."""
        n = self.data.trained
        network.refuse_mixing(n, 0, self._at_once, which)
        network.refuse_mixing(self.data.held_out, n, self._at_once, which)

    @cached_property
    def first(self) -> Problem:
        """The problem of the initial weights.

        Raises InputError: they are not known.
        """
        if self.start is None:
            raise InputError("start is missing: the initial weights, with which a measure compares")
        if isinstance(self.start, Problem):
            return self.start
        return self.problem(self.start)

    def at(
        self,
        problem: Problem,
        iteration: int,
        names: Iterable[str] | None = None,
        before: Sequence[Problem] = (),
        preconditioner: Mapping[str, kinds.Floats] = MappingProxyType({}),
    ) -> Iterator[tuple[str, kinds.Floats]]:
        """Yield name and numbers of each measure of a state, or of the measures of some names.

        `before` are the problems one update ago, two updates ago, ..., where they are known;
        `preconditioner` belongs to the state.

        Raises InputError: samples are mixed, or torch cannot compute a measure.
        """
        network = given_network(problem)
        self._refuse_mixing(network, self._looked)
        self._looked += 1
        if network.trained != self.trained:
            self.trained = network.trained
            for memory in self.memories.values():
                memory.clear()  # of vectors of other weights
        shared = dict[str, Any]()
        now = _parameters(problem)
        former = tuple(_training(problem, self.trained) for problem in before)
        origin = lambda: _training(self.first, self.trained)  # noqa: E731
        for name in self.measures if names is None else names:
            measure = self.measures[name]
            state = WholeState(
                problem,
                now,
                lambda: _parameters(self.first),
                iteration,
                memory=self.memories[name],
                shared=shared,
                before=tuple(map(_parameters, former)),
                preconditioner=preconditioner,
                former=former,
                origin=origin,
            )
            try:
                numbers = np.asarray(measure.measure(state), np.float64)
            except RuntimeError as error:
                # an operation without a derivative, or that cannot be mapped over samples
                raise InputError(f"{name}: {torch_obstacle(error)}") from error
            if doubt := measure.doubt(numbers, state):
                warnings.warn(f"{name} at iteration {iteration}: {doubt}", stacklevel=5)
            yield name, numbers


def given_network(problem: Problem) -> Given:
    """Return the network of a problem of an instrument."""
    network = problem.config.architecture
    assert isinstance(network, Given)
    return network


def _training(problem: Problem, names: Collection[str]) -> Problem:
    """Return the problem of another state, which trains the weights that are trained now."""
    network = given_network(problem)
    if network.trained == names:
        return problem
    config = problem.config.model_copy(update={"architecture": network.training(names)})
    return replace(problem, config=config)


def _parameters(problem: Problem) -> Parameters:
    return kinds.read_only(given_network(problem).weights(), problem.shapes)


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
    """Return whether there is a label at each position.

    Classes are (n, T) for outputs (T, C) of a sample, numbers (n, T, k) for outputs (T, k).
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
