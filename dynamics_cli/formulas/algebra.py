"""Formulas of kinds: one text, from which NumPy, torch, compiled code and derivatives are made.

A formula is an ordinary method (`value(z)` of an activation, `values(h, y)` of a loss) made of
arithmetic and of the functions of this module. Called with arrays or tensors it computes; called
with an `Expression` it is traced: the operations are written down, can be differentiated, evaluated
on arrays, and written out as source for the compiler.

An expression has a level, which says how many numbers it stands for: a single one of the kind
(`NUMBER`), one of each sample or tensor (`WHOLE`), or one of each output or weight (`EACH`). An
operation has the highest level of its arguments; the reductions lead from `EACH` to `WHOLE`. Cross
entropy divided by a temperature, line by line:

    def values(self, h, y):                # h: EACH (outputs of a sample), y: WHOLE (its class)
        z = h / self.temperature           # NUMBER under EACH: divide, EACH
        return logsumexp(z) - pick(z, y)   # logsumexp and pick: WHOLE; their difference: WHOLE

Its `gradient` by `h` is of level `EACH` again: `(exp(z - logsumexp(z)) - where(number_of_output ==
y, 1, 0)) / temperature`, in which the softmax of an output mixes its own `z` with a number of the
whole sample.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

NUMBER, WHOLE, EACH = range(3)
Array = Any
"""A NumPy array, a torch tensor, or an `Expression`."""


class NotAFormulaError(TypeError):
    """A method does something that no formula does.

    Such as asking which of two arguments is larger.
    """


def _operators(operation: str) -> tuple[Any, Any]:
    """Return the methods of an operation of two numbers: `self` first, and `self` second."""
    return (
        lambda self, number: make(self.table, operation, self, number),
        lambda self, number: make(self.table, operation, number, self),
    )


class Expression:
    """An operation of a formula; equal operations of a formula are the same object."""

    __slots__ = ("arguments", "key", "level", "operation", "table")
    ndim = 0

    def __init__(
        self, table: dict[Any, Expression], operation: str, arguments: tuple[Any, ...], level: int
    ) -> None:
        self.table = table
        self.operation = operation
        self.arguments = arguments
        self.level = level
        self.key = len(table)
        """Its number: arguments have smaller numbers."""

    def __bool__(self) -> bool:
        raise NotAFormulaError(
            "a formula cannot branch on a value: use `where(condition, this, that)`"
        )

    __array_ufunc__ = __iter__ = __len__ = __float__ = __int__ = (
        None  # nothing takes it for an array or a number
    )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotAFormulaError("a formula cannot be made an array")

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")
    __pow__ = _operators("power")[0]
    __lt__, __gt__ = _operators("less")
    __le__, __ge__ = _operators("less_equal")
    __eq__ = _operators("equal")[0]
    __ne__ = _operators("not_equal")[0]

    def __neg__(self) -> Expression:
        return make(self.table, "negative", self)

    def __abs__(self) -> Expression:
        return make(self.table, "abs", self)

    __hash__ = object.__hash__


def make(table: dict[Any, Expression], operation: str, *arguments: Any) -> Expression:
    """Return the expression of an operation, simplified where a number is 0 or 1."""
    given = [constant(table, argument) for argument in arguments]
    numbers = [_number(node) for node in given]
    if operation not in _REDUCTIONS and None not in numbers:
        value = _OPERATIONS[operation](*np.array(numbers, np.float64))
        return constant(table, float(value))

    simple = _simplified(operation, given)
    if simple is not None:
        return simple
    level = max(argument.level for argument in given)
    if operation in _REDUCTIONS:
        level = WHOLE
    return _entry(table, operation, tuple(given), level)


def _entry(
    table: dict[Any, Expression], operation: str, arguments: tuple[Any, ...], level: int
) -> Expression:
    key = (operation, *(getattr(argument, "key", repr(argument)) for argument in arguments))
    if key not in table:
        table[key] = Expression(table, operation, arguments, level)
    return table[key]


def constant(table: dict[Any, Expression], value: Any) -> Expression:
    """Return a number as an expression.

    An expression stays as it is. Raises NotAFormulaError: it is neither.
    """
    if isinstance(value, Expression):
        return value
    try:
        return _entry(table, "constant", (float(value),), NUMBER)
    except (TypeError, ValueError) as error:
        raise NotAFormulaError(
            f"a formula takes numbers and its arguments, not {type(value).__name__}"
        ) from error


def symbol(table: dict[Any, Expression], name: str, level: int) -> Expression:
    """Return an argument of a formula."""
    return _entry(table, "symbol", (name,), level)


def _number(node: Expression) -> float | None:
    if node.operation == "constant":
        return float(node.arguments[0])
    return None


_FIRST = 0
_LAST = -1
_SIMPLER: dict[str, Sequence[tuple[int, float, Callable[[Any, Any], Any]]]] = {
    "add": (
        (_FIRST, 0.0, lambda a, b: b),
        (_LAST, 0.0, lambda a, b: a),
    ),
    "subtract": (
        (_LAST, 0.0, lambda a, b: a),
        (_FIRST, 0.0, lambda a, b: -b),
    ),
    "multiply": (
        (_FIRST, 0.0, lambda a, b: a),
        (_LAST, 1.0, lambda a, b: a),
        (_LAST, 0.0, lambda a, b: b),
        (_FIRST, 1.0, lambda a, b: b),
        (_FIRST, -1.0, lambda a, b: -b),
        (_LAST, -1.0, lambda a, b: -a),
    ),
    "divide": (
        (_LAST, 1.0, lambda a, b: a),
        (_FIRST, 0.0, lambda a, b: a),
    ),
    "power": (
        (_LAST, 0.0, lambda a, b: constant(a.table, 1)),
        (_LAST, 0.5, lambda a, b: make(a.table, "sqrt", a)),
        (_LAST, 1.0, lambda a, b: a),
        (_LAST, 2.0, lambda a, b: a * a),
        (_LAST, 3.0, lambda a, b: a * a * a),
    ),
}
"""Operation -> the argument that is a number, the number, and what the operation is then."""


def _simplified(operation: str, given: Sequence[Expression]) -> Expression | None:
    """Return an expression that is already there and has the same value, for all finite numbers."""
    a = given[_FIRST]
    b = given[_LAST]
    for place, number, simpler in _SIMPLER.get(operation, ()):
        if _number(given[place]) == number:
            return simpler(a, b)  # type: ignore[no-any-return]
    if operation == "negative" and a.operation == "negative":
        return a.arguments[0]  # type: ignore[no-any-return]
    if operation == "where" and given[1] is given[2]:
        return b
    return None


# -- functions of formulas


def _torch_of(arrays: Iterable[Any]) -> ModuleType | None:
    """Return torch where one of the arrays is a tensor; it is never imported here."""
    torch = sys.modules.get("torch")
    if torch is None or not any(isinstance(array, torch.Tensor) for array in arrays):
        return None
    return torch


def _apply(name: str, *arguments: Any) -> Any:
    """Return a function of numbers, arrays, tensors or expressions."""
    for argument in arguments:
        if isinstance(argument, Expression):
            return make(argument.table, name, *arguments)
    torch = _torch_of(arguments)
    if torch is None:
        return _OPERATIONS[name](*arguments)
    return _of_tensors(torch, name)(*arguments)


def _special(name: str) -> Callable[..., Any]:
    def function(z: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(z)

    return function


def _numpy_logsumexp(h: Any) -> Any:
    top = np.max(h, -1, keepdims=True)
    return (top + np.log(np.exp(h - top).sum(-1, keepdims=True)))[..., 0]


def _numpy_pick(h: Any, y: Any) -> Any:
    return (h * (np.asarray(y)[..., None] == np.arange(h.shape[-1]))).sum(-1)


_OF_BOTH: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "total": lambda h: h.sum(-1),
    "total_of_all": lambda h: h.sum(-1),
}
"""Operation -> its function of arrays and of tensors."""
_OPERATIONS: dict[str, Callable[..., Any]] = _OF_BOTH | {
    "power": np.power,
    "where": np.where,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "erf": _special("erf"),
    "sigmoid": _special("expit"),
    "softplus": lambda z: np.logaddexp(z, 0 * z),
    "logsumexp": _numpy_logsumexp,
    "pick": _numpy_pick,
}
"""Operation -> its function of NumPy's arrays."""
_REDUCTIONS = frozenset({"total", "total_of_all", "logsumexp", "pick"})
SUMS = ("total", "total_of_all")


