"""A resolved config as YAML text that reads back as the same config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from dynamics_cli.config.reader import CORE_SCALARS
from dynamics_cli.kinds import RunConfig


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.1 or YAML 1.2 would read as something else, e.g. a name `1e5`."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values out each time."""
        return True


for _name, _pattern, _first in CORE_SCALARS:
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, _first)


def to_plain(config: RunConfig) -> dict[str, Any]:
    """Return the config as plain data with every default; keys without a value are left out."""
    plain: dict[str, Any] = _kind_first(config.model_dump(exclude_none=True))
    if config.pictures:
        plain["pictures"] = {name: told.model_dump() for name, told in config.pictures.items()}
    return plain


def flat(section: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of a config by `section.key`."""
    values: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values


def _kind_first(value: Any) -> Any:
    """Return sections with `kind` before the keys that their class inherits."""
    if not isinstance(value, dict):
        return value
    return {key: _kind_first(value[key]) for key in sorted(value, key=lambda key: key != "kind")}


def to_yaml(config: RunConfig | dict[str, Any], width: int | None = None) -> str:
    """Return the resolved config as YAML; any reader of YAML gets the same config back.

    Lines have at most `width` characters where that can be; by default some more than 120, as in
    run directories.
    """
    plain = config
    if isinstance(config, RunConfig):
        plain = to_plain(config)

    def written(width: int) -> str:
        # other than ASCII is escaped: PyYAML writes some line separators raw, which do not read
        # back
        return yaml.dump(
            plain, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=width
        )

    if width is None:
        return written(120)
    # PyYAML ends a line after the item that is too long
    texts = [written(width - less) for less in range(0, 48, 8)]
    return min(texts, key=lambda text: max(width, *map(len, text.splitlines())))
