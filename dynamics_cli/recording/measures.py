"""Measures that runs record."""

from __future__ import annotations

import inspect
import types
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, OneOf, Problem, Sections, State


class WeightNorm(Measure, kind="weight_norm"):
    """Euclidean norm of all weights together."""

    def measure(self, state: State) -> float:
        """Return `||theta||`."""
        squares = (float(np.sum(np.square(value, dtype=np.float64))) for value in state.parameters.values())
        return float(np.sqrt(sum(squares)))


def classifies(problem: Problem) -> bool:
    """Return whether labels are classes: of the loss, or real labels that are all ±1, or one-hot vectors."""
    y = problem.dataset.y
    if problem.loss.labels != "real":
        return True
    return bool(np.isin(y, [0.0, 1.0]).all() and (y.sum(-1) == 1).all()) if y.ndim == 2 else bool((abs(y) == 1).all())


def right(problem: Problem, h: Floats, y: Floats) -> float:
    """Return the share of outputs `h` (n,) or (n, C) that are classified as their labels `y` say."""
    if problem.loss.labels != "real":
        return float(np.mean(problem.loss.predictions(h) == y))
    return float(np.mean(h.argmax(-1) == y.argmax(-1) if y.ndim == 2 else np.sign(h) == y))


class OfSamples(Measure):
    """The base of losses and accuracies: their samples, all together, class by class, or replaced labels apart."""

    needs = "a single network; by class, labels that are classes"
    held_out: ClassVar[bool] = False
    """Whether it is of the held-out samples and not of the training samples."""
    by_class: bool | None = None
    """Measure the samples of each class by themselves; by default all together. Labels are classes, ±1, or one-hot."""
    by_replaced: bool | None = None
    """Measure training samples that keep their label and those of `dataset.replaced_labels` by themselves."""

    @property
    def name(self) -> str:
        """The kind, and whether it is by class or by replaced labels."""
        if self.by_replaced:
            return f"{self.kind}_by_replaced"
        return f"{self.kind}_by_class" if self.by_class else self.kind

    def offered(self, problem: Problem) -> bool:
        """Return whether there are such samples, of classes where it is by class, some replaced where by these."""
        there = not self.held_out or problem.dataset.y_test is not None
        if self.by_replaced:
            there = bool(problem.config.dataset.replaced_labels) and not (self.held_out or self.by_class)
        return there and not problem.config.architecture.players and (not self.by_class or classifies(problem))

    def samples(self, problem: Problem) -> int:
        """Return the number of samples."""
        return 0 if (y := self._chosen(problem)[1]) is None else len(y)

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the parts: classes, by numbers from 0 on or the labels -1 and 1, or kept and replaced."""
        if self.by_replaced:
            return ("kept", "replaced")
        if not self.by_class:
            return ()
        outputs = getattr(sections["architecture"], "outputs", None) or 1
        several = sections["loss"].labels == "classes" or outputs > 1
        return [f"class {label}" for label in (range(outputs) if several else (-1, 1))]

    @abstractmethod
    def of(self, problem: Problem, h: Floats, y: Floats) -> float:
        """Return the number for outputs `h` (n,) or (n, C) and labels `y`."""

    def measure(self, state: State) -> float | Floats:
        """Return the number, or the numbers (C,) of the parts; NaN for a part without samples."""
        x, y = self._chosen(state.problem)
        assert x is not None
        assert y is not None
        key = f"outputs, held out: {self.held_out}"
        if key not in state.shared:
            state.shared[key] = state.network(x)
        h = state.shared[key]
        if self.by_replaced:
            of_sample = np.asarray(state.problem.dataset.replaced)
        elif self.by_class:
            of_sample = y.argmax(-1) if y.ndim == 2 else y if state.problem.loss.labels == "classes" else (y + 1) / 2
        else:
            return self.of(state.problem, h, y)
        parts = [of_sample == c for c in range(len(self.columns(dict(state.problem.config))))]
        return np.array([self.of(state.problem, h[part], y[part]) if part.any() else np.nan for part in parts])

    def _chosen(self, problem: Problem) -> tuple[Floats | None, Floats | None]:
        samples = problem.dataset
        return (samples.x_test, samples.y_test) if self.held_out else (samples.x, samples.y)


class TrainLoss(OfSamples, kind="train_loss"):
    """Loss of the training samples at the recorded states, beyond the array `losses`: by class, with a schedule.

    Of a class it is reduced over the samples of that class alone, so that a mean over classes is weighted alike.
    """

    example = """\
