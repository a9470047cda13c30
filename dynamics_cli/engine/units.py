"""Compiled units: activations, losses and updates, made from the formulas of their kinds.

A unit is a C function of pointers whose source is written from a traced formula (`kinds/formulas.py`) into the folder
of numba's cache, where numba keeps compiled code. The kernels of networks call units by address, so that a new kind
costs the compilation of a small function, and no kernel is compiled again. Numbers of a kind (a slope, a momentum)
are arguments of its unit: many values share a function.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.compiling import cache_folder, say_not_kept
from dynamics_cli.kinds import Activation, Descent, Loss, formulas
from dynamics_cli.kinds.formulas import EACH, NUMBER, WHOLE, Expression
from dynamics_cli.kinds.tracing import Trace, bend, curve, loss_and_slope, traced, update

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**",
          "less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}  # fmt: skip
_CALLS = {"abs": "abs", "sqrt": "np.sqrt", "sin": "np.sin", "cos": "np.cos", "sign": "np.sign"}
_OPTIONS = '{"error_model": "numpy", "_nrt": False, "fastmath": {"contract"}}'


@dataclass(frozen=True)
class Unit:
    """A compiled function and the numbers of the kind that it was made for."""

    address: int
    numbers: NDArray[np.float64]
    """(q,), its last argument."""


# -- sources


class Writer:
    """Lines of a unit; every expression becomes a local name, those of level `EACH` anew in every loop."""

    def __init__(self, names: Mapping[str, str], reduce: Callable[[Writer, Expression], None], wide: bool) -> None:
        self.lines: list[str] = []
        self.names = dict(names)
        self.depth = 1
        self._there: dict[Expression, str] = {}
        self._reduce, self._wide = reduce, wide

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + text)

    def outside(self, nodes: Sequence[Expression]) -> None:
        """Write the operations of `nodes` below level `EACH`, once, before any loop over outputs or weights."""
        for node in formulas.ordered(nodes):
            if node.level != EACH and node not in self._there:
                self._write(node, self._there)

    def inside(self, nodes: Sequence[Expression]) -> list[str]:
        """Write the operations of `nodes` at level `EACH`; return the names of the nodes."""
        there = dict(self._there)
        for node in formulas.ordered(nodes):
            if node.level == EACH and node not in there and self._needed(node, nodes):
                self._write(node, there)
        return [self._name(node, there, EACH) for node in nodes]

    def _needed(self, node: Expression, nodes: Sequence[Expression]) -> bool:
        """Return whether a node is reached without going through a reduction, which is there already."""
        reached, waiting = set(), list(nodes)
        while waiting:
            at = waiting.pop()
            if at not in reached and at not in self._there:
                reached.add(at)
                waiting.extend(one for one in at.arguments if isinstance(one, Expression))
        return node in reached

    def _name(self, node: Expression, there: Mapping[Expression, str], level: int) -> str:
        """Return the name of a node among numbers of a level: wide numbers become of the precision of the run."""
        wide = self.is_wide(level)
        if node.operation == "constant":
            return repr(node.arguments[0]) if wide else f"real({node.arguments[0]!r})"
        name = there[node]
        return name if wide or not self.is_wide(node.level) else f"real({name})"

    def is_wide(self, level: int) -> bool:
        """Return whether numbers of a level are float64 whatever the run's precision."""
        return level == NUMBER or (level == WHOLE and self._wide)

    def _write(self, node: Expression, there: dict[Expression, str]) -> None:
        if node.operation == "constant":
            return
        if node.operation == "symbol":
            there[node] = self.names[node.arguments[0]]
            return
        name = there[node] = f"v{node.key}"
        if node.operation in ("total", "total_of_all", "logsumexp", "pick"):
            self._reduce(self, node)
            return
        a = [self._name(one, there, node.level) for one in node.arguments]
        if node.operation in _INFIX:
            text = f"{a[0]} {_INFIX[node.operation]} {a[1]}"
        elif node.operation == "negative":
            text = f"-{a[0]}"
        elif node.operation == "where":
            text = f"{a[1]} if {a[0]} else {a[2]}"
        elif node.operation in ("maximum", "minimum"):  # NaN stays
            text = f"{a[1]} if {a[0]} {'<' if node.operation == 'maximum' else '>'} {a[1]} else {a[0]}"
        else:
            text = f"{_CALLS.get(node.operation, node.operation)}({a[0]})"
        self.line(f"{name} = {text}")