def _softplus_of_tensors(torch: Any, z: Any) -> Any:
    """Return `log(1 + exp(z))` with finite derivatives.

    torch's own softplus is z from 20 on, and the second derivative of its `logaddexp` squares
    `exp(-z)`, which overflows. Where that happens the value is `exp(z)` to rounding. Neither branch
    sees arguments of the other.
    """
    low = math.log(torch.finfo(z.dtype).tiny) / 2
    above = z.clamp(min=low)
    return torch.where(
        z < low, torch.exp(z.clamp(max=low)), torch.logaddexp(above, torch.zeros_like(above))
    )


def _where_of_tensors(torch: Any, chosen: Any, a: Any, b: Any) -> Any:
    """Return `where` of tensors; numbers are compared to a single truth value."""
    if isinstance(chosen, bool):
        return a if chosen else b
    return torch.where(chosen, a, b)


def _pick_of_tensors(torch: Any, h: Any, y: Any) -> Any:
    return (h * (y[..., None] == torch.arange(h.shape[-1], device=h.device))).sum(-1)


def _maximum_of_tensors(torch: Any, a: Any, b: Any) -> Any:
    """Return the greater of both; where they are equal, the derivative is taken of `b`.

    NaN of `a` stays. A number `b` is a threshold: torch takes one pass forward and one backward.
    """
    if isinstance(b, int | float):
        return torch.threshold(a, b, b)
    return torch.where((a > b) | (a != a), a, b)  # noqa: PLR0124