loss: {kind: logistic}
record: {measures: [{kind: train_loss, by_class: true}]}
"""

    def of(self, problem: Problem, h: Floats, y: Floats) -> float:
        """Return the loss, reduced as that of the training samples."""
        return float(problem.loss.total(h, problem.loss.numbered(y)))


class TestLoss(TrainLoss, kind="test_loss"):
    """Loss of the held-out samples, all together or by class."""

    example = """\
dataset: {kind: linear_teacher, n: 100, dim: 10, n_test: 100}
record: {measures: [test_loss]}
"""
    needs = "held-out samples; by class, of classes"
    by_default = True
    held_out = True


class TrainAccuracy(OfSamples, kind="train_accuracy"):
    """Share of the training samples that the network classifies as they are labelled.

    Real labels are classes where all are ±1, or one-hot vectors; the sign or the largest output counts then.
    """

    example = """\
loss: {kind: logistic}
record: {measures: [train_accuracy]}
"""
    needs = "labels that are classes"
    by_default = True

    def offered(self, problem: Problem) -> bool:
        """Return whether there are such samples, and labels are classes."""
        return super().offered(problem) and classifies(problem)

    def usual(self, problem: Problem) -> bool:
        """Return whether the labels are classes."""
        return problem.loss.labels != "real"

    def of(self, problem: Problem, h: Floats, y: Floats) -> float:
        """Return the accuracy, from 0 to 1."""
        return right(problem, h, y)


class TestAccuracy(TrainAccuracy, kind="test_accuracy"):
    """Share of the held-out samples that the network classifies as they are labelled."""

    example = """\
dataset: {kind: linear_teacher, n: 100, dim: 10, n_test: 100}
loss: {kind: logistic}
record: {measures: [test_accuracy]}
"""
    needs = "held-out samples whose labels are classes"
    held_out = True


class FirstAbove(Measure, kind="first_above"):
    """The first state, by its iteration, at which another measure is above a number; NaN before: the time to an event.

    States are those at which it measures: `at: {kind: every, interval: 1}` asks all. Numbers of a measure of several
    are asked one by one. In the table of a sweep its column is the time itself.
    """

    example = "{kind: first_above, of: weight_norm, value: 2.0}"
    needs = "a measure `of` that is offered"
    of: Annotated[Measure, OneOf("measure", word=True)]
    """The measure."""
    value: float
    """The number."""

    @property
    def name(self) -> str:
        """The kind, the measure and the number."""
        return f"{self.kind}_{self.of.name}_{self.value:g}"

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the numbers of the measure."""
        return self.of.columns(sections)

    def offered(self, problem: Problem) -> bool:
        """Return whether there is the measure."""
        return self.of.offered(problem)

    def samples(self, problem: Problem) -> int:
        """Return the cost of the measure."""
        return self.of.samples(problem)

    def passed(self, measured: Floats) -> NDArray[np.bool_]:
        """Return where the measure has passed the number."""
        return measured > self.value

    def measure(self, state: State) -> Floats:
        """Return the iterations, of the shape of the measure."""
        passed = self.passed(np.asarray(self.of.measure(state), np.float64))
        before = state.memory.get("first passed", np.full(passed.shape, np.nan))
        state.memory["first passed"] = np.where(np.isnan(before) & passed, state.iteration, before)
        return state.memory["first passed"]


class FirstBelow(FirstAbove, kind="first_below"):
    """The first state, by its iteration, at which another measure is below a number; as `first_above`."""

    example = "{kind: first_below, of: train_loss, value: 0.1}"

    def passed(self, measured: Floats) -> NDArray[np.bool_]:
        """Return where the measure has passed the number."""
        return measured < self.value


def measure_of(function: Callable[[State], Any]) -> Measure:
    """Return a measure that records a function of states (see `kinds.State`), under the function's name.

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
