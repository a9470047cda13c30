"""Pydantic's errors in words: the mistake, the allowed values, and the value that was probably meant."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.schema import kinds, known_keys, node_at, value_at
from dynamics_cli.config.source import Written
from dynamics_cli.config.text import LIMIT, describe, listing, show
from dynamics_cli.errors import alternatives, did_you_mean
from dynamics_cli.kinds import all_kinds
from dynamics_cli.kinds.registry import SECTIONS, of_one_paper

MAX_EXPLAINED = 1000
"""Problems of one config that are explained."""
OTHERS = "; `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads others"
_BOOLEANS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}


def explain(error: ValidationError, source: Written) -> list[Mistake]:
    """Return the problems of `error` with the lines of `source`; values already complained about are left out."""
    told: dict[KeyPath, str] = {}
    for detail in error.errors(include_url=False, include_context=False)[:MAX_EXPLAINED]:
        path, takes_list = _path(detail["loc"])
        if takes_list is not None and takes_list != isinstance(value_at(_without_places(path), source.data), list):
            continue  # the other alternative of the union has the error that matters
        path, message = _message(detail, path, source.data)
        if not source.is_broken(path):
            told[path] = message
    return [source.problem(path, message) for path, message in told.items()]


def _without_places(path: KeyPath) -> KeyPath:
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _path(loc: tuple[int | str, ...]) -> tuple[KeyPath, bool | None]:
    """Return where in `data` pydantic's `loc` is, without the alternatives of unions that it passes.

    The second value says, in such a union (all of ours are of a list and something else), whether the error is about
    the alternative that takes a list; None outside of such a union.
    """
    path: KeyPath = ()
    takes_list = None
    for part in loc:
        if isinstance(part, str) and part.startswith(("literal[", "list[", "dict[")):
            takes_list = part.startswith("list[")
        else:
            path = (*path, part)
    return path, takes_list


def _message(  # noqa: PLR0911 - one return a mistake
    detail: ErrorDetails, path: KeyPath, data: dict[str, Any]
) -> tuple[KeyPath, str]:
    node = node_at(path, data)
    found = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            return path, _unknown_key(path, data)
        case "missing":
            return path, f"is missing; it must be {describe(node)}"
        case "union_tag_not_found":
            return (*path, "kind"), f"is missing; allowed are {listing(general(kinds(path, data)))}"
        case "union_tag_invalid":
            kind, path = (found, path) if isinstance(found, str) else (found["kind"], (*path, "kind"))
            allowed = kinds(path[:-1] if path[-1] == "kind" else path, data)
            if not isinstance(kind, str):
                return path, f"must be {alternatives([repr(word) for word in allowed])}, not {show(kind)}"
            close = did_you_mean(kind, allowed)
            return path, f"unknown kind {kind!r}; allowed are {listing(general(allowed))}{close}{OTHERS}"
    if isinstance(found, str) and found in kinds(path, data):
        return path, f"must be a section (a mapping), not one word (did you mean {key_text(path)}.kind?)"
    message = f"must be {describe(node, found)}, not {show(found)}"
    return path, message + _hint(node, found)


def general(names: list[str]) -> list[str]:
    """Return names of kinds without those that serve one paper."""
    special = {name for section in SECTIONS for name, cls in all_kinds(section).items() if of_one_paper(cls)}
    return [name for name in names if name not in special]


def _hint(node: dict[str, Any], found: object) -> str:
    if "enum" in node and isinstance(found, str):
        return did_you_mean(found, node["enum"])
    if isinstance(found, float) and found.is_integer() and abs(found) < LIMIT and _takes(node, "integer"):
        return f" (write {int(found)})"
    if isinstance(found, str) and _takes(node, "number", "integer") and _is_number(found):
        return " (without quotes)"
    if isinstance(found, str) and _takes(node, "boolean") and found.lower() in _BOOLEANS:
        return f" (write {_BOOLEANS[found.lower()]})"
    if isinstance(found, int | float) and _takes(node, "string") and "enum" not in node:
        return " (put it in quotes)"
    return ""


def _takes(node: dict[str, Any], *types: str) -> bool:
    return any(option.get("type") in types for option in node.get("anyOf", [node]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unknown_key(path: KeyPath, data: dict[str, Any]) -> str:
    if path == ("extends",):
        return "can only be written in a config file"
    *above, key = path
    section = value_at(tuple(above), data)
    kind = section.get("kind") if isinstance(section, dict) else None
    allowed = known_keys(tuple(above), kind, data) or []
    of_kind = f" of kind {kind!r}" if kind is not None and kinds(tuple(above), data) else ""
    return f"unknown key{of_kind}; allowed are {', '.join(allowed)}{did_you_mean(str(key), allowed)}"
