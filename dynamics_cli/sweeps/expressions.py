"""Values of a sweep that are computed from others: `optimizer.lr = min(10, 0.1 / initialization.scale**2)`.

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


def _power(a: float, b: float) -> float:
    value = float(a) ** b  # of integers it could fill the memory
    return int(value) if isinstance(a, int) and isinstance(b, int) and b >= 0 else value


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: _power,
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "abs": abs, "round": round, "int": int,
}  # fmt: skip
_FAILURES = (ArithmeticError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Let:
    """A setting whose value is computed."""

    key: str
    expression: str
    origin: Place | None = field(default=None, compare=False)
    """Where it was written."""

    def value(self, look: Callable[[str], Any]) -> float:
        """Return the value; `look` says the value of a key.

        Raises:
            UsageError: it is no expression, names what is no number, or the arithmetic fails.
        """
        try:
            value: float = _value(ast.parse(self.expression, mode="eval").body, look)
            if not math.isfinite(value):
                raise ValueError(f"it is {value}")
        except _FAILURES as error:
            why = "the result is too large" if isinstance(error, OverflowError) else error
            raise UsageError(f"{self.key} = {shorten(self.expression, 80)}: {why}") from error
        return value


def _value(node: ast.expr, look: Callable[[str], Any]) -> Any:
    """Return the value of a node of the syntax tree."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, look), _value(right, look))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand, look))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*[_value(argument, look) for argument in arguments])
    written = ast.unparse(node)
    if re.fullmatch(r"[A-Za-z_][\w.]*(\[\d+\][\w.]*)*", written):
        return look(written.replace("[", ".").replace("]", ""))
    names = ", ".join(FUNCTIONS)
    raise ValueError(f"{written!r} is not known here; there are numbers, keys, + - * / **, parentheses and {names}")


def parse_let(text: str) -> Let:
    """Return the computed setting of `key=expression`.

    Raises:
        UsageError: it has no such form.
    """
    key, equals, written = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")) or not written.strip():
        raise UsageError(f"--let {text!r} must have the form key=expression")
    return Let(key.strip(), written.strip())


def computed(lets: Sequence[Let], settings: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """Return settings and those computed from them, in the order written; other names are those of a config.

    Raises:
        UsageError: as `Let.value`.
    """
    values = dict(settings)

    def look(key: str) -> Any:
        parts = key.split(".")
        heads = [head for k in range(len(parts), 0, -1) if (head := ".".join(parts[:k])) in values]
        within, rest = (values[heads[0]], parts[heads[0].count(".") + 1 :]) if heads else (written, parts)
        found = None if key == "seed" and not heads else _below(within, rest)
        if isinstance(found, bool) or not isinstance(found, int | float):
            why = f"is {found!r}, not a number" if found is not None else "is neither swept nor a number of the config"
            raise ValueError(f"{key} {why}")
        return found

    for let in lets:
        values[let.key] = let.value(look)
    return values


def _below(data: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(data, list):
            data = data[int(part)] if part.isdecimal() and int(part) < len(data) else None
        else:
            data = data.get(part) if isinstance(data, Mapping) else None
    return data