def _reduce_outputs(writer: Writer, node: Expression) -> None:
    """Write a sum over the outputs of a sample."""
    name, operand = f"v{node.key}", node.arguments[0]

    def loop(start: str, step: Callable[[str], str]) -> None:
        writer.line(f"{name} = {start}")
        writer.line("for c in range(C):")
        writer.depth += 1
        writer.line(step(writer.inside([operand])[0]))
        writer.depth -= 1

    if node.operation == "logsumexp":
        loop("real(-np.inf)", lambda term: f"{name} = max({name}, {term})")
        writer.line(f"top = {name}")
        loop("real(0)", lambda term: f"{name} += exp({term} - top)")
        writer.line(f"{name} = top + log({name})")
    elif node.operation == "pick":
        label = writer.names["y"]
        loop("real(0)", lambda term: f"{name} += {term} if c == {label} else real(0)")
    else:
        loop("real(0)", lambda term: f"{name} += {term}")


def _numbers(trace: Trace) -> dict[str, str]:
    return {f"number_{key}": f"numbers[{k}]" for k, key in enumerate(trace.numbers)}


def _address(dtype: np.dtype[Any], name: str, arguments: str, result: str, body: Sequence[str]) -> int:
    """Compile a unit and return its address; `arguments` are `name: type`, `*` for a pointer."""
    real = "float32" if dtype == np.float32 else "float64"
    given = [one.split(":") for one in arguments.replace(" ", "").split(",")]
    types = [t.replace("real", real) for _, t in given]
    types = [f"types.CPointer(types.{t[:-1]})" if t.endswith("*") else f"types.{t}" for t in types]
    lines = [
        f"import numpy as np\nfrom numba import cfunc, types\nfrom numpy import {real} as real\n",
        f"from dynamics_cli.engine.elementary import {', '.join(formulas.ELEMENTARY)}",
        "from dynamics_cli.engine.native import offset\n\n",
        f"@cfunc(types.{result}({', '.join(types)}), cache=CACHE, **{_OPTIONS})",
        f"def {name}({', '.join(one for one, _ in given)}):",
        *body,
    ]
    return _compiled("\n".join(lines) + "\n", name)


@cache
def _compiled(source: str, name: str) -> int:
    from dynamics_cli.engine import elementary

    assert elementary.__file__ is not None
    below = hashlib.sha256(source.encode() + Path(elementary.__file__).read_bytes()).hexdigest()[:20]
    module, path = ModuleType(f"dyn_{name}_{below}"), _written(f"{name}_{below}.py", source)
    sys.modules[module.__name__] = module
    if path is not None:
        module.__file__ = str(path)
    text = source.replace("cache=CACHE", f"cache={path is not None}")
    exec(compile(text, str(path or module.__name__), "exec"), module.__dict__)  # noqa: S102 - our own formulas
    _ALIVE.append(module)
    return int(getattr(module, name).address)


def _written(name: str, text: str) -> Path | None:
    """Write the source of a unit beside numba's cache, which asks for its file; None where it cannot be kept."""
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / "units" / name
    try:
        if not path.exists():  # numba compares times; two processes write the same
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
                part.write(text)
            Path(part.name).replace(path)
    except OSError as error:
        say_not_kept(error.strerror)
        with suppress(OSError, NameError):
            Path(part.name).unlink()
        return None
    return path


_ALIVE: list[Any] = []
"""Modules of units: their code lives as long as they do."""


# -- activations


def activation_unit(sigma: Activation, dtype: np.dtype[Any], order: int = 1) -> Unit:
    """Return `(z, s, b, n, numbers)`, which replaces `z` (n,) by sigma(z) and fills `s` with sigma'; `b` with sigma''.

    `b` is filled with `order` 2 alone.

    Raises:
        NotAFormulaError: the activation is no formula.
    """
    nodes, trace = traced(sigma, lambda kind, trace: curve(kind, trace, order))
    writer = Writer({"z": "x", **_numbers(trace)}, _reduce_outputs, wide=False)
    arrays = ["z", "s", "b"][: order + 1]
    writer.outside(nodes)
    writer.line("for i in range(n):")
    writer.depth += 1
    writer.line("x = z[i]")
    for array, value in zip(arrays, writer.inside(nodes), strict=True):
        writer.line(f"{array}[i] = {value}")
    arguments = "z: real*, s: real*, b: real*, n: int64, numbers: float64*"
    return Unit(_address(dtype, "activation", arguments, "void", writer.lines), _array(trace))