def _of_tensors(torch: Any, name: str) -> Callable[..., Any]:
    """Return an operation on tensors; at kinks it differentiates as `derivative` does."""
    of_tensors: dict[str, Callable[..., Any]] = {
        "power": operator.pow,
        "maximum": lambda a, b: _maximum_of_tensors(torch, a, b),
        "minimum": lambda a, b: torch.where((a < b) | (a != a), a, b),  # noqa: PLR0124
        "where": lambda chosen, a, b: _where_of_tensors(torch, chosen, a, b),
        "softplus": lambda z: _softplus_of_tensors(torch, z),
        "logsumexp": lambda h: torch.logsumexp(h, -1),
        "pick": lambda h, y: _pick_of_tensors(torch, h, y),
    }
    return of_tensors.get(name) or _OF_BOTH.get(name) or getattr(torch, name)


_SLOPES: dict[str, Callable[[Expression, Expression], Any]] = {"negative": lambda z, f: -1.0}
"""Derivatives of the operations of a single argument `z`, also given their value `f`."""
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _named(
    name: str, doc: str, slope: Callable[[Any, Any], Any] | None = None
) -> Callable[..., Array]:
    """Return an operation as a function, and keep its derivative, of the argument and the value."""

    def function(*arguments: Array) -> Array:
        return _apply(name, *arguments)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    if slope is not None:
        _SLOPES[name] = slope
    return function


exp = _named("exp", "Return `e^z`.", lambda z, f: f)
expm1 = _named("expm1", "Return `e^z - 1`, exact for small z.", lambda z, f: f + 1)
log = _named("log", "Return the natural logarithm.", lambda z, f: 1 / z)
log1p = _named("log1p", "Return `log(1 + z)`, exact for small z.", lambda z, f: 1 / (1 + z))
sqrt = _named("sqrt", "Return the square root.", lambda z, f: 0.5 / f)
tanh = _named("tanh", "Return `tanh(z)`.", lambda z, f: 1 - f * f)
sin = _named("sin", "Return `sin(z)`.", lambda z, f: _apply("cos", z))
cos = _named("cos", "Return `cos(z)`.", lambda z, f: -sin(z))
erf = _named(
    "erf",
    "Return the error function, `2/sqrt(pi)` times the integral of `exp(-t^2)` from 0 to z.",
    lambda z, f: _TWO_OVER_ROOT_PI * exp(-(z * z)),
)
sigmoid = _named(
    "sigmoid",
    "Return `1 / (1 + exp(-z))`, without overflow.",
    lambda z, f: f * _apply("sigmoid", -z),
)
softplus = _named(
    "softplus", "Return `log(1 + exp(z))`, without overflow.", lambda z, f: sigmoid(z)
)
abs = _named("abs", "Return `|z|`; its derivative at 0 is 0.", lambda z, f: _apply("sign", z))
sign = _named("sign", "Return -1, 0 or 1.", lambda z, f: 0.0)

maximum = _named(
    "maximum", "Return the larger of two; where they are equal, the second is derived."
)
minimum = _named(
    "minimum", "Return the smaller of two; where they are equal, the second is derived."
)
where = _named(
    "where", "Return the second argument where the first, a comparison, holds, the third elsewhere."
)
total = _named(
    "total",
    "Return the sum over the outputs of a sample, or over the weights of a tensor in an update.",
)
total_of_all = _named(
    "total_of_all", "Return the sum over all trained weights of the network, in an update."
)
logsumexp = _named(
    "logsumexp", "Return `log sum_c exp(h_c)` over the outputs of a sample, without overflow."
)
pick = _named("pick", "Return the output `h_y` of a sample whose class is y.")


def clip(z: Array, low: Array, high: Array) -> Array:
    """Return `z`, but no less than `low` and no more than `high`.

    The derivative is 1 between the two.
    """
    return minimum(maximum(z, low), high)


def zeros_like(z: Array) -> Array:
    """Return 0, of the shape of `z`."""
    if isinstance(z, Expression):
        return 0.0
    library = _torch_of([z]) or np
    return library.zeros_like(z)


def numbered(h: Array) -> Array:
    """Return the numbers 0 to C - 1 of the outputs `h` (..., C)."""
    torch = _torch_of([h])
    if torch is None:
        return np.arange(np.shape(h)[-1])
    return torch.arange(h.shape[-1], device=h.device)


