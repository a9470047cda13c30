"""What pictures call settings and quantities: `scale λ` for `initialization.scale`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dynamics_cli.config.schema import node_at
from dynamics_cli.errors import UsageError, did_you_mean

NAMES = {
    "train_accuracy": "training accuracy",
    "train_loss": "training loss",
    "weight_norm": "norm of all weights",
}
"""What measures are called in pictures, where it is not their own name."""
OF_AVERAGE = "_of_average"
"""Ends the names of measures of averaged weights."""


def called(name: str) -> str:
    """Return the name of a quantity in pictures."""
    if name.endswith(OF_AVERAGE):
        return f"{called(name.removesuffix(OF_AVERAGE))} of the average"
    return NAMES.get(name, name.replace("_", " "))


def title_of(key: str, config: Mapping[str, Any]) -> str:
    """Return the title of an axis for a setting: that of its kind, by default its last word.

    The last word of an entry of a list or a mapping, such as `layer_lr.weight_2`, says nothing
    alone: its title has the word above too. `config` is the config as plain data, which says the
    kinds.
    """
    *above, last = key.split(".")
    path = tuple(int(part) if part.isdigit() else part for part in above)
    section = node_at(path, config).section
    for base in getattr(section, "__mro__", ()):
        titles = vars(base).get("titles", {})
        if last in titles:
            return str(titles[last])
    if above and last == "kind":
        last = above[-1]
    elif above and (last.isdigit() or section is None):
        last = f"{above[-1]} {last}"
    return last.replace("_", " ")


def refuse_unknown_labels(labels: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for a label of something that a picture does not have."""
    for key in labels:
        if key not in known:
            raise UsageError(
                f"no {key!r} to label{did_you_mean(key, known)}; there are {', '.join(known)}"
            )