def _array(trace: Trace) -> NDArray[np.float64]:
    return np.array(list(trace.numbers.values()), np.float64)


# -- losses


def loss_unit(loss: Loss, dtype: np.dtype[Any]) -> Unit:
    """Return `(f, y, delta, n, C, weight, numbers)`, which fills `delta` (n, C) and returns the summed losses.

    `delta` is `weight dl/df`; where a real label is NaN, the loss is 0.

    Raises:
        NotAFormulaError: the loss is no formula.
    """
    nodes, trace = traced(loss, lambda kind, trace: loss_and_slope(kind, trace)[:2])
    value, slope = nodes
    classes = loss.labels == "classes"
    names = {"h": "f[q * C + c]", "y": "label" if classes else "y[q * C + c]", "number_of_output": "c"}
    writer = Writer({**names, **_numbers(trace)}, _reduce_outputs, wide=False)
    writer.line("summed = 0.0")
    writer.line("for q in range(n):")
    writer.depth += 1
    if classes:
        writer.line("label = y[q]")
    writer.outside(nodes)
    if value.level != EACH:
        writer.line(f"summed += {writer._name(value, writer._there, WHOLE)}")
    writer.line("for c in range(C):")
    writer.depth += 1
    if value.level == EACH:
        term, derivative = writer.inside(nodes)
        writer.line("seen = not np.isnan(y[q * C + c])")
        writer.line(f"summed += np.float64({term}) if seen else 0.0")
        writer.line(f"delta[q * C + c] = weight * {derivative} if seen else real(0)")
    else:
        (derivative,) = writer.inside([slope])
        writer.line(f"delta[q * C + c] = weight * {derivative}")
    writer.depth = 1
    writer.line("return summed")
    arguments = "f: real*, y: real*, delta: real*, n: int64, C: int64, weight: real, numbers: float64*"
    return Unit(_address(dtype, "loss", arguments, "float64", writer.lines), _array(trace))


def loss_curvature_unit(loss: Loss, dtype: np.dtype[Any]) -> Unit:
    """Return `(f, y, v, out, n, C, weight, numbers)`, which fills `out` (n, C) with `weight d2l/df2 v`.

    Raises:
        NotAFormulaError: the loss is no formula.
    """
    nodes, trace = traced(loss, bend)
    classes = loss.labels == "classes"
    names = {
        "h": "f[q * C + c]", "y": "label" if classes else "y[q * C + c]", "v": "v[q * C + c]", "number_of_output": "c",
    }  # fmt: skip
    writer = Writer({**names, **_numbers(trace)}, _reduce_outputs, wide=False)
    writer.line("for q in range(n):")
    writer.depth += 1
    if classes:
        writer.line("label = y[q]")
    writer.outside(nodes)
    writer.line("for c in range(C):")
    writer.depth += 1
    (value,) = writer.inside(nodes)
    seen = "real(0)" if classes else "real(0) if np.isnan(y[q * C + c]) else "
    writer.line(f"out[q * C + c] = {'' if classes else seen}weight * {value}")
    arguments = "f: real*, y: real*, v: real*, out: real*, n: int64, C: int64, weight: real, numbers: float64*"
    return Unit(_address(dtype, "loss_curvature", arguments, "void", writer.lines), _array(trace))


def pulling_unit() -> int:
    """Return the address of a loss in float64 whose `delta` is `weight y`, so that backward passes begin at `y`."""
    arguments = "f: real*, y: real*, delta: real*, n: int64, C: int64, weight: real, numbers: float64*"
    body = ["    for k in range(n * C):", "        delta[k] = weight * y[k]", "    return 0.0"]
    return _address(np.dtype(np.float64), "pulling", arguments, "float64", body)


# -- updates


_UPDATE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_double,
    ctypes.c_int64, ctypes.c_double, ctypes.c_void_p,
)  # fmt: skip
_ONE = ctypes.byref(ctypes.c_double(1.0))


