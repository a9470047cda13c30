"""Measures that runs record."""

from __future__ import annotations

import inspect
import types
from abc import abstractmethod
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, ClassVar, Literal
from zlib import crc32

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Floats, Measure, Problem, Sections, State
from dynamics_cli.kinds.base import Finding


def once(memory: MutableMapping[str, Any], key: str, compute: Callable[[], Floats]) -> Floats:
    """Return what `memory` holds under `key`, computed where it holds nothing."""
    if key not in memory:
        memory[key] = compute()
    value: Floats = memory[key]
    return value


def of_first(state: State, key: str, compute: Callable[[State], Floats]) -> Floats:
    """Return a value of the initial network, computed once for its samples and trained weights.

    A change on the way may replace either.
    """
    problem = state.problem
    trained = ",".join(problem.config.architecture.train or ())
    samples = once(problem.shared, "samples", lambda: np.array(crc32(problem.dataset.x.tobytes())))
    of = np.array([samples, crc32(trained.encode())])
    if not np.array_equal(state.memory.get(f"{key} of", ()), of):
        state.memory[key] = compute(state.first)
        state.memory[f"{key} of"] = of
    value: Floats = state.memory[key]
    return value


class WeightNorm(Measure, kind="weight_norm"):
    """Euclidean norm of all weights together."""

    def measure(self, state: State) -> float:
        """Return `||theta||`."""
        squares = (
            float(np.sum(np.square(value, dtype=np.float64))) for value in state.parameters.values()
        )
        return float(np.sqrt(sum(squares)))


def classifies(problem: Problem) -> bool:
    """Return whether labels are classes: the loss decides; if real, all ±1, or one-hot vectors."""
    y = problem.dataset.y
    if problem.loss.labels != "real":
        return True
    if problem.dataset.positions:
        y = y[problem.loss.labelled(y)]  # (labels, k)
    if y.ndim == 2 and y.shape[1] > 1:
        return bool(np.isin(y, [0.0, 1.0]).all() and (y.sum(-1) == 1).all())
    return bool((abs(y) == 1).all())


