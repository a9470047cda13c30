"""Measures that runs record."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynamics_cli.config.bases import Floats, Measure, State
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.training.problem import Problem


class WeightNorm(Measure, kind="weight_norm"):
    """Euclidean norm of all weights together."""

    def measure(self, state: State) -> float:
        """Return `||theta||`."""
        squares = (float(np.sum(np.square(value, dtype=np.float64))) for value in state.parameters.values())
        return float(np.sqrt(sum(squares)))


def classifies(problem: Problem) -> bool:
    """Return whether labels are classes: those of the loss, or real ones that are all ±1, or one-hot vectors."""
    y = problem.dataset.y
    if problem.loss.labels != "real":
        return True
    return bool(np.isin(y, [0.0, 1.0]).all() and (y.sum(-1) == 1).all()) if y.ndim == 2 else bool((abs(y) == 1).all())


def right(problem: Problem, h: Floats, y: Floats) -> float:
    """Return the share of outputs `h` (n,) or (n, C) that are classified as their labels `y` say."""
    if problem.loss.labels != "real":
        return float(np.mean(problem.loss.predictions(h) == y))
    return float(np.mean(h.argmax(-1) == y.argmax(-1) if y.ndim == 2 else np.sign(h) == y))


class TrainAccuracy(Measure, kind="train_accuracy"):
    """Share of the training samples that the network classifies as they are labelled.

    Real labels are classes where all are ±1, or one-hot vectors; the sign or the largest output counts then.
    """

    example = """\
loss: {kind: logistic}
record: {measures: [train_accuracy]}
"""
    by_default = True

    def offered(self, problem: Problem) -> bool:
        """Return whether the labels are classes."""
        return classifies(problem)

    def usual(self, problem: Problem) -> bool:
        """Return whether the loss is one of classes."""
        return problem.loss.labels != "real"

    def measure(self, state: State) -> float:
        """Return the accuracy, from 0 to 1."""
        samples = state.problem.dataset
        return right(state.problem, state.network(samples.x), samples.y)

    def samples(self, problem: Problem) -> int:
        """Return the number of training samples."""
        return problem.dataset.n


class HeldOut(Measure):
    """What measures on held-out samples share."""

    by_default = True

    def offered(self, problem: Problem) -> bool:
        """Return whether there are held-out samples."""
        return problem.dataset.y_test is not None

    def samples(self, problem: Problem) -> int:
        """Return the number of held-out samples."""
        return 0 if problem.dataset.y_test is None else len(problem.dataset.y_test)


class TestLoss(HeldOut, kind="test_loss"):
    """Loss of the held-out samples."""

    example = """\
dataset: {kind: linear_teacher, n: 100, dim: 10, n_test: 100}
record: {measures: [test_loss]}
"""

    def measure(self, state: State) -> float:
        """Return the loss, reduced as that of the training samples."""
        samples, loss = state.problem.dataset, state.problem.loss
        assert samples.x_test is not None
        assert samples.y_test is not None
        labels = samples.y_test.astype(np.int64) if loss.labels == "classes" else samples.y_test
        return float(loss.total(state.network(samples.x_test), labels))


class TestAccuracy(HeldOut, kind="test_accuracy"):
    """Share of the held-out samples that the network classifies as they are labelled."""

    example = """\
dataset: {kind: linear_teacher, n: 100, dim: 10, n_test: 100}
loss: {kind: logistic}
record: {measures: [test_accuracy]}
"""

    def offered(self, problem: Problem) -> bool:
        """Return whether there are held-out samples, and labels are classes."""
        return super().offered(problem) and classifies(problem)

    def usual(self, problem: Problem) -> bool:
        """Return whether the loss is one of classes."""
        return problem.loss.labels != "real"

    def measure(self, state: State) -> float:
        """Return the accuracy, from 0 to 1."""
        samples = state.problem.dataset
        assert samples.x_test is not None
        assert samples.y_test is not None
        return right(state.problem, state.network(samples.x_test), samples.y_test)


def measure_of(function: Callable[[State], Any]) -> Measure:
    """Return a measure that records what a function makes of a state (see `bases.State`), under the function's name.

    Raises:
        InputError: the function has no source that can be read, so a run of it could not be told from another.
    """
    name = function.__name__
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise InputError(f"the measure {name} has no source that can be read; write it to a file") from error
    body = {
        "__doc__": function.__doc__ or f"What the function {name} gives.",
        "__module__": function.__module__,
        "__qualname__": name,
        "source_text": text,
        "__annotations__": {"source_text": ClassVar[str]},
        "measure": lambda self, state: function(state),
    }
    cls: type[Measure] = types.new_class(name, (Measure,), {"kind": name}, lambda namespace: namespace.update(body))
    return cls()
