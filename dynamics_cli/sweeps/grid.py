"""The axes of a sweep, as `--grid` and the section `sweep` of a config take them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config import ConfigError
from dynamics_cli.config.reader import read_value
from dynamics_cli.config.source import Place
from dynamics_cli.errors import InputError, UsageError

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
    origin: Place | None = field(default=None, compare=False)
    """Where it was written."""


def parse_axis(text: str, option: str = "--grid") -> Axis:
    """Return the axis of `key=values` as an option gives it.

    Raises UsageError: the text has no such form, or names a value twice.
    """
    key, _, written = text.partition("=")
    try:
        return axis_of(key.strip(), written)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


def axis_of(key: str, values: Any, origin: Place | None = None) -> Axis:
    """Return the axis of a setting: values are a sequence, or a text as after `--grid key=`.

    Raises UsageError: the text has no such form, there is no value, or a value comes twice.
    """
    log = False
    text = f"{key}={values}"
    if isinstance(values, str):
        parts = values.split(":")
        if not all(part.strip() for part in key.split(".")) or not values.strip():
            raise UsageError(f"{text!r} must have the form {_FORM}")
        if len(parts) in (3, 4) and "," not in values:
            values, log = _range(text, parts)
        else:
            values = _value(text, f"[{values}]")
            match values:
                case [[[*_], *_] as lists]:  # as a config writes it, `widths=[[32], [32, 32]]`
                    values = lists
    listed = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not listed:
        raise UsageError(f"the grid of {key} must have values")
    if len(set(map(repr, listed))) < len(listed):
        raise UsageError(f"{text!r} names a value twice")
    return Axis(key, listed, log, origin)


def read_points(path: Path) -> list[dict[str, Any]]:
    """Return the points of a file: a CSV table whose header names settings, or YAML.

    Raises:
        InputError: it cannot be read.
        UsageError: it holds no points.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise InputError(f"points: {path} cannot be read: {error}") from error
    if path.suffix != ".csv":
        return points_of(_value(str(path), text))
    header, *rows = [*csv.reader(text.splitlines())] or [[]]
    if not rows:
        raise UsageError(f"points: {path} holds no points")
    if any(len(row) != len(header) for row in rows):
        raise UsageError(f"points: {path} has rows that are not as long as its header")
    return points_of(
        [
            {key: _value(f"{path}: {key}", cell) for key, cell in zip(header, row, strict=True)}
            for row in rows
        ]
    )


def points_of(listed: Any) -> list[dict[str, Any]]:
    """Return points as mappings of the same settings, in the order of the first one.

    Raises UsageError: they are none.
    """
    if not isinstance(listed, list) or not all(isinstance(point, dict) for point in listed):
        raise UsageError(
            "points must be a list of settings, such as {optimizer.lr: 0.1, loss.kind: mse}"
        )
    for k, point in enumerate(listed, 1):
        if not point or point.keys() != listed[0].keys():
            raise UsageError(
                "points must all set the same: the first one sets"
                f" {', '.join(listed[0]) or 'nothing'}, number {k} {', '.join(point) or 'nothing'}"
            )
    return [{key: point[key] for key in listed[0]} for point in listed]


def zipped(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the points that take the k-th of the values that `--zip` gives each setting.

    Raises UsageError: a text has no such form, or they differ in length.
    """
    axes = [parse_axis(text, "--zip") for text in texts]
    if len({len(axis.values) for axis in axes}) > 1:
        told = ", ".join(f"{axis.key} has {len(axis.values)}" for axis in axes)
        raise UsageError(f"--zip needs as many values of each setting: {told}")
    keys = [axis.key for axis in axes]
    columns = [axis.values for axis in axes]
    return [dict(zip(keys, point, strict=True)) for point in zip(*columns, strict=True)]


def _range(text: str, parts: Sequence[str]) -> tuple[tuple[Any, ...], bool]:
    log = len(parts) == 4
    if log and parts[2].strip() not in _SPACINGS:
        raise UsageError(f"{text!r} must have the form {_FORM}")
    first = _value(text, parts[0])
    last = _value(text, parts[1])
    count = _value(text, parts[-1])
    numbers = all(is_number(end) and math.isfinite(end) for end in (first, last))
    if not numbers or not isinstance(count, int) or not 2 <= count <= MOST_JOBS:
        raise UsageError(
            f"{text!r}: first and last must be numbers, count an integer from 2 to {MOST_JOBS}"
        )
    if log and not (first > 0 and last > 0):
        raise UsageError(f"{text!r}: a log range needs positive ends")
    space = np.geomspace if log else np.linspace
    values = space(first, last, count).tolist()
    if log and parts[2].strip() == "logint":
        return tuple(dict.fromkeys(map(round, values))), log
    integers = isinstance(first, int) and isinstance(last, int)
    if not log and integers and (last - first) % (count - 1) == 0:
        values = map(round, values)
    return tuple(values), log


def is_number(value: Any) -> bool:
    """Return whether a value of a config is a number, which truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value(text: str, written: str) -> Any:
    if not written.strip():
        raise UsageError(f"{text!r} has an empty value")
    try:
        return read_value(written, "--grid", "")
    except ConfigError as error:
        raise UsageError(f"{text!r}: {error.problems[0].message}") from error
