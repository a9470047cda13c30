"""What the entries of `run.json` must be: a file can fit its checksum and still not be one that dyn wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dynamics_cli.runs import layout

Check = Callable[[Any], bool]


def wrong_field(info: Mapping[str, Any]) -> str | None:
    """Return the name of the first entry that is not what it should be, or None; entries may be absent."""
    for name, fits in _FIELDS.items():
        if name in info and not fits(info[name]):
            return name
    count = len(info["replicas"]) if "replicas" in info else None
    for name in ("replica_losses", "replica_iterations", "replica_statuses"):
        if name in info and len(info[name]) != count:
            return name
    return None


def is_array_name(name: object) -> bool:
    """Whether a text names an array inside a run directory, such as `losses` or `trajectory/hidden_weight`."""
    if not isinstance(name, str):
        return False
    if name in layout.LOSS_GROUP:
        return True
    folder, _, array = name.partition("/")
    return folder in (layout.TRAJECTORY, layout.MEASURES) and layout.is_array_name(array)


def is_rows(rows: object) -> bool:
    """Whether something says how many rows each array has."""
    return isinstance(rows, dict) and all(is_array_name(name) and _is_count(count) for name, count in rows.items())


def _are_all_rows(rows: object) -> bool:
    """Whether something says how many rows each array has, with the arrays that acknowledge or date the others."""
    if not is_rows(rows):
        return False
    names = set(rows)  # type: ignore[call-overload]  # a mapping, as just seen
    losses = names & set(layout.LOSS_GROUP)
    dated = layout.SNAPSHOT_ITERATIONS in names or names == losses
    return dated and (not losses or losses >= {layout.LOSSES, layout.LOSS_ITERATIONS})


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(_float(value)))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


_FIELDS: dict[str, Check] = {
    "name": _is_text,
    "status": _is_text,
    "hash": _or_none(_is_text),
    "device": _or_none(_is_text),
    "backend": _or_none(_is_text),
    "config_sha256": _is_text,
    "messages": _list_of(_is_text),
    "iterations": _or_none(_is_count),
    "final_loss": _is_number,
    "seconds": _is_number,
    "rows": _are_all_rows,
    "versions": _is_mapping,
    "provenance": _is_mapping,
    "resumptions": _list_of(_is_mapping),
    "seals": _is_mapping,
    "replicas": _list_of(_is_mapping),
    "replica_losses": _list_of(_is_number),
    "replica_iterations": _list_of(_or_none(_is_count)),
    "replica_statuses": _list_of(_or_none(_is_text)),
}
"""Entry -> whether a value may stand there; others are shown, and nothing is done with them."""
