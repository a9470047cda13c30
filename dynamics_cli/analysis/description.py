"""Descriptions of pictures: read, merged, and written again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dynamics_cli.config.errors import ConfigError
from dynamics_cli.config.reader import read_file
from dynamics_cli.config.source import Place, Written
from dynamics_cli.errors import did_you_mean
from dynamics_cli.kinds.pictures import Description, Whole


def described(given: Mapping[str, Any], written: Written | None = None) -> Whole:
    """Return a description of plain data; `written` says the lines.

    Raises ConfigError: a word is not known, or a value does not fit it; the nearest word is named.
    """
    source = written or Written(dict(given), {(): Place("picture", None, Path.cwd())})
    try:
        return Whole(**given)
    except ValidationError as error:
        problems = []
        for detail in error.errors(include_url=False):
            path = tuple(
                part
                for part in detail["loc"]
                if isinstance(part, int) or part in Whole.model_fields  # others are alternatives
            )
            message = detail["msg"]
            if detail["type"] == "extra_forbidden":
                path = detail["loc"]
                known = Description.model_fields if "panels" in path else Whole.model_fields
                told = did_you_mean(str(path[-1]), known)
                message = f"a picture has no such word{told}; it has {', '.join(known)}"
            problems.append(source.problem(path, message))
        raise ConfigError(list(dict.fromkeys(problems))) from error


def read_picture(path: str | Path) -> Whole:
    """Read `picture.yaml`.

    Raises ConfigError: it cannot be read or is not valid; each problem with its line.
    """
    written = read_file(path)
    if written.problems:
        raise ConfigError(written.problems)
    return described(written.data, written)


def merged(whole: Whole, panel: Description) -> Description:
    """Return a panel with what the whole says and it does not."""
    if panel is whole:
        return whole
    shared = {name: getattr(whole, name) for name in Description.model_fields}
    own = {name: getattr(panel, name) for name in panel.model_fields_set}
    words = {**shared, "title": "", **own}
    for name in ("labels", "where"):
        words[name] = {**shared[name], **own.get(name, {})}
    return Description(**words)


def plain_words(description: Description) -> dict[str, Any]:
    """Return the words of a description that differ from their defaults, panels alike."""
    plain = description.model_dump(exclude_defaults=True)
    if isinstance(description, Whole) and description.panels:
        plain["panels"] = [plain_words(panel) for panel in description.panels]
    return {
        key: value[0] if isinstance(value, list) and len(value) == 1 and key != "panels" else value
        for key, value in plain.items()
    }
