"""The axes of a sweep, as `--grid` and the section `sweep` of a config take them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config.nodes import read_text
from dynamics_cli.config.reader import Assignment
from dynamics_cli.config.source import Place
from dynamics_cli.errors import UsageError

_FORM = "key=v1,v2,... or key=first:last:count or key=first:last:log:count (or logint)"
_SPACINGS = ("log", "logint")
MOST_JOBS = 1_000_000
"""Jobs of a sweep, and values of a range, at most."""


@dataclass(frozen=True)
class Axis:
    """A swept setting."""

    key: str
    """Its dotted path, e.g. `initialization.scale`; numbers index lists."""
    values: tuple[Any, ...]
    log: bool = False
    """Whether the values are spaced geometrically."""
    leader: str | None = None
    """The key of the axis with which this axis runs together; None for an axis of its own."""
    origin: Place | None = field(default=None, compare=False)
    """Where it was written."""


def parse_axis(text: str, option: str = "--grid") -> Axis:
    """Return the axis of `key=values` as an option gives it.

    Raises UsageError: the text has no such form, or names a value twice, except for `--zip`.
    """
    key, _, written = text.partition("=")
    try:
        return axis_of(key.strip(), written, distinct=option == "--grid")
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


def axis_of(key: str, values: Any, *, distinct: bool = True, origin: Place | None = None) -> Axis:
    """Return the axis of a setting: values are a sequence, or a text as after `--grid key=`.

    Raises UsageError: the text has no such form, there is no value, or one comes twice where they must be distinct.
    """
    log, text = False, f"{key}={values}"
    if isinstance(values, str):
        parts = values.split(":")
        if not all(part.strip() for part in key.split(".")) or not values.strip():
            raise UsageError(f"{text!r} must have the form {_FORM}")
        if len(parts) in (3, 4) and "," not in values:
            values, log = _range(text, parts)
        else:
            values = _value(text, f"[{values}]")
    listed = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not listed:
        raise UsageError(f"the grid of {key} must have values")
    if distinct and len({repr(one) for one in listed}) < len(listed):
        raise UsageError(f"{text!r} names a value twice")
    return Axis(key, listed, log, origin=origin)


def _range(text: str, parts: Sequence[str]) -> tuple[tuple[Any, ...], bool]:
    log = len(parts) == 4
    if log and parts[2].strip() not in _SPACINGS:
        raise UsageError(f"{text!r} must have the form {_FORM}")
    first, last, count = _value(text, parts[0]), _value(text, parts[1]), _value(text, parts[-1])
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in (first, last))
    if not numbers or not isinstance(count, int) or not 2 <= count <= MOST_JOBS:
        raise UsageError(f"{text!r}: first and last must be numbers, count an integer from 2 to {MOST_JOBS}")
    if log and not (first > 0 and last > 0):
        raise UsageError(f"{text!r}: a log range needs positive ends")
    spaced = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
    if log and parts[2].strip() == "logint":
        return tuple(dict.fromkeys(round(v) for v in spaced.tolist())), log
    whole = isinstance(first, int) and isinstance(last, int) and not log and (last - first) % (count - 1) == 0
    return tuple(round(v) if whole else float(v) for v in spaced), log


def _value(text: str, written: str) -> Any:
    if not written.strip():
        raise UsageError(f"{text!r} has an empty value")
    reading = read_text(written, "--grid", Path.cwd(), has_lines=False)
    if reading.problems:
        raise UsageError(f"{text!r}: {reading.problems[0].message}")
    return reading.data


def zipped(axes: Sequence[Axis]) -> list[Axis]:
    """Return axes that run together, value by value.

    Raises:
        UsageError: they have different numbers of values.
    """
    if len({len(axis.values) for axis in axes}) > 1:
        told = ", ".join(f"{axis.key} {len(axis.values)}" for axis in axes)
        raise UsageError(f"axes that vary together need equally many values, not {told}")
    return [axis if k == 0 else replace(axis, leader=axes[0].key) for k, axis in enumerate(axes)]


def grouped(axes: Sequence[Axis]) -> list[list[Axis]]:
    """Return the axes in groups that run together, in the order of their first axes."""
    groups: dict[str, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(axis.leader or axis.key, []).append(axis)
    return list(groups.values())


def points(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Yield the settings of each point of the grid, in the order of the axes; the last axis runs fastest."""
    groups = grouped(axes)
    for chosen in itertools.product(*(range(len(group[0].values)) for group in groups)):
        at = {axis.key: axis.values[k] for group, k in zip(groups, chosen, strict=True) for axis in group}
        yield {axis.key: at[axis.key] for axis in axes}


def check_axes(axes: Sequence[Axis], seeds: int = 1, computed: Sequence[str] = ()) -> None:
    """Refuse axes that make no grid.

    Raises:
        UsageError: a key gets its values twice, or there are more than `MOST_JOBS` jobs.

    """
    keys = [*(axis.key for axis in axes), *computed]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise UsageError(f"{twice[0]} gets its values twice; sweep it or compute it once")
    if (jobs := seeds * math.prod(len(group[0].values) for group in grouped(axes))) > MOST_JOBS:
        raise UsageError(f"{jobs} networks are asked for; a sweep has at most {MOST_JOBS}")


def assignment(key: str, value: Any, origin: Place | None) -> Assignment:
    """Return the assignment of a key of a config; problems with it name the place where it was written."""
    return Assignment(tuple(key.split(".")), value, origin or Place("--grid", None, Path.cwd()))
