"""Formulas of kinds as they are traced: activations, losses and updates, and their derivatives.

A kind is traced with symbols in place of its arguments and of its own float settings, so that one
compiled function serves all their values. Gradient descent with momentum, line by line:

    def updated(self, w, g, memory, step):             # w, g: EACH (a weight, its gradient)
        v = self.momentum * memory["v"] - step.lr * g  # reads the symbol `weight_v`, EACH;
        memory["v"] = v                                # `number_momentum` and `lr` are NUMBER
        return w + v

`update` returns the new weight `w + (number_momentum * weight_v - lr * g)` and what was written,
under the same name `v`. `step.memory` is of level `WHOLE`: a number of the tensor, such as a
running norm of its gradient, whose symbol is `whole_...` and whose value comes from `total(g * g)`;
`total_of_all` sums over all weights of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from dynamics_cli.errors import InputError
from dynamics_cli.formulas import algebra as formulas
from dynamics_cli.formulas.algebra import EACH, NUMBER, WHOLE, Expression, NotAFormulaError, symbol


class Traceable(Protocol):
    """A kind, as far as a formula needs one: its numbers are its fields that are floats."""

    def __iter__(self) -> Any:
        """Yield names and values of fields."""

    def model_copy(self, *, update: Any) -> Any:
        """Return a copy with other values of fields, which are not validated."""


_NO_FORMULA = (TypeError, ValueError, AttributeError, IndexError)
"""Errors of a method that does with a symbol what no formula does; `NotAFormulaError` is one."""


@dataclass
class Trace:
    """A formula as it is traced: its operations and its arguments.

    Arguments are the numbers of the kind.
    """

    kind: Traceable
    table: dict[Any, Expression] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """The numbers of the kind by the names of their symbols."""
        return {f"number_{key}": value for key, value in self.numbers.items()}

    def symbolic(self) -> Any:
        """Return the kind with symbols in place of its numbers."""
        self.numbers = {key: value for key, value in self.kind if type(value) is float}
        return self.kind.model_copy(
            update={key: symbol(self.table, f"number_{key}", NUMBER) for key in self.numbers}
        )


def traced(
    kind: Traceable, formula: Callable[[Any, Trace], Sequence[Expression]]
) -> tuple[list[Expression], Trace]:
    """Return the operations of `formula(kind, trace)`.

    A formula that asks for the value of a number of the kind is traced with that value.

    Raises NotAFormulaError: it cannot be traced.
    """
    with suppress(*_NO_FORMULA):
        trace = Trace(kind)
        return list(formula(trace.symbolic(), trace)), trace
    trace = Trace(kind)
    try:
        return list(formula(kind, trace)), trace
    except NotAFormulaError:
        raise
    except _NO_FORMULA as error:
        raise NotAFormulaError(f"{type(kind).__name__}: {error}") from error


@dataclass(frozen=True)
class Facts:
    """A traced formula."""

    sums: bool
    """Of an update: whether it has sums over many weights, or remembers something of them as a
    whole.
    """
    over_all: bool
    """Of an update: whether the sums are over all weights of the network, not over those of a
    tensor.
    """
    loss: bool
    """Of an update: whether it depends on the loss."""
    counts: bool
    """Of an update: whether it depends on the number of updates done."""


_FACTS: dict[tuple[type, str], tuple[Facts | None, str | None]] = {}
"""Kind, with its settings -> its formula, or why it is none."""
_METHODS = {"activation": "value", "loss": "values", "optimizer": "updated"}


def facts(kind: Any) -> Facts | None:
    """Return the traced formula of an activation, loss or update; None where it is none."""
    return _facts_and_obstacle(kind)[0]


def obstacle(kind: Any) -> str | None:
    """Return why an activation, loss or update is no formula, so that autograd trains it.

    None where it is a formula.
    """
    if not hasattr(kind, _METHODS.get(kind.section, "")):
        return None
    return _facts_and_obstacle(kind)[1]


def _facts_and_obstacle(kind: Any) -> tuple[Facts | None, str | None]:
    key = type(kind), repr(kind)
    if key not in _FACTS:
        formula: Any = {"activation": curve, "loss": loss_and_slope, "optimizer": all_of}[
            kind.section
        ]
        try:
            nodes = formulas.ordered(traced(kind, formula)[0])
        except NotAFormulaError as error:
            _FACTS[key] = None, str(error)
        else:
            operations = {node.operation for node in nodes}
            symbols = [node.arguments[0] for node in nodes if node.operation == "symbol"]
            of_tensor = any(name.startswith("whole_") for name in symbols)
            sums = of_tensor or not operations.isdisjoint(formulas.SUMS)
            of_network = "total_of_all" in operations
            _FACTS[key] = Facts(sums, of_network, "loss" in symbols, "iteration" in symbols), None
    return _FACTS[key]


# -- activations


def curve(sigma: Any, trace: Trace, order: int = 1) -> list[Expression]:
    """Return sigma(z) and its derivatives up to some order."""
    z = symbol(trace.table, "z", EACH)
    derivatives = [formulas.constant(trace.table, sigma.value(z))]
    for _ in range(order):
        derivatives.append(formulas.along(derivatives[-1], {z: 1.0}))
    return derivatives


def is_identity(sigma: Any) -> bool:
    """Return whether an activation is `z` itself."""
    nodes, _ = traced(sigma, lambda kind, trace: curve(kind, trace, 0))
    return nodes[0].operation == "symbol" and nodes[0].arguments[0] == "z"


def slopes(sigma: Any, z: Any, order: int) -> Any:
    """Return the derivative of some order of an activation at an array or a tensor.

    Raises NotAFormulaError: the activation is no formula.
    """
    nodes, trace = traced(sigma, lambda kind, trace: curve(kind, trace, order))
    (value,) = formulas.evaluated(nodes[-1:], {"z": z, **trace.values})
    return value + formulas.zeros_like(z)


# -- losses


def loss_and_slope(loss: Any, trace: Trace) -> tuple[Expression, Expression, Expression]:
    """Return loss and derivatives of a sample, and its outputs."""
    h = symbol(trace.table, "h", EACH)
    level_of_labels = {"classes": WHOLE}.get(loss.labels, EACH)
    y = symbol(trace.table, "y", level_of_labels)
    value = formulas.constant(trace.table, loss.values(h, y))
    if loss.labels == "classes" and value.level == EACH:
        raise NotAFormulaError(f"{type(loss).__name__} is no number of a sample")
    return value, formulas.gradient(value, h), h


def bend(loss: Any, trace: Trace) -> list[Expression]:
    """Return the second derivative of a loss along `v`."""
    _, slope, h = loss_and_slope(loss, trace)
    return [formulas.along(slope, {h: symbol(trace.table, "v", EACH)})]


def loss_slopes(loss: Any, h: Any, y: Any) -> Any:
    """Return `dl/dh` in the shape of the outputs `h`, (..., n) or (..., n, C).

    The labels `y` are (n,) or (n, C).

    Raises NotAFormulaError: the loss is no formula.
    """
    nodes, trace = traced(loss, lambda kind, trace: loss_and_slope(kind, trace)[1:2])
    given = {"h": h, "y": y, "number_of_output": formulas.numbered(h), **trace.values}
    (value,) = formulas.evaluated(nodes, given)
    return value + formulas.zeros_like(h)


# -- updates


class OptimizerMemory(Protocol):
    """The memory of an optimizer: values by name, 0 at first."""

    def __getitem__(self, name: str, /) -> Any: ...
    def __setitem__(self, name: str, value: Any, /) -> None: ...


class TracedMemory(dict[str, Expression]):
    """The memory of a formula as it is traced: what the update writes, by name.

    It is that for a weight, or that as a whole.
    """

    def __init__(self, table: dict[Any, Expression], level: int) -> None:
        super().__init__()
        self._table = table
        self._level = level
        self.read: dict[str, Expression] = {}
        """The symbols of former values."""

    def __missing__(self, name: str) -> Expression:
        prefix = {EACH: "weight", WHOLE: "whole"}[self._level]
        return self.read.setdefault(name, symbol(self._table, f"{prefix}_{name}", self._level))

    def __setitem__(self, name: str, value: Any) -> None:
        self.__missing__(name)
        super().__setitem__(name, formulas.constant(self._table, value))


@dataclass
class StepNumbers:
    """Numbers of an update."""

    lr: Any
    """Its step size, the schedule taken into account."""
    iteration: Any
    """Number of updates done before it."""
    loss: Any
    """Of the batch."""
    memory: OptimizerMemory = field(default_factory=dict[str, Any])
    """The memory for the tensor, or for all weights, as a whole: 0 at first."""


def remembered(optimizer: Any) -> tuple[str, ...]:
    """Return the names of what an update remembers; none where it is no formula."""
    names: tuple[str, ...] = ()

    def trace_update(kind: Any, trace: Trace) -> list[Expression]:
        nonlocal names
        weight, memory, whole = update(kind, trace)
        names = (*memory.read, *whole.read)
        return [weight, *memory.values(), *whole.values()]

    if hasattr(optimizer, "updated") and facts(optimizer) is not None:
        traced(optimizer, trace_update)
    return names


def update(optimizer: Any, trace: Trace) -> tuple[Expression, TracedMemory, TracedMemory]:
    """Return the new weight, its memory, and the memory as a whole."""
    table = trace.table
    w = symbol(table, "w", EACH)
    g = symbol(table, "g", EACH)
    memory = TracedMemory(table, EACH)
    whole = TracedMemory(table, WHOLE)
    lr, iteration, loss = (symbol(table, name, NUMBER) for name in ("lr", "iteration", "loss"))
    step = StepNumbers(lr, iteration, loss, whole)
    return (
        formulas.constant(table, optimizer.updated(w, optimizer.clipped(g), memory, step)),
        memory,
        whole,
    )


def all_of(optimizer: Any, trace: Trace) -> list[Expression]:
    """Return the new weight and all that is remembered.

    Raises NotAFormulaError: the optimizer updates whole tensors.
    """
    if not optimizer.by_formula:
        raise NotAFormulaError(f"{type(optimizer).__name__} is no formula of a weight")
    weight, memory, whole = update(optimizer, trace)
    nodes = [weight, *memory.values(), *whole.values()]
    if {node.operation for node in formulas.ordered(nodes)}.issuperset(formulas.SUMS):
        if optimizer.clip is not None:
            raise NotAFormulaError("its sums are over a tensor, the sums of clip over all weights")
        raise InputError(
            f"optimizer.kind {optimizer.kind!r}: an update has `total` or `total_of_all`, not both"
        )
    return nodes
