"""Compiled units: activations, losses and updates, made from the formulas of their kinds.

A formula is traced (`formulas/tracing.py`), and its operations are written into the holes of a
template, `_ACTIVATION`, `_LOSS` or `_UPDATE`: a function whose source lies beside numba's cache,
where numba keeps compiled code. The kernels of networks call units by address, so that a new kind
costs the compilation of a small function, and no kernel is compiled again. Numbers of a kind (a
slope, a momentum) are arguments of its unit: many values share it.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.formulas import algebra as formulas
from dynamics_cli.formulas import elementary
from dynamics_cli.formulas.algebra import EACH, NUMBER, WHOLE, Expression
from dynamics_cli.formulas.compiling import cache_folder, say_not_kept
from dynamics_cli.formulas.native import Native, vectors_at_once
from dynamics_cli.formulas.tracing import (
    Trace,
    Traceable,
    bend,
    curve,
    facts,
    loss_and_slope,
    remembered,
    traced,
    update,
)

_FORMS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "power": "{} ** {}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "negative": "-{}",
    "where": "{1} if {0} else {2}",
    "maximum": "{1} if {0} < {1} else {0}",
    "minimum": "{1} if {0} > {1} else {0}",
    "expm1": "np.expm1({})",
    "log1p": "np.log1p({})",
    "sqrt": "np.sqrt({})",
    "sign": "np.sign({})",
}
"""Operation -> its source, where it is no function of `formulas/elementary.py`; `maximum` and
`minimum` keep NaN.
"""
_AT_ONCE = dict.fromkeys(elementary.FUNCTIONS, 2) | {"tanh": 4, "erf": 4}
"""Vectors that activations with a function work on side by side: on AVX2 tanh takes three quarters
of the time, `sigmoid` takes four fifths by 2 and half again as long by 4.
"""
_REDUCTIONS = ("total", "total_of_all", "logsumexp", "pick")


class LossFormula(Traceable, Protocol):
    """A loss, as far as its unit needs one."""

    @property
    def labels(self) -> str:
        """`classes`, whose numbers pick an output, or others."""


@dataclass(frozen=True)
class Unit:
    """A compiled function and the numbers of the kind that it was made for."""

    native: Native
    numbers: NDArray[np.float64]
    """(q,), its last argument; at least one, so that they have an address."""
    slots: tuple[str, ...] = ()
    """The memory of an update, by name."""
    of_network: tuple[str, ...] = ()
    """Those of them that hold a number of all weights together, in the place of the first."""


# -- sources


class Writer:
    """Writes expressions as lines that assign local names.

    Names of level `EACH` are assigned again in every loop.
    """

    def __init__(
        self, names: Mapping[str, str], loop: Callable[[Sequence[str]], list[str]], *, wide: bool
    ) -> None:
        """Take the source of symbols, a loop over outputs or weights, and the type of sums."""
        self._names = names
        self._loop = loop
        self._wide = wide
        self._known: dict[Expression, str] = {}

    def whole(self, nodes: Sequence[Expression]) -> list[str]:
        """Return lines of all operations below level `EACH`, which stand before any loop."""
        lines: list[str] = []
        for node in formulas.ordered(nodes):
            if node.level != EACH and node not in self._known:
                lines += self._assigned(node, self._known)
        return lines

    def again(self, nodes: Sequence[Expression], name: str) -> list[str]:
        """Return lines of the operations at level `NUMBER` that depend on a symbol of this name."""
        depending: set[Any] = set()
        lines: list[str] = []
        for node in formulas.ordered(nodes):
            if node.operation == "symbol" and node.arguments[0] == name:
                depending.add(node)
            elif node.level == NUMBER and not depending.isdisjoint(node.arguments):
                depending.add(node)
                lines += self._assigned(node, self._known)
        return lines

    def each(self, nodes: Sequence[Expression]) -> tuple[list[str], list[str]]:
        """Return the lines of operations at level `EACH`, inside a loop, and the names of nodes."""
        known = dict(self._known)
        lines = []
        for node in formulas.ordered(nodes):
            if node.level == EACH:  # those that only reductions need are left out by the compiler
                lines += self._assigned(node, known)
        return lines, [self._name(node, known, EACH) for node in nodes]

    def name(self, node: Expression) -> str:
        """Return the name of a node below level `EACH`."""
        return self._name(node, self._known, WHOLE)

    def _name(self, node: Expression, known: Mapping[Expression, str], level: int) -> str:
        """Return the name of a node among numbers of a level, in the precision of that level."""
        if self._is_wide(node.level) and not self._is_wide(level):
            return f"real({known[node]})"
        return known[node]

    def _is_wide(self, level: int) -> bool:
        """Return whether numbers of a level are float64 whatever the run's precision."""
        return level == NUMBER or (level == WHOLE and self._wide)

    def _assigned(self, node: Expression, known: dict[Expression, str]) -> list[str]:
        """Return the lines that compute a node, and make its name known."""
        if node.operation == "constant":
            known[node] = repr(node.arguments[0])
            return []
        if node.operation == "symbol":
            known[node] = self._names[node.arguments[0]]
            return []
        name = f"v{node.key}"
        known[node] = name
        if node.operation in _REDUCTIONS:
            return self._reduced(name, node)
        arguments = [self._name(argument, known, node.level) for argument in node.arguments]
        form = _FORMS.get(node.operation, node.operation + "({})")
        return [f"{name} = {form.format(*arguments)}"]

    def _reduced(self, name: str, node: Expression) -> list[str]:
        """Return the lines of a sum over outputs or weights."""
        lines, (term,) = self.each(node.arguments[:1])
        if node.operation == "logsumexp":
            return [
                f"{name} = real(-np.inf)",
                *self._loop([*lines, f"{name} = max({name}, {term})"]),
                f"top = {name}",
                f"{name} = real(0)",
                *self._loop([*lines, f"{name} += exp({term} - top)"]),
                f"{name} = top + log({name})",
            ]
        if node.operation == "pick":
            term = f"{term} if c == {self._names['y']} else real(0)"
        zero = "real(0)"
        if self._wide:
            zero = "0.0"
            term = f"np.float64({term})"
        return [f"{name} = {zero}", *self._loop([*lines, f"{name} += {term}"])]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _filled(template: str, **holes: Sequence[str] | str) -> str:
    """Return a template with its holes filled.

    A hole that is a line of its own takes any number of lines.
    """

    def block(hole: re.Match[str]) -> str:
        lines = holes[hole[2]]
        if isinstance(lines, str):
            return hole[0]
        return indent("".join(f"{line}\n" for line in lines), hole[1])

    return re.sub(r"( *){(\w+)}\n", block, template.lstrip()).format(**holes)


