"""Numbers computed from settings, `0.1 / initialization.scale**2`, and curves, `first(loss < 1)`.

A few nodes of the syntax tree are known; nothing else is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dynamics_cli.errors import UsageError
from dynamics_cli.kinds.arrays import Floats, Ints
from dynamics_cli.text import shorten

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda a, b: float(a) ** b,  # of integers it could fill the memory
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "abs": abs,
    "round": round,
    "int": int,
}
OF_ARRAYS: dict[Any, Callable[..., Any]] = {
    min: np.minimum,
    max: np.maximum,
    math.sqrt: np.sqrt,
    math.log: np.log,
    math.exp: np.exp,
    int: np.trunc,
    OPERATORS[ast.Pow]: np.power,
}
"""The functions of curves where those of numbers take none."""
COMPARISONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
REDUCTIONS = {
    "first": "first(test_accuracy > 0.95)",
    "last": "last(test_loss)",
    "least": "least(test_loss)",
    "largest": "largest(sharpness)",
    "at": "at(test_loss, 1000)",
    "mean": "mean(test_loss, 10)",
}
"""Functions that make a number of a curve, each with its form."""
Curves = Callable[[str, str], tuple[Ints, Floats]]
"""Name of a curve, and of the reduction that asks for it -> iterations (k,) and values (k,)."""
_NUMBERED = re.compile(r"\b([A-Za-z_][\w.]*?)\.(\d+)\b")
"""The number k of a list or a measure, `dataset.y.0`, which Python writes `dataset.y[0]`."""


class _Known(NamedTuple):
    """The numbers that an expression may name."""

    values: Mapping[str, Any]
    """By key: swept, or computed before."""
    config: Any
    """The plain config."""
    curves: Curves | None
    """None where there are no curves yet."""


def parse_let(text: str) -> tuple[str, str]:
    """Return key and expression of `key=expression`.

    Raises UsageError: the text has no such form.
    """
    key, _, expression = map(str.strip, text.partition("="))
    if not (key and expression):
        raise UsageError(f"--let {text!r} must have the form key=expression")
    return key, expression


def computed(
    expressions: Mapping[str, str], settings: Mapping[str, Any], config: Any
) -> dict[str, Any]:
    """Return settings, and those computed from them, in order.

    Other names are keys of the plain config.

    Raises UsageError: it is no expression, a name is no number, or the arithmetic fails.
    """
    values = dict(settings)
    for key, expression in expressions.items():
        try:
            values[key] = value_of(expression, values, config)
            if not math.isfinite(values[key]):
                raise UsageError(f"it is {values[key]}")
        except UsageError as error:
            where = ", ".join(f"{name} {value}" for name, value in settings.items())
            place = f" (at {where})" if where else ""
            raise UsageError(f"{key} = {shorten(expression, 80)}: {error}{place}") from error
    return values


def value_of(
    expression: str, values: Mapping[str, Any], config: Any, curves: Curves | None = None
) -> Any:
    """Return the number of an expression of `values`, of keys of the plain config, and of curves.

    Values can be arrays of one shape, which give an array. NaN where a curve never meets its
    condition, where there is no such curve, and of all that is computed from NaN.

    Raises UsageError: it is no expression, a name is no number, or the arithmetic fails.
    """
    try:
        tree = ast.parse(_NUMBERED.sub(r"\1[\2]", expression.strip()), mode="eval")
        return _value(tree.body, _Known(values, config, curves))
    except OverflowError as error:
        raise UsageError("the result is too large") from error
    except (
        ArithmeticError,
        ValueError,
        TypeError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ) as error:
        raise UsageError(str(error)) from error


def names_in(expression: str) -> list[str]:
    """Return the names in an expression but the curves that a reduction makes a number of.

    Raises UsageError: it is no expression.
    """
    try:
        tree = ast.parse(_NUMBERED.sub(r"\1[\2]", expression.strip()), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{shorten(expression, 80)!r} is no expression: {error}") from error
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in REDUCTIONS:
                for argument in node.args:
                    visit(argument)
        elif isinstance(node, ast.expr) and (key := _key(node)) is not None:
            names[key] = None
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(tree.body)
    return [*names]


def _value(node: ast.expr, known: _Known) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _applied(OPERATORS[type(op)], _value(left, known), _value(right, known))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, known))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _applied(FUNCTIONS[name], *[_value(argument, known) for argument in arguments])
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            known.curves is not None and name in REDUCTIONS
        ):
            return _reduced(name, arguments, known)
    if (key := _key(node)) is None:
        forms = [*FUNCTIONS]
        if known.curves is not None:
            forms += REDUCTIONS.values()
        raise ValueError(
            f"{ast.unparse(node)!r} is not known here; there are numbers, keys, + - * / **,"
            f" parentheses, {', '.join(forms)}"
        )
    return _setting(key, known)


def _applied(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function gives; NaN, a number that a job does not have, makes NaN."""
    if any(isinstance(argument, np.ndarray) for argument in arguments):
        with np.errstate(all="ignore"):  # what is not finite is a gap
            return OF_ARRAYS.get(function, function)(*arguments)
    if any(map(math.isnan, arguments)):
        return math.nan
    return function(*arguments)