@dataclass(frozen=True)
class Update(Unit):
    """A compiled update `(theta, g, memory, P, segments, S, factors, lr, iteration, loss, numbers)`.

    `theta`, `g` (P,), `memory` (slots, P); `segments` (S, 2) says where trained tensors begin and end, `factors` (S,)
    the factors of their steps. The memory of a tensor stands in the place of its first weight.
    """

    slots: tuple[str, ...]
    """The memory, by name."""
    by_tensor: bool
    """Whether every tensor must be a segment of its own."""

    def apply(self, theta: int, g: int, memory: int, P: int, lr: float, iteration: int, loss: float) -> None:
        """Update `P` numbers at an address, given the addresses of the gradient and of the memory."""
        function, numbers = self._callable
        function(theta, g, memory, P, (ctypes.c_int64 * 2)(0, P), 1, _ONE, lr, iteration, loss, numbers)

    @cached_property
    def _callable(self) -> tuple[Callable[..., None], int]:
        return _UPDATE(self.address), self.numbers.ctypes.data


def update_unit(optimizer: Descent, dtype: np.dtype[Any]) -> Update:
    """Return the compiled update of an optimizer.

    Raises:
        NotAFormulaError: the update is no formula.
    """
    found: list[Any] = []

    def trace_update(kind: Any, trace: Trace) -> list[Expression]:
        weight, memory, whole = update(kind, trace)
        found[:] = [memory, whole]
        return [weight, *memory.written.values(), *whole.written.values()]

    nodes, trace = traced(optimizer, trace_update)
    memory, whole = found
    slots = (*memory.read, *whole.read)
    reductions = {one.operation for one in formulas.ordered(nodes)}.intersection(formulas.SUMS)
    sums, network = bool(reductions or whole.read), "total_of_all" in reductions
    kept = dict(zip(memory.written, nodes[1:], strict=False))
    totals = dict(zip(whole.written, nodes[1 + len(kept) :], strict=True))
    place = {name: f"s{k}[i]" for k, name in enumerate(slots)}
    names = {
        "w": "w", "g": "d[i]", "lr": "step", "iteration": "iteration", "loss": "loss",
        **{f"weight_{name}": f"m{slots.index(name)}" for name in memory.read},
        **{f"whole_{name}": f"m{slots.index(name)}" for name in whole.read}, **_numbers(trace),
    }  # fmt: skip

    def over(writer: Writer, q: str, write: Callable[[], None]) -> None:
        writer.line(f"first, last = segments[2 * {q}], segments[2 * {q} + 1]")
        writer.line("t, d = offset(theta, first), offset(g, first)")
        for name in memory.read:
            k = slots.index(name)
            writer.line(f"s{k} = offset(memory, {k} * P + first)")
        writer.line("for i in range(last - first):")
        writer.depth += 1
        writer.line("w = t[i]")
        for name in memory.read:
            writer.line(f"m{slots.index(name)} = {place[name]}")
        write()
        writer.depth -= 1

    def reduce(writer: Writer, node: Expression) -> None:
        name = f"v{node.key}"

        def add() -> None:
            writer.line(f"{name} += np.float64({writer.inside([node.arguments[0]])[0]})")

        writer.line(f"{name} = 0.0")
        if network:
            writer.line("for p in range(S):")
            writer.depth += 1
        over(writer, "p" if network else "q", add)
        if network:
            writer.depth -= 1

    def write_weights() -> None:
        values = writer.inside([nodes[0], *kept.values()])
        writer.line(f"t[i] = {values[0]}")
        for name, value in zip(kept, values[1:], strict=True):
            # of weights whose gradient stays 0 it ends at 0: on denormal numbers a step takes twice as long
            writer.line(f"kept = {value}")
            writer.line(f"{place[name]} = kept if abs(kept) >= tiny else real(0)")

    writer = Writer(names, reduce, wide=True)
    writer.line(f"tiny = real({100 * float(np.finfo(dtype).tiny)!r})")

    def head(q: str) -> None:
        writer.line(f"step = lr * factors[{q}]")
        for name in whole.read:
            writer.line(f"m{slots.index(name)} = np.float64(memory[{slots.index(name)} * P + segments[2 * {q}]])")
        writer.outside(nodes)
        for name, node in totals.items():
            writer.line(f"memory[{slots.index(name)} * P + segments[2 * {q}]] = real({writer._there[node]})")

    if network:
        head("0")
    writer.line("for q in range(S):")
    writer.depth += 1
    if not network:
        head("q")
    over(writer, "q", write_weights)
    arguments = (
        "theta: real*, g: real*, memory: real*, P: int64, segments: int64*, S: int64, factors: float64*, lr: float64, "
        "iteration: int64, loss: float64, numbers: float64*"
    )
    address = _address(dtype, "update", arguments, "void", writer.lines)
    return Update(address, _array(trace), slots, sums and not network)