def _numbers(trace: Trace) -> dict[str, str]:
    return {f"number_{key}": f"numbers[{k}]" for k, key in enumerate(trace.numbers)}


def _unit(
    dtype: np.dtype[Any],
    trace: Trace,
    source: str,
    slots: tuple[str, ...] = (),
    of_network: tuple[str, ...] = (),
    at_once: int = 0,
) -> Unit:
    numbers = np.array([*trace.numbers.values()] or [0.0])
    return Unit(_compiled(dtype, source, at_once), numbers, slots, of_network)


@cache
def _compiled(dtype: np.dtype[Any], function: str, at_once: int) -> Native:
    """Return the unit of a source file beside numba's cache.

    Numba asks for the modification time of the file.
    """
    source = (
        f"from __future__ import annotations\n\nimport numpy as np\nfrom numpy import {dtype.name}"
        " as real\n\nfrom dynamics_cli.formulas.elementary import"
        f" {', '.join(elementary.FUNCTIONS)}\n\n\n{function}"
    )
    below = hashlib.sha256(
        source.encode() + bytes([at_once]) + Path(str(elementary.__file__)).read_bytes()
    ).hexdigest()[:20]
    name = function[len("def ") : function.index("(")]
    folder = cache_folder()
    path = None
    module = ModuleType(f"dyn_{name}_{below}")
    sys.modules[module.__name__] = module  # whose code lives as long
    if folder is not None:
        try:
            path = folder / "units" / f"{name}_{below}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(source)
            module.__file__ = str(path)
        except OSError as error:
            say_not_kept(error.strerror)
            path = None
    code = compile(source, str(path or module.__name__), "exec")
    exec(code, module.__dict__)  # noqa: S102 - our own formulas
    with vectors_at_once(at_once):
        return Native(getattr(module, name), dtype, cache=path is not None, fastmath={"contract"})