# -- derivatives


def _partials(node: Expression) -> list[tuple[Expression, Any]]:
    """Return the arguments that an operation depends on smoothly, each with the derivative by it.

    A reduction is the sum of its argument times that derivative, to first order.
    """
    if node.operation in _SLOPES:
        (z,) = node.arguments
        return [(z, _SLOPES[node.operation](z, node))]
    if node.operation in ("constant", "symbol", "less", "less_equal", "equal", "not_equal"):
        return []
    a = node.arguments[0]
    b = node.arguments[-1]
    table = node.table
    if node.operation == "where":
        return [
            (node.arguments[1], make(table, "where", a, 1, 0)),
            (b, make(table, "where", a, 0, 1)),
        ]
    if node.operation in SUMS:
        return [(a, 1.0)]
    if node.operation == "logsumexp":
        return [(a, exp(a - node))]
    if node.operation == "pick":
        return [(a, where(symbol(table, "number_of_output", EACH) == b, 1, 0))]
    slopes: dict[str, Callable[[], tuple[Any, Any]]] = {
        "add": lambda: (1.0, 1.0),
        "subtract": lambda: (1.0, -1.0),
        "multiply": lambda: (b, a),
        "divide": lambda: (1 / b, -node / b),
        "maximum": lambda: (where(a > b, 1, 0), where(a > b, 0, 1)),
        "minimum": lambda: (where(a < b, 1, 0), where(a < b, 0, 1)),
        "power": lambda: (b * a ** (b - 1), node * log(a)),
    }
    return list(zip((a, b), slopes[node.operation](), strict=True))


def along(node: Expression, directions: Mapping[Expression, Any]) -> Expression:
    """Return the derivative of an expression along directions of its arguments (forward mode)."""
    table = node.table
    tangents: dict[Expression, Expression] = {
        at: constant(table, to) for at, to in directions.items()
    }

    def tangent(at: Expression) -> Expression:
        if at not in tangents:
            moved = constant(table, 0.0)
            for argument, slope in _partials(at):
                step = tangent(argument)
                if _number(step) != 0:
                    moved = moved + slope * step
            if at.operation in _REDUCTIONS and _number(moved) != 0:
                moved = make(table, "total", moved)
            tangents[at] = moved
        return tangents[at]

    return tangent(node)


def gradient(node: Expression, by: Expression) -> Expression:
    """Return derivatives of a number, or of each output, by the numbers `by` (reverse mode).

    Of a `node` of level `EACH` the sum over the outputs is differentiated.
    """
    table = node.table
    gradients: dict[Expression, Expression] = {node: constant(table, 1.0)}
    for at in reversed(ordered([node])):
        arrived = gradients.get(at)
        if arrived is None or at is by or _number(arrived) == 0:
            continue
        for argument, slope in _partials(at):
            step = arrived * slope
            if step.level == EACH and argument.level == WHOLE:
                step = make(table, "total", step)
            if argument in gradients:
                step = gradients[argument] + step
            gradients[argument] = step
    return gradients.get(by, constant(table, 0.0))


# -- values


def evaluated(nodes: Sequence[Expression], given: Mapping[str, Any]) -> list[Any]:
    """Return the values of expressions on arrays or tensors that stand for their symbols."""
    values: dict[Expression, Any] = {}
    torch: Any = _torch_of(given.values())
    array: Any = next((array for array in given.values() if getattr(array, "ndim", 0)), None)

    def typed(number: float) -> Any:
        """Return a number in the precision of the arrays."""
        if array is None:
            return number
        if torch is None:
            return array.dtype.type(number)
        return array.new_tensor(number, dtype=array.dtype)

    def value(at: Expression) -> Any:
        if at not in values:
            values[at] = computed(at)
        return values[at]

    def computed(at: Expression) -> Any:
        if at.operation == "constant":
            return typed(at.arguments[0])
        if at.operation == "symbol":
            argument = given[at.arguments[0]]
            return typed(argument) if isinstance(argument, float) else argument
        arguments = []
        for argument in at.arguments:
            arguments.append(value(argument))
            if at.level == EACH and argument.level == WHOLE:
                # a number of a whole sample stands beside each of its outputs
                arguments[-1] = arguments[-1][..., None]
        return _apply(at.operation, *arguments)

    with np.errstate(over="ignore", under="ignore"):  # inner overflows end as 0 or infinity
        return [value(node) for node in nodes]


def ordered(nodes: Iterable[Expression]) -> list[Expression]:
    """Return all that expressions are made of, arguments first."""
    order: dict[Expression, None] = {}

    def visit(at: Expression) -> None:
        if at not in order:
            for argument in at.arguments:
                if isinstance(argument, Expression):
                    visit(argument)
            order[at] = None

    for node in nodes:
        visit(node)
    return list(order)