def _key(node: ast.expr) -> str | None:
    """Return `dataset.y.0` for the tree of `dataset.y[0]`; None for anything but a key."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=above, attr=part):
            key = _key(above)
        case ast.Subscript(value=above, slice=ast.Constant(value=int() | str() as part)):
            key = _key(above)
        case _:
            return None
    if key is None:
        return None
    return f"{key}.{part}"


def _setting(key: str, known: _Known) -> Any:
    if key in known.values:
        number = known.values[key]
    elif key == "seed" or (number := _entry(key, known.config)) is None:
        raise ValueError(f"{key} is neither swept nor a number of the config")
    if isinstance(number, bool) or not isinstance(number, int | float | np.ndarray):
        raise ValueError(f"{key} is {number!r}, not a number")
    return number


def _entry(key: str, config: Any) -> Any:
    """Return the entry of a plain config at a dotted key; None where there is none."""
    try:
        for part in key.split("."):
            if isinstance(config, list):
                config = config[int(part)]
            else:
                config = config[part]
    except (LookupError, TypeError, ValueError):
        return None
    return config


def _reduced(name: str, arguments: list[ast.expr], known: _Known) -> Any:
    """Return the number that a reduction makes of a curve."""
    match name, arguments:
        case "first", [ast.Compare(left=curve, ops=[op], comparators=[other])] if (
            type(op) in COMPARISONS
        ):
            number = _value(other, known)
        case (("at" | "mean"), [curve, other]):
            number = _value(other, known)
        case (("last" | "least" | "largest"), [curve]):
            number = 0
        case _:
            raise ValueError(f"{name} must have the form {REDUCTIONS[name]}")
    if (key := _key(curve)) is None:
        raise ValueError(f"{ast.unparse(curve)!r} is not the name of a measure, nor `loss`")
    if name == "mean" and (number < 1 or number % 1):
        raise ValueError(f"mean is over the last k values, k an integer >= 1, not {number}")
    assert known.curves is not None
    steps, values = known.curves(key, name)
    if not len(steps) or math.isnan(number):
        return math.nan
    if name == "first":
        reached = steps[COMPARISONS[type(op)](values, number)]
        if not len(reached):
            return math.nan
        return int(reached[0])
    return float(_number_of(name, key, steps, values, number))


def _number_of(name: str, key: str, steps: Ints, values: Floats, number: float) -> Any:
    match name:
        case "least":
            return np.fmin.reduce(values)  # NaN is no extremum
        case "largest":
            return np.fmax.reduce(values)
        case "at":
            if number > steps[-1]:
                raise ValueError(f"{key} ends at iteration {steps[-1]}, before {number}")
            return values[np.argmin(np.abs(steps - number))]
        case "mean":
            if number > len(values):
                raise ValueError(f"{key} has {len(values)} values, not {number}")
            return np.mean(values[-int(number) :])
    return values[-1]