# -- activations

_ACTIVATION = """
def activation(z: Reals, first: Reals, second: Reals, n: int, numbers: Floats) -> None:
    {whole}
    for i in range(n):
        x = z[i]
        {each}
        {write}
"""


def activation_unit(sigma: Traceable, dtype: np.dtype[Any], order: int = 1) -> Unit:
    """Return `_ACTIVATION`, which replaces `z` (n,) by sigma(z).

    It fills `first` with sigma' and `second` with sigma''.

    `second` is filled with `order` 2 alone.

    Raises:
        NotAFormulaError: the activation is no formula.
    """
    nodes, trace = traced(sigma, lambda kind, trace: curve(kind, trace, order))
    writer = Writer({"z": "x", **_numbers(trace)}, list, wide=False)
    whole = writer.whole(nodes)
    each, values = writer.each(nodes)
    write = [
        f"{array}[i] = {value}"
        for array, value in zip(("z", "first", "second"), values, strict=False)
    ]
    source = _filled(_ACTIVATION, whole=whole, each=each, write=write)
    at_once = max(_AT_ONCE.get(node.operation, 0) for node in formulas.ordered(nodes))
    return _unit(dtype, trace, source, at_once=at_once)


# -- losses

_LOSS = """
def loss(
    f: Reals, y: Reals, v: Reals, delta: Reals, n: int, C: int, weight: Real, numbers: Floats,
    summed: float,
) -> float:
    for q in range(n):
        {whole}
        {of_sample}
        for c in range(C):
            {each}
            seen = {seen}
            {of_output}
            delta[q * C + c] = weight * {slope} if seen else real(0)
    return summed
"""


def loss_unit(loss: LossFormula, dtype: np.dtype[Any]) -> Unit:
    """Return `_LOSS`, which fills `delta` (n, C) with `weight dl/df` and adds losses to `summed`.

    Where a real label is NaN, the loss is 0. `v` is not read.

    Raises:
        NotAFormulaError: the loss is no formula.
    """
    return _loss_unit(loss, dtype, lambda kind, trace: loss_and_slope(kind, trace)[1::-1])


def loss_curvature_unit(loss: LossFormula, dtype: np.dtype[Any]) -> Unit:
    """Return `_LOSS`, which fills `delta` (n, C) with `weight d2l/df2 v` and returns `summed`.

    Otherwise it is as `loss_unit`.
    """
    return _loss_unit(loss, dtype, bend)


def _loss_unit(
    loss: LossFormula, dtype: np.dtype[Any], formula: Callable[[Any, Trace], Sequence[Expression]]
) -> Unit:
    (slope, *value), trace = traced(loss, formula)
    label = "y[q * C + c]"
    seen = f"not np.isnan({label})"
    if loss.labels == "classes":
        label = "y[q]"
        seen = "True"
    names = {"h": "f[q * C + c]", "v": "v[q * C + c]", "number_of_output": "c", "y": label}

    def loop(lines: Sequence[str]) -> list[str]:
        return ["for c in range(C):", *_indented(lines)]

    # the loss is a number of a sample, or of each output, over which it is summed
    writer = Writer(names | _numbers(trace), loop, wide=False)
    whole = writer.whole([slope, *value])
    summands = [node for node in value if node.level == EACH]
    each, (derivative, *terms) = writer.each([slope, *summands])
    of_sample = [f"summed += {writer.name(node)}" for node in value if node.level != EACH]
    of_output = [f"summed += np.float64({name}) if seen else 0.0" for name in terms]
    source = _filled(
        _LOSS,
        whole=whole,
        of_sample=of_sample,
        each=each,
        seen=seen,
        of_output=of_output,
        slope=derivative,
    )
    return _unit(dtype, trace, source)


