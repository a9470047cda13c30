"""The axes of a sweep, as `--grid` takes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynamics_cli.config.nodes import read_text
from dynamics_cli.errors import UsageError

_FORM = "key=v1,v2,... or key=first:last:count or key=first:last:log:count"
_MAXIMUM = 1_000_000


@dataclass(frozen=True)
class Axis:
    """One swept setting."""

    key: str
    """Its dotted path, e.g. `initialization.scale`; numbers index lists."""
    values: tuple[Any, ...]
    log: bool = False
    """Whether the values are spaced geometrically."""

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)


def parse_axis(text: str) -> Axis:
    """Return the axis of `key=values`.

    Raises:
        UsageError: the text has no such form, or names a value twice.

    """
    key, equals, written = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")) or not written.strip():
        raise UsageError(f"--grid {text!r} must have the form {_FORM}")
    key = key.strip()
    parts = written.split(":")
    if len(parts) in (3, 4) and "," not in written:
        values, log = _range(text, parts)
    else:
        values, log = tuple(_value(text, v) for v in _split(written)), False
    if len({repr(v) for v in values}) < len(values):
        raise UsageError(f"--grid {text!r} names a value twice")
    return Axis(key, values, log)


def _range(text: str, parts: Sequence[str]) -> tuple[tuple[Any, ...], bool]:
    log = len(parts) == 4
    if log and parts[2].strip() != "log":
        raise UsageError(f"--grid {text!r} must have the form {_FORM}")
    first, last, count = _value(text, parts[0]), _value(text, parts[1]), _value(text, parts[-1])
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in (first, last))
    if not numbers or not isinstance(count, int) or not 2 <= count <= _MAXIMUM:
        raise UsageError(f"--grid {text!r}: first and last must be numbers, count an integer of at least 2")
    if log and not (first > 0 and last > 0):
        raise UsageError(f"--grid {text!r}: a log range needs positive ends")
    spaced = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
    whole = isinstance(first, int) and isinstance(last, int) and not log and (last - first) % (count - 1) == 0
    return tuple(round(v) if whole else float(v) for v in spaced), log


def _split(written: str) -> list[str]:
    """Split at commas outside of brackets."""
    items, depth, current = [], 0, ""
    for character in written:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            items.append(current)
            current = ""
        else:
            current += character
    return [*items, current]


def _value(text: str, written: str) -> Any:
    if not written.strip():
        raise UsageError(f"--grid {text!r} has an empty value")
    reading = read_text(written, "--grid", Path.cwd(), has_lines=False)
    if reading.problems:
        raise UsageError(f"--grid {text!r}: {reading.problems[0].message}")
    return reading.value


def combinations(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Yield every combination of values by key, the last axis running fastest.

    Raises:
        UsageError: a key stands on two axes, or there are more than a million combinations.

    """
    keys = [axis.key for axis in axes]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"--grid names {key} twice")
    if math.prod(len(axis.values) for axis in axes) > _MAXIMUM:
        raise UsageError(f"the grid has more than {_MAXIMUM} points")
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip(keys, values, strict=True))


def as_override(key: str, value: Any) -> str:
    """Return `key=value` as `--set` takes it."""
    written = yaml.safe_dump(value, default_flow_style=True, width=10**6)
    return f"{key}={written.removesuffix(chr(10)).removesuffix('...').strip()}"
