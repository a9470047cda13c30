"""Settings of a sweep that are computed from others: `optimizer.lr = min(10, 0.1 / initialization.scale**2)`.

A few nodes of the syntax tree are known; nothing else is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynamics_cli.config.source import Place
from dynamics_cli.errors import UsageError
from dynamics_cli.text import shorten

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: lambda a, b: float(a) ** b,  # of integers it could fill the memory
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "abs": abs, "round": round, "int": int,
}  # fmt: skip


@dataclass(frozen=True)
class Let:
    """A setting whose value is computed."""

    key: str
    expression: str
    origin: Place | None = field(default=None, compare=False)
    """Where it was written."""


def parse_let(text: str) -> Let:
    """Return the computed setting of `key=expression`.

    Raises UsageError: the text has no such form.
    """
    key, _, written = text.partition("=")
    if not all(part.strip() for part in key.split(".")) or not written.strip():
        raise UsageError(f"--let {text!r} must have the form key=expression")
    return Let(key.strip(), written.strip())


def computed(lets: Sequence[Let], settings: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """Return settings and the settings computed from them, in order; other names come from the config.

    Raises UsageError: it is no expression, a name is no number, or the arithmetic fails.
    """
    values = dict(settings)
    for let in lets:
        try:
            value = _value(ast.parse(let.expression, mode="eval").body, values, written)
            if not math.isfinite(value):
                raise ValueError(f"it is {value}")
        except (ArithmeticError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
            why = "the result is too large" if isinstance(error, OverflowError) else error
            raise UsageError(f"{let.key} = {shorten(let.expression, 80)}: {why}") from error
        values[let.key] = value
    return values


def _value(node: ast.expr, values: Mapping[str, Any], written: Any) -> Any:
    """Return the value of a node of the syntax tree."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, values, written), _value(right, values, written))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, values, written))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*[_value(argument, values, written) for argument in arguments])
    text = ast.unparse(node)
    if re.fullmatch(r"[A-Za-z_][\w.]*(\[\d+\][\w.]*)*", text):
        return _number(text.replace("[", ".").replace("]", ""), values, written)
    names = ", ".join(FUNCTIONS)
    raise ValueError(f"{text!r} is not known here; there are numbers, keys, + - * / **, parentheses and {names}")


def _number(key: str, values: Mapping[str, Any], written: Any) -> Any:
    """Return the number of a key: of the longest swept or computed key that it begins with, else of the config."""
    parts = key.split(".")
    heads = [k for k in range(len(parts), 0, -1) if ".".join(parts[:k]) in values]
    found, rest = (values[".".join(parts[: heads[0]])], parts[heads[0] :]) if heads else (written, parts)
    try:
        for part in rest:
            found = found[int(part)] if isinstance(found, list) else found[part]
    except (LookupError, TypeError, ValueError):
        found = None
    if found is None or (key == "seed" and not heads):
        raise ValueError(f"{key} is neither swept nor a number of the config")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"{key} is {found!r}, not a number")
    return found
