"""Formulas of kinds as LaTeX, from the graphs of `dynamics_cli.kinds.tracing`: the text that computes is printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dynamics_cli.kinds import Kind, formulas, tracing
from dynamics_cli.kinds.formulas import EACH, NUMBER, Expression, NotAFormulaError

LETTERS = {
    "lr": r"\eta",
    "momentum": r"\mu",
    "weight_decay": r"\lambda",
    "beta": r"\beta",
    "beta1": r"\beta_1",
    "beta2": r"\beta_2",
    "eps": r"\varepsilon",
    "decay": r"\rho",
    "slope": r"\alpha",
    "delta": r"\delta",
    "gamma": r"\gamma",
    "iteration": "i",
    "loss": "L",
}
"""Keys and arguments of formulas with a letter of their own; others are written out."""
MEMORIES = {"momentum": "b", "mean": "m", "square": "v", "square_norm": "s"}
"""Letters of what optimizers remember."""
CONSTANTS = {
    math.sqrt(2 * math.pi): r"\sqrt{2 \pi}",
    2 / math.sqrt(math.pi): r"\frac{2}{\sqrt{\pi}}",
    math.sqrt(2): r"\sqrt{2}",
    math.sqrt(0.5): r"\frac{1}{\sqrt{2}}",
    math.pi: r"\pi",
}
FUNCTIONS = {"tanh": r"\tanh", "sin": r"\sin", "cos": r"\cos", "log": r"\log", "erf": r"\operatorname{erf}"}
FUNCTIONS |= {"sign": r"\operatorname{sign}", "ndtr": r"\Phi"}
RELATIONS = {"less": "<", "less_equal": r"\leq", "equal": "=", "not_equal": r"\neq"}
TURNED = {"less": ">", "less_equal": r"\geq"}

SUM, PRODUCT, ATOM = range(3)
"""How tightly a text holds together."""

Factors = dict[Any, int]
"""Factor -> its exponent: expressions, and sums that stand in products as `("sum", text, level)`."""


def _letter(name: str) -> str:
    return LETTERS.get(name) or r"\mathrm{" + name.replace("_", r"\_") + "}"


def _number(value: float) -> str:
    if value in CONSTANTS:
        return CONSTANTS[value]
    for denominator in (1, 2, 3, 4, 6, 8):
        if (value * denominator).is_integer() and abs(value) < 1e4:
            whole = int(value * denominator)
            return str(whole) if denominator == 1 else rf"\frac{{{whole}}}{{{denominator}}}"
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


class Printer:
    """Prints expressions; equal factors and equal terms are collected, the order of the formula stays.

    Args:
        names: expressions that have a name of their own, such as what an optimizer has just remembered.
        outputs: whether `h` are the outputs of a sample, of which `h_c` is one.

    """

    def __init__(self, names: Mapping[Expression, str] | None = None, *, outputs: bool = False) -> None:
        self.names, self.outputs = dict(names or {}), outputs
        self.letters: dict[str, str] = {}

    def text(self, at: Expression) -> str:
        """Return an expression as LaTeX."""
        return self._sum(at)[0]

    def whole(self, at: Expression) -> str:
        """Return the right side of an equation as LaTeX: its cases, where all choices are made by one condition."""
        conditions = {one.arguments[0] for one in self._inside(at) if one.operation == "where"}
        if len(conditions) != 1 or self.outputs:
            return self.text(at)
        (condition,) = conditions
        this, that = (self.text(self._decided(at, k, {})) for k in (1, 2))
        rows = rf"{this} & \text{{if }} {self._relation(condition)} \\ {that} & \text{{else}}"
        return rf"\begin{{cases}} {rows} \end{{cases}}"

    def _inside(self, at: Expression) -> Iterator[Expression]:
        """Yield an expression and all that it is made of, but not the parts of what has a name."""
        if at not in self.names:
            yield at
            for one in at.arguments:
                if isinstance(one, Expression):
                    yield from self._inside(one)

    def _decided(self, at: Expression, branch: int, known: dict[Expression, Expression]) -> Expression:
        """Return an expression with a branch of every choice in place of it: 1 where the condition holds, else 2."""
        if at in self.names or at.operation in ("symbol", "constant"):
            return at
        if at not in known:
            if at.operation == "where":
                known[at] = self._decided(at.arguments[branch], branch, known)
            else:
                known[at] = formulas.make(
                    at.table, at.operation, *(self._decided(one, branch, known) for one in at.arguments)
                )
        return known[at]

    # -- sums and products

    def _terms(self, at: Expression, sign: float = 1.0) -> Iterator[tuple[float, Expression]]:
        if at in self.names:
            yield sign, at
        elif at.operation in ("add", "subtract"):
            a, b = at.arguments
            if a is b and at.operation == "add":
                yield 2 * sign, a
                return
            yield from self._terms(a, sign)
            yield from self._terms(b, sign if at.operation == "add" else -sign)
        elif at.operation == "negative":
            yield from self._terms(at.arguments[0], -sign)
        else:
            yield sign, at

    def _collected(self, at: Expression) -> list[tuple[float, Factors]]:
        """Return a sum as coefficients and products of factors, equal products once."""
        found: list[tuple[float, Factors]] = []
        for sign, term in self._terms(at):
            coefficient, factors = self._product(term)
            for k, (value, others) in enumerate(found):
                if others == factors:
                    found[k] = value + sign * coefficient, others
                    break
            else:
                found.append((sign * coefficient, factors))
        found = [(value, factors) for value, factors in found if value != 0] or [(0.0, {})]
        if found[0][0] < 0:  # `b - a` is easier to read than `-a + b`
            first = next((k for k, (value, _) in enumerate(found) if value > 0), 0)
            found.insert(0, found.pop(first))
        return found

    def _product(self, at: Expression) -> tuple[float, Factors]:
        """Return a product as a coefficient and its factors with their exponents."""
        if at in self.names:
            return 1.0, {at: 1}
        if at.operation == "constant":
            return (at.arguments[0], {}) if at.arguments[0] not in CONSTANTS else (1.0, {at: 1})
        if at.operation in ("multiply", "divide"):
            (value, factors), (other, more) = map(self._product, at.arguments)
            power = 1 if at.operation == "multiply" else -1
            merged = dict(factors)
            for factor, exponent in more.items():
                merged[factor] = merged.get(factor, 0) + power * exponent
            return value * other**power, {factor: exponent for factor, exponent in merged.items() if exponent}
        if at.operation == "sigmoid":
            return 1.0, {("sum", self._one_and_power(at.arguments[0]), at.level): -1}
        if at.operation in ("add", "subtract", "negative"):
            terms = self._collected(at)
            return terms[0] if len(terms) == 1 else (1.0, {("sum", self._written(terms), at.level): 1})
        return 1.0, {at: 1}

    def _one_and_power(self, z: Expression) -> str:
        return rf"1 + e^{{{self._minus(z)}}}"

    def _minus(self, z: Expression) -> str:
        return self._written([(-value, factors) for value, factors in self._collected(z)])

    def _sum(self, at: Expression) -> tuple[str, int]:
        terms = self._collected(at)
        tight = SUM if len(terms) > 1 or terms[0][0] < 0 else PRODUCT
        if len(terms) == 1 and terms[0][0] == 1 and list(terms[0][1].values()) == [1]:
            (factor,) = terms[0][1]
            tight = SUM if isinstance(factor, tuple) else ATOM
        return self._written(terms), tight

    def _written(self, terms: Sequence[tuple[float, Factors]]) -> str:
        text = ""
        for k, (value, factors) in enumerate(terms):
            sign = ("-" if value < 0 else "") if k == 0 else " - " if value < 0 else " + "
            text += sign + self._fraction(abs(value), factors)
        return text

    def _fraction(self, value: float, factors: Factors) -> str:
        above = {factor: exponent for factor, exponent in factors.items() if exponent > 0}
        below = {factor: -exponent for factor, exponent in factors.items() if exponent < 0}
        turned = 1 / value if value else 0.0
        plain = all(getattr(factor, "operation", "") == "symbol" for factor in above)
        if not below and not (above and plain and turned.is_integer() and turned > 1):
            return self._factors(value, above)
        if turned.is_integer() and turned > 1:
            return rf"\frac{{{self._factors(1.0, above)}}}{{{self._factors(turned, below)}}}"
        return rf"\frac{{{self._factors(value, above)}}}{{{self._factors(1.0, below)}}}"

    def _factors(self, value: float, factors: Factors) -> str:
        alone = len(factors) == 1 and value == 1 and set(factors.values()) == {1}
        parts = [] if value == 1 and factors else [_number(value)]
        for factor, exponent in sorted(factors.items(), key=self._place):
            text, tight = (factor[1], SUM) if isinstance(factor, tuple) else self._atom(factor)
            if tight == SUM and not alone:
                text, tight = rf"\left({text}\right)", ATOM
            if exponent != 1:
                text = self._raised(factor, text, str(exponent))
            parts.append(text)
        return " ".join(parts)

    @staticmethod
    def _place(item: tuple[Any, int]) -> int:
        """Return where a factor stands: numbers, numbers of a kind, arguments, sums, functions."""
        factor = item[0]
        if isinstance(factor, tuple):
            return 3 if factor[2] else 1
        return {"constant": 0, "symbol": 1 if factor.level == NUMBER else 2}.get(factor.operation, 4)

    @staticmethod
    def _raised(factor: Any, text: str, exponent: str) -> str:
        function = FUNCTIONS.get(getattr(factor, "operation", ""))
        if function and text.startswith(function):
            return rf"{function}^{{{exponent}}}{text[len(function) :]}"
        return rf"{{{text}}}^{{{exponent}}}"

    # -- everything else

    def _atom(self, at: Expression) -> tuple[str, int]:  # noqa: PLR0911 - one return an operation
        if at in self.names:
            return self.names[at], ATOM
        operation, arguments = at.operation, at.arguments
        if operation == "symbol":
            return self._symbol(arguments[0], at.level), ATOM
        if operation == "constant":
            return _number(arguments[0]), ATOM if arguments[0] >= 0 else SUM
        if operation == "where":
            return self._indicator(at), ATOM
        if operation in RELATIONS:
            return self._relation(at), SUM
        if operation == "power":
            base, tight = self._sum(arguments[0])
            return rf"{{{base if tight == ATOM else self._bracketed(base)}}}^{{{self.text(arguments[1])}}}", ATOM
        if operation in ("maximum", "minimum"):
            return rf"\{operation[:3]}{self._bracketed(', '.join(map(self.text, arguments)))}", ATOM
        if operation in FUNCTIONS:
            return FUNCTIONS[operation] + self._bracketed(self.text(arguments[0])), ATOM
        inner = self.text(arguments[0])
        return {
            "sqrt": lambda: (inner[:-2] if self._is_norm(inner) else rf"\sqrt{{{inner}}}", ATOM),
            "abs": lambda: (rf"\left|{inner}\right|", ATOM),
            "exp": lambda: self._exponential(arguments[0]),
            "expm1": lambda: (rf"e^{{{inner}}} - 1", SUM),
            "log1p": lambda: (rf"\log\left(1 + {inner}\right)", ATOM),
            "softplus": lambda: (rf"\log\left(1 + e^{{{inner}}}\right)", ATOM),
            "total": lambda: self._total(arguments[0]),
            "logsumexp": lambda: (rf"\log {self._over_outputs(arguments[0])}", PRODUCT),
            "pick": lambda: (self._picked(arguments[0]), ATOM),
        }[operation]()

    @staticmethod
    def _bracketed(text: str) -> str:
        return rf"\left({text}\right)" if "frac" in text or "left" in text else f"({text})"

    def _symbol(self, name: str, level: int) -> str:
        for start in ("number_", "weight_", "whole_"):
            if name.startswith(start):
                short = name.removeprefix(start)
                if start == "number_":
                    if name == "number_of_output":
                        return "c"
                    self.letters[short] = _letter(short)
                    return _letter(short)
                return MEMORIES.get(short) or r"\mathrm{" + short.replace("_", r"\_") + "}"
        if self.outputs and name == "h":
            return "h_c"
        if name in LETTERS:
            self.letters[name] = LETTERS[name]
        return LETTERS.get(name, name)

    def _exponential(self, z: Expression) -> tuple[str, int]:
        """Return a power of e; less a `logsumexp` it is a share."""
        terms = list(self._terms(z))
        for sign, term in terms:
            if sign < 0 and term.operation == "logsumexp" and len(terms) == 2:
                (rest,) = (one for one in terms if one[1] is not term)
                return rf"\frac{{e^{{{self.text(rest[1])}}}}}{{{self._over_outputs(term.arguments[0])}}}", ATOM
        return rf"e^{{{self.text(z)}}}", ATOM

    def _over_outputs(self, h: Expression) -> str:
        return rf"\sum_k e^{{{self.text(h).replace('h_c', 'h_k')}}}"

    def _picked(self, h: Expression) -> str:
        return self.text(h).replace("h_c", "h_y")

    def _total(self, a: Expression) -> tuple[str, int]:
        value, factors = self._product(a)
        if value == 1 and list(factors.values()) == [2]:
            (factor,) = factors
            text = factor[1] if isinstance(factor, tuple) else self._atom(factor)[0]
            return rf"\lVert {text} \rVert^2", ATOM
        return rf"\sum {self._bracketed(self.text(a))}", PRODUCT

    @staticmethod
    def _is_norm(text: str) -> bool:
        return text.startswith(r"\lVert") and text.endswith(r"\rVert^2") and text.count(r"\lVert") == 1

    def _relation(self, at: Expression) -> str:
        a, b = at.arguments
        if a.operation == "constant" and at.operation in TURNED:
            return f"{self.text(b)} {TURNED[at.operation]} {self.text(a)}"
        return f"{self.text(a)} {RELATIONS[at.operation]} {self.text(b)}"

    def _indicator(self, at: Expression) -> str:
        condition, this, that = at.arguments
        if [_value(this), _value(that)] == [1.0, 0.0]:
            self.letters["indicator"] = relation = f"[{self._relation(condition)}]"
            return relation
        rows = f"{self.text(this)} & \\text{{if }} {self._relation(condition)} \\\\ {self.text(that)} & \\text{{else}}"
        return rf"\begin{{cases}} {rows} \end{{cases}}"


def _value(at: Expression) -> float | None:
    return at.arguments[0] if at.operation == "constant" else None


def activation(kind: Any) -> tuple[list[str], dict[str, str]]:
    """Return the equations of an activation and of its derivative, and keys with their letters.

    Raises:
        NotAFormulaError: it cannot be traced.
    """
    (value, slope), _ = tracing.traced(kind, tracing.curve)
    printer = Printer()
    return [
        rf"\sigma(z) = {printer.whole(value)}",
        rf"\frac{{d \sigma}}{{d z}} = {printer.whole(slope)}",
    ], printer.letters


def loss(kind: Any) -> tuple[list[str], dict[str, str]]:
    """Return the equations of a loss and of its derivative by an output, and the letters; as `activation`."""
    (value, slope, _), _ = tracing.traced(kind, tracing.loss_and_slope)
    printer = Printer(outputs=kind.labels == "classes")
    by = "h_c" if kind.labels == "classes" else "h"
    equations = [
        rf"\ell(h, y) = {printer.whole(value)}",
        rf"\frac{{\partial \ell}}{{\partial {by}}} = {printer.whole(slope)}",
    ]
    return equations, printer.letters


def optimizer(kind: Any) -> tuple[list[str], dict[str, str]]:
    """Return the assignments of an update in their order, and keys with their letters; as `activation`."""
    kept: list[Any] = []

    def update(kind: Any, trace: tracing.Trace) -> list[Expression]:
        if not kind.by_formula:
            raise NotAFormulaError(f"{type(kind).__name__} is no formula of a weight")
        kept[:] = tracing.update(kind, trace)
        return [kept[0]]

    tracing.traced(kind, update)
    weight, memory, whole = kept
    printer, equations = Printer(), []
    for remembered in (whole, memory):
        for name, value in remembered.written.items():
            letter = printer._symbol(f"weight_{name}", EACH)
            printer.letters[f"memory {name}"] = letter
            equations.append(rf"{letter} \leftarrow {printer.whole(value)}")
            old = remembered.read.get(name)
            if old is not None:
                printer.names[old] = rf"{letter}_\text{{old}}"
            printer.names[value] = letter
    equations.append(rf"w \leftarrow {printer.whole(weight)}")
    return equations, printer.letters


PRINTED: dict[str, Callable[[Any], tuple[list[str], dict[str, str]]]] = {
    "activation": activation,
    "loss": loss,
    "optimizer": optimizer,
}


def equations(kind: Kind) -> tuple[list[str], dict[str, str]]:
    """Return the equations of a kind in LaTeX and its keys with their letters, empty where it is no formula."""
    if kind.section not in PRINTED or tracing.facts(kind) is None:
        return [], {}
    return PRINTED[kind.section](kind)