def labelled_outputs(problem: Problem, h: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return outputs (m,) or (m, C) and labels of the m samples, or positions, that have one."""
    if not problem.dataset.positions:
        return h, y
    there = problem.loss.labelled(y)
    y = y[there]
    if y.shape[1:] == (1,):
        y = y[:, 0]
    return h[there], y


def right(problem: Problem, h: Floats, y: Floats) -> float:
    """Return the share of outputs `h` (n,) or (n, C) that are classified as the labels `y`.

    At positions, outputs with a label count.
    """
    h, y = labelled_outputs(problem, h, y)
    if problem.loss.labels != "real":
        return float(np.mean(problem.loss.predictions(h) == y))
    if y.ndim == 2:
        return float(np.mean(h.argmax(-1) == y.argmax(-1)))
    return float(np.mean(np.sign(h) == y))


class OfSamples(Measure):
    """The base of losses and accuracies of training or held-out samples, or by replaced labels."""

    needs = "a single network"
    held_out: ClassVar[bool] = False
    """Whether it is of the held-out samples and not of the training samples."""
    by_replaced: bool | None = None
    """Measure training samples with their own and those with a replaced label by themselves."""
    average: bool | None = None
    """Measure the network with the average of its weights, which `optimizer.average` keeps."""

    @property
    def name(self) -> str:
        """The kind, and whether it is of the average and by replaced labels."""
        of_average = "_of_average" * bool(self.average)
        return self.kind + of_average + "_by_replaced" * bool(self.by_replaced)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield an average that the optimizer does not keep."""
        yield from super().check(sections)
        optimizer = sections.get("optimizer")
        if self.average and optimizer and getattr(optimizer, "average", None) is None:
            message = "average needs optimizer.average, e.g. {kind: ema, decay: 0.999}"
            yield ("record", "measures"), f"{self.kind}: {message}"

    def offered(self, problem: Problem) -> bool:
        """Return whether there are such samples and, by replaced labels, whether any is."""
        offered = not self.held_out or problem.dataset.y_test is not None
        if self.by_replaced:
            offered = bool(problem.config.dataset.replaced_labels) and not self.held_out
        return offered and not problem.config.architecture.players

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of the parts."""
        if self.by_replaced:
            return ("kept", "replaced")
        return ()

    def outputs(self, state: State, x: Floats) -> Floats:
        """Return the outputs (n,) or (n, C) of the network for inputs (n, d), computed once."""
        key = f"outputs, held out: {self.held_out}"
        return once(state.shared, key, lambda: state.network(x))

    @abstractmethod
    def of(self, problem: Problem, h: Floats, y: Floats) -> float:
        """Return the number for outputs `h` (n,) or (n, C) and labels `y`."""

    def measure(self, state: State) -> float | Floats:
        """Return the number, or the numbers for kept and replaced labels (2,)."""
        samples = state.problem.dataset
        if self.held_out:
            x = samples.x_test
            y = samples.y_test
        else:
            x = samples.x
            y = samples.y
        assert x is not None
        assert y is not None
        if self.average:
            state = state.averaged
        h = self.outputs(state, x)
        if not self.by_replaced:
            return self.of(state.problem, h, y)
        values = np.full(2, np.nan)
        replaced = np.asarray(samples.replaced)
        for k, part in enumerate((~replaced, replaced)):
            if part.any():
                values[k] = self.of(state.problem, h[part], y[part])
        return values


class TrainLoss(OfSamples, kind="train_loss"):
    """Loss of the training samples at the recorded states, beyond the array `losses`.

    Like `losses` it is computed in evaluation mode. With `mode: train` all samples are
    one batch of the network in training mode: a full-batch update descends this loss.
    """

    example = "{kind: train_loss, mode: train}"
    mode: Literal["train"] | None = None
    """`train`: of the network in training mode, with batch statistics and dropout."""

    @property
    def name(self) -> str:
        """The kind, the mode if it is the training mode, and whether labels are replaced."""
        in_training = "_in_training" * (self.mode is not None)
        return super().name.replace(self.kind, f"{self.kind}{in_training}")

    def outputs(self, state: State, x: Floats) -> Floats:
        """Return the outputs for inputs (n, d) in the mode of the measure."""
        if self.mode is None:
            return super().outputs(state, x)
        import torch

        from dynamics_cli.gradients.derivatives import network_of

        architecture = state.problem.config.architecture
        model = network_of(state, self.mode)
        with torch.no_grad():
            h: Floats = model(architecture.inputs_of(x)[:]).double().cpu().numpy()
        return h

    def of(self, problem: Problem, h: Floats, y: Floats) -> float:
        """Return the loss, reduced as on the training samples."""
        # a function of torch may weight the samples
        whole = getattr(problem.loss, "whole", problem.loss.total)
        return float(whole(h, problem.loss.numbered(y)))


class TestLoss(TrainLoss, kind="test_loss"):
    """Loss of the held-out samples."""

    example = """\
dataset: {kind: sparse_parity, n: 100, dim: 10, k: 2, n_test: 100}
record: {measures: [test_loss]}
"""
    needs = "held-out samples"
    by_default = True
    held_out = True


class TrainAccuracy(OfSamples, kind="train_accuracy"):
    """Share of the training samples that the network classifies as they are labelled.

    Real labels are classes where all are ±1, or one-hot vectors; the sign or the largest output
    counts then.
    """

    example = """\
loss: {kind: logistic}
record: {measures: [train_accuracy]}
"""
    needs = "labels that are classes"
    by_default = True
    linear = True

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
dataset: {kind: sparse_parity, n: 100, dim: 10, k: 2, n_test: 100}
loss: {kind: logistic}
record: {measures: [test_accuracy]}
"""
    needs = "held-out samples whose labels are classes"
    held_out = True


def measure_of(function: Callable[[State], Any]) -> Measure:
    """Return a measure that records a function of states (`kinds.State`), under its name.

    Raises:
        InputError: the function has no source that can be read, so a run of it could not be told
            from another.
    """
    name = function.__name__
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise InputError(
            f"the measure {name} has no source that can be read; write it to a file"
        ) from error
    body = {
        "__doc__": function.__doc__ or f"What the function {name} gives.",
        "__module__": function.__module__,
        "__qualname__": name,
        "source_text": text,
        "__annotations__": {"source_text": ClassVar[str]},
        "measure": lambda self, state: function(state),
    }
    cls: type[Measure] = types.new_class(
        name, (Measure,), {"kind": name}, lambda namespace: namespace.update(body)
    )
    return cls()
