"""Settings of a sweep that are computed from others: `optimizer.lr = min(10, 0.1 / initialization.scale**2)`.

A few nodes of the syntax tree are known; nothing else is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from dynamics_cli.errors import UsageError
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
    """Return settings and the settings computed from them, in order; other names are keys of the plain config.

    Raises UsageError: it is no expression, a name is no number, or the arithmetic fails.
    """
    values = dict(settings)
    for key, expression in expressions.items():
        try:
            values[key] = _value(ast.parse(expression.strip(), mode="eval").body, values, config)
            if not math.isfinite(values[key]):
                raise ValueError(f"it is {values[key]}")
        except (
            ArithmeticError,
            ValueError,
            TypeError,
            SyntaxError,
            RecursionError,
            MemoryError,
        ) as error:
            why = "the result is too large" if isinstance(error, OverflowError) else error
            where = ", ".join(f"{name} {value}" for name, value in settings.items())
            place = f" (at {where})" if where else ""
            raise UsageError(f"{key} = {shorten(expression, 80)}: {why}{place}") from error
    return values


def _value(node: ast.expr, values: Mapping[str, Any], config: Any) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, values, config), _value(right, values, config))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, values, config))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*[_value(argument, values, config) for argument in arguments])
    text = ast.unparse(node)
    if not re.fullmatch(r"[A-Za-z_][\w.]*(\[\d+\][\w.]*)*", text):
        names = ", ".join(FUNCTIONS)
        raise ValueError(
            f"{text!r} is not known here; there are numbers, keys, + - * / **, parentheses and {names}"
        )
    key = text.replace("[", ".").replace("]", "")
    number = values.get(key, None if key == "seed" else config)
    try:
        for part in key.split(".") if key not in values else ():
            number = number[int(part)] if isinstance(number, list) else number[part]
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"{key} is neither swept nor a number of the config") from None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{key} is {number!r}, not a number")
    return number