# -- updates

_UPDATE = """
def update(
    theta: Reals, g: Reals, memory: Reals, P: int, segments: Ints, S: int, factors: Floats,
    lr: float, iteration: int, loss: float, numbers: Floats,
) -> None:
    tiny = real({tiny})
    {of_network}
    for q in range(S):
        first, last = segments[3 * q], segments[3 * q + 1]
        {of_tensor}
        for i in range(first, last):
            {read}
            {each}
            theta[i] = {weight}
            {remember}
"""


def memory_slots(optimizer: Traceable) -> int:
    """Return how many numbers an update remembers of each weight; 2 where it is no formula."""
    return 2 if facts(optimizer) is None else len(remembered(optimizer))


def update_unit(optimizer: Traceable, dtype: np.dtype[Any]) -> Unit:
    """Return `_UPDATE`, the compiled update of an optimizer.

    `theta`, `g` (P,), `memory` (slots, P); `segments` (S + 1, 3) says where trained tensors begin
    and end, and from which iteration their updates count, last those of all together; `factors`
    (S,) the factors of their steps. The memory of a tensor stands in the place of its first weight.

    Raises:
        NotAFormulaError: the update is no formula.
    """
    memories: list[Any] = []

    def trace_update(kind: Any, trace: Trace) -> list[Expression]:
        weight, memory, whole = update(kind, trace)
        memories[:] = [memory, whole]
        return [weight, *memory.values(), *whole.values()]

    nodes, trace = traced(optimizer, trace_update)
    memory, whole = memories
    slots = (*memory.read, *whole.read)
    of_network = any(node.operation == "total_of_all" for node in formulas.ordered(nodes))

    # a number of a weight is kept at its place, one of a tensor at its first weight
    names = {"w": "w", "g": "g[i]", "lr": "step", "iteration": "done", "loss": "loss"}
    names |= _numbers(trace)
    at = {}
    read = ["w = theta[i]"]
    begin = ["step = lr * factors[q]", "done = iteration - segments[3 * counted + 2]"]
    for k, name in enumerate(memory.read):
        at[name] = f"memory[{k} * P + i]"
        names[f"weight_{name}"] = f"m{k}"
        read.append(f"m{k} = {at[name]}")
    for k, name in enumerate(whole.read, start=len(memory.read)):
        at[name] = f"memory[{k} * P + first]"
        names[f"whole_{name}"] = f"m{k}"
        begin.append(f"m{k} = np.float64({at[name]})")

    def loop(lines: Sequence[str]) -> list[str]:
        if of_network:
            over = "for i in range(segments[3 * p], segments[3 * p + 1]):"
            return ["for p in range(S):", *_indented([over, *_indented([*read, *lines])])]
        return ["for i in range(first, last):", *_indented([*read, *lines])]

    writer = Writer(names, loop, wide=True)
    begin += writer.whole(nodes)
    count = len(memory)
    for name, node in zip(whole, nodes[1 + count :], strict=True):
        begin.append(f"{at[name]} = real({writer.name(node)})")
    of_tensor = ["counted = q", *begin]
    once: list[str] = []
    if of_network:
        once = ["q, counted, first = 0, S, segments[0]", *begin]
        of_tensor = ["done = iteration - segments[3 * q + 2]"]
        of_tensor += writer.again(nodes, "iteration")

    each, (weight, *values) = writer.each(nodes[: 1 + count])
    remember = []
    for name, value in zip(memory, values, strict=True):
        # of weights whose gradient stays 0 it ends at 0: on denormal numbers a step takes twice as
        # long
        remember += [f"kept = {value}", f"{at[name]} = kept if abs(kept) >= tiny else real(0)"]
    source = _filled(
        _UPDATE,
        tiny=repr(100 * float(np.finfo(dtype).tiny)),
        of_network=once,
        of_tensor=of_tensor,
        read=read,
        each=each,
        weight=weight,
        remember=remember,
    )
    return _unit(dtype, trace, source, slots, tuple(whole.read) if of_network else ())
