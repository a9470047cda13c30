"""Values of a sweep that are computed from others: `optimizer.lr = min(10, 0.1 / initialization.scale**2)`.

An expression is read as a syntax tree of which a few nodes are known; nothing else is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from dynamics_cli.config.source import Origin
from dynamics_cli.errors import UsageError

Number = int | float
LONGEST = 500
"""Characters of an expression."""
_LONGEST_INTEGER = 1024
"""Bits of an integer that products and powers may give; longer ones are floats, which overflow at once."""


def _power(a: Number, b: Number) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(b) * a.bit_length() > _LONGEST_INTEGER:
        a = float(a)
    return a**b


def _product(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > _LONGEST_INTEGER:
        a = float(a)
    return a * b


def _rounded(a: Number, *digits: int) -> Any:
    """Return `round(a, *digits)`, which would take hours for a billion digits before the point."""
    return round(a, *(max(count, -_LONGEST_INTEGER) for count in digits))


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _product, ast.Div: operator.truediv, ast.Pow: _power,
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "abs": abs, "round": _rounded,
    "int": int,
}  # fmt: skip
_KNOWN = f"numbers, keys, + - * / **, parentheses and {', '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class Let:
    """A setting whose value is computed."""

    key: str
    expression: str
    origin: Origin | None = field(default=None, compare=False)
    """Where it was written."""

    @property
    def called(self) -> str:
        """The setting and its expression, as messages name them."""
        return f"{self.key} = {self.expression}"


def parse_let(text: str) -> Let:
    """Return the computed setting of `key=expression`.

    Raises:
        UsageError: it has no such form, or the expression cannot be read.
    """
    key, equals, written = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")) or not written.strip():
        raise UsageError(f"--let {text!r} must have the form key=expression")
    let = Let(key.strip(), written.strip())
    for _ in _names(_parsed(let), let):
        pass
    return let


def _parsed(let: Let) -> ast.expr:
    try:
        if len(let.expression) > LONGEST:
            raise ValueError
        return ast.parse(let.expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{let.called[:LONGEST]}: not an expression; it may hold {_KNOWN}") from error


def _name(node: ast.expr) -> str | None:
    """Return the dotted key that a node spells, `dataset.y[0]` as `dataset.y.0`; None for what is no key."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=below, attr=last):
            pass
        case ast.Subscript(value=below, slice=ast.Constant(value=int(last))):
            pass
        case _:
            return None
    above = _name(below)
    return None if above is None else f"{above}.{last}"


def _names(node: ast.expr, let: Let) -> Iterator[str]:
    """Yield the keys that an expression names.

    Raises:
        UsageError: it holds something else than it may.
    """
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            parts = [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            parts = [operand]
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in FUNCTIONS:
            parts = arguments
        case _:
            if (name := _name(node)) is None:
                raise UsageError(f"{let.called}: {ast.unparse(node)!r} is not known here; it may hold {_KNOWN}")
            yield name
            return
    for part in parts:
        yield from _names(part, let)


def _value(node: ast.expr, look: Callable[[str], Number]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, look), _value(right, look))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_value(operand, look))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return FUNCTIONS[function](*(_value(argument, look) for argument in arguments))
    return look(str(_name(node)))


def evaluate(expression: str, config: Mapping[str, Any], called: str) -> float:
    """Return the value of an expression of the keys of a config as plain data; messages name it as `called`.

    Raises:
        UsageError: it cannot be read, names what is no number of the config, or the arithmetic fails.
    """
    return float(Computed([Let(called, expression)], ["seed"]).at({}, config)[called])


class Computed:
    """The computed settings of a sweep."""

    def __init__(self, lets: Sequence[Let], swept: Sequence[str] = ()) -> None:
        """Read the expressions.

        Raises:
            UsageError: one cannot be read, a key is computed twice or swept too, or names go round in a circle.
        """
        self.lets = {let.key: let for let in lets}
        if twice := [let.key for let in lets if let.key in swept or self.lets[let.key] is not let]:
            raise UsageError(f"{twice[0]} gets its value twice; sweep it or compute it once")
        self._trees = {key: _parsed(let) for key, let in self.lets.items()}
        named = {key: set(_names(self._trees[key], let)) for key, let in self.lets.items()}
        try:
            order = TopologicalSorter({key: names & named.keys() for key, names in named.items()}).static_order()
            self._order = list(order)
        except CycleError as error:
            circle = " <- ".join(reversed(error.args[1]))
            raise UsageError(f"the computed values go round in a circle: {circle}") from error
        if "seed" not in swept and any("seed" in names for names in named.values()):
            raise UsageError("a computed value cannot depend on the seed, unless seed is one of the axes")

    def at(self, point: Mapping[str, Any], written: Any) -> dict[str, Number]:
        """Return the computed settings at a point of the grid; other names are looked up in the config as `written`.

        Raises:
            UsageError: a name has no number, or the arithmetic fails.
        """
        values: dict[str, Number] = {}

        def look(name: str) -> Number:
            value = values[name] if name in values else point[name] if name in point else _below(written, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                told = "is neither swept nor written in the config" if value is None else f"is {value!r}, not a number"
                raise UsageError(f"{self.lets[key].called}: {name} {told}")
            return value

        for key in self._order:
            try:
                value = _value(self._trees[key], look)
                if not isinstance(value, int | float) or not math.isfinite(value):
                    raise ValueError(f"gives {value}")
            except (ArithmeticError, ValueError, TypeError) as error:
                where = ", ".join(f"{name} {setting}" for name, setting in point.items())
                told = "the result is too large" if isinstance(error, OverflowError) else str(error)
                raise UsageError(f"{self.lets[key].called}: {told}" + (f" (at {where})" if where else "")) from error
            values[key] = value
        return {key: values[key] for key in self.lets}


def _below(data: Any, name: str) -> Any:
    for part in name.split("."):
        if isinstance(data, list) and part.isdecimal() and int(part) < len(data):
            data = data[int(part)]
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return data
