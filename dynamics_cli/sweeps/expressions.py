"""Values of a sweep that are computed from others: `optimizer.lr = min(10, 0.1 / initialization.scale**2)`.

A few nodes of the syntax tree are known; nothing else is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dynamics_cli.config.source import Place
from dynamics_cli.errors import UsageError

Number = int | float
LONGEST = 500
"""Characters of an expression."""
_EXACT = 2**53
"""Integers above it become floats, which overflow at once where integers would fill the memory."""
_HIGHEST = 400
"""Power of an integer that is taken exactly, and digits before the point at which numbers are rounded, at most."""
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: lambda a, b: (a if abs(b) <= _HIGHEST else float(a)) ** b, ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "abs": abs, "int": int,
    "round": lambda number, *digits: round(number, *(max(count, -_HIGHEST) for count in digits)),
}  # fmt: skip
_ALLOWED = f"it may hold numbers, keys, + - * / **, parentheses and {', '.join(FUNCTIONS)}"
_FAILURES = (ArithmeticError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True)
class Let:
    """A setting whose value is computed."""

    key: str
    expression: str
    origin: Place | None = field(default=None, compare=False)
    """Where it was written."""

    def refused(self, why: str) -> UsageError:
        """Return the error that says why the setting has no value."""
        return UsageError(f"{self.key} = {self.expression[:LONGEST]}: {why}")

    def parsed(self) -> ast.expr:
        """Return the syntax tree of the expression.

        Raises:
            UsageError: it is no expression, or too long.
        """
        try:
            if len(self.expression) <= LONGEST:
                return ast.parse(self.expression, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        raise self.refused(f"not an expression; {_ALLOWED}")

    def value(self, node: ast.expr, look: Callable[[str], Number]) -> Any:
        """Return the value of a node of the tree; `look` says the number of a key.

        Raises:
            UsageError: the node is none of those that an expression may hold.
        """
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                value = number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                value = _OPERATORS[type(op)](self.value(left, look), self.value(right, look))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                value = _OPERATORS[type(op)](self.value(operand, look))
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in FUNCTIONS:
                value = FUNCTIONS[function](*[self.value(argument, look) for argument in arguments])
            case _ if (key := _key(node)) is not None:
                value = look(key)
            case _:
                raise self.refused(f"{ast.unparse(node)!r} is not known here; {_ALLOWED}")
        return float(value) if isinstance(value, int) and abs(value) > _EXACT else value


def _key(node: ast.expr) -> str | None:
    """Return the dotted key that a node spells, `dataset.y[0]` as `dataset.y.0`; None for other nodes."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=below, attr=last) | ast.Subscript(value=below, slice=ast.Constant(value=int(last))):
            return (above := _key(below)) and f"{above}.{last}"
    return None


def parse_let(text: str) -> Let:
    """Return the computed setting of `key=expression`.

    Raises:
        UsageError: it has no such form, or the expression cannot be read.
    """
    key, equals, written = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")) or not written.strip():
        raise UsageError(f"--let {text!r} must have the form key=expression")
    let = Let(key.strip(), written.strip())
    with suppress(*_FAILURES):  # which other numbers may spare
        let.value(let.parsed(), lambda _: 1.0)
    return let


def evaluate(expression: str, config: Mapping[str, Any], called: str) -> float:
    """Return the value of an expression of the keys of a config as plain data; messages name it as `called`.

    Raises:
        UsageError: it cannot be read, names a key that is no number of the config, or the arithmetic fails.
    """
    return float(Computed([Let(called, expression)], ["seed"]).at({}, config)[called])


class Computed:
    """The computed settings of a sweep."""

    def __init__(self, lets: Sequence[Let], swept: Sequence[str] = ()) -> None:
        """Read the expressions.

        Raises:
            UsageError: an expression cannot be read, or a key is computed twice or swept too.
        """
        self.lets = {let.key: let for let in lets}
        if twice := [let.key for let in lets if let.key in swept or self.lets[let.key] is not let]:
            raise UsageError(f"{twice[0]} gets its value twice; sweep it or compute it once")
        self._swept, self._trees = swept, {let.key: let.parsed() for let in lets}

    def at(self, point: Mapping[str, Any], written: Any) -> dict[str, Number]:
        """Return the computed settings at a point of the grid; other names are looked up in the config as `written`.

        Raises:
            UsageError: a name has no number, names go round in a circle, or the arithmetic fails.
        """
        values: dict[str, Number | None] = {}
        """None while it is being computed."""

        def look(key: str) -> Number:
            if key == "seed" and key not in self._swept:
                raise UsageError("a computed value cannot depend on the seed, unless seed is one of the axes")
            value = compute(key) if key in self.lets else point[key] if key in point else _below(written, key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                why = "is neither swept nor written in the config" if value is None else f"is {value!r}, not a number"
                raise ValueError(f"{key} {why}")
            return value

        def compute(key: str) -> Number:
            if (value := values.get(key)) is not None:
                return value
            if key in values:
                circle = " <- ".join([*(name for name, known in values.items() if known is None), key])
                raise UsageError(f"the computed values go round in a circle: {circle}")
            let, values[key] = self.lets[key], None
            try:
                value = let.value(self._trees[key], look)
                if not isinstance(value, int | float) or not math.isfinite(value):
                    raise ValueError(f"gives {value}")
            except _FAILURES as error:
                where = ", ".join(f"{name} {setting}" for name, setting in point.items())
                why = "the result is too large" if isinstance(error, OverflowError) else str(error)
                raise let.refused(why + (f" (at {where})" if where else "")) from error
            values[key] = value
            return value

        return {key: compute(key) for key in self.lets}


def _below(data: Any, name: str) -> Any:
    for part in name.split("."):
        if isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return data
