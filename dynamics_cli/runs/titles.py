"""What pictures call the settings of a config: `scale λ` for `initialization.scale`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dynamics_cli.config.schema import section_at
from dynamics_cli.errors import UsageError, did_you_mean


def title_of(key: str, config: Mapping[str, Any]) -> str:
    """Return the title of an axis for a setting, as its kind gives it in `titles`; without one its
    last word.

    `config` is the config as plain data, which says the kinds.
    """
    path = tuple(int(part) if part.isdigit() else part for part in key.split("."))
    *above, last = path
    cls = section_at(tuple(above), config) if above else None
    for base in () if cls is None else cls.__mro__:
        if last in vars(base).get("titles", {}):
            return str(vars(base)["titles"][last])
    if above and (last == "kind" or isinstance(last, int)):
        last = above[-1] if last == "kind" else f"{above[-1]} {last}"
    return str(last).replace("_", " ")


def check_labels(labels: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for a label of something that a picture does not have."""
    for key in labels:
        if key not in known:
            raise UsageError(
                f"no {key!r} to label{did_you_mean(key, known)}; there are {', '.join(known)}"
            )
