"""Pydantic's errors in words: the mistake, the allowed values, and the value that was probably
meant.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.schema import kinds, known_keys, value_at
from dynamics_cli.config.source import Written
from dynamics_cli.config.text import listing, show
from dynamics_cli.errors import did_you_mean

MAX_EXPLAINED = 1000
"""Problems of one config that are explained."""
WORDS = {
    "a valid dictionary or instance of Record": "a section (a mapping)",
    "a valid integer": "an integer",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": "a text",
    "a valid dictionary": "a mapping",
    "a valid": "a",
    "greater than or equal to": ">=",
    "greater than": ">",
    "less than or equal to": "<=",
    "less than": "<",
}
"""Words of pydantic -> words of a config."""
OTHERS = "; `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads others"


def explain(error: ValidationError, source: Written) -> list[Mistake]:
    """Return the problems of `error` with the lines of `source`; values already complained about
    are left out.
    """
    told: dict[KeyPath, str] = {}
    for detail in error.errors(include_url=False, include_context=False)[:MAX_EXPLAINED]:
        loc = (
            part
            for part in detail["loc"]
            if not str(part).startswith(("literal[", "list[", "dict["))
        )
        path, message = _message(
            detail, tuple(loc), source.data
        )  # `loc` without the alternatives of unions
        if path in told and ", not " in message:
            message = f"{told[path].partition(', not ')[0]} or {message.removeprefix('must be ')}"
        told[path] = message
    inner = {
        path[:length] for path in told for length in range(len(path))
    }  # an alternative that does not matter
    kept = {
        path: message
        for path, message in told.items()
        if path not in inner and not source.is_broken(path)
    }
    return [source.problem(path, message) for path, message in kept.items()]


def _message(detail: ErrorDetails, path: KeyPath, data: dict[str, Any]) -> tuple[KeyPath, str]:
    given = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            return path, _unknown_key(path, data)
        case "missing":
            return path, "is missing"
        case "union_tag_not_found":
            return (*path, "kind"), f"is missing; allowed are {_general(kinds(path, data))}"
        case "union_tag_invalid":
            kind, path = (
                (given, path) if isinstance(given, str) else (given["kind"], (*path, "kind"))
            )
            allowed = kinds(path[:-1] if path[-1] == "kind" else path, data)
            close = did_you_mean(str(kind), allowed)
            return path, f"unknown kind {kind!r}; allowed are {_general(allowed)}{close}{OTHERS}"
    if isinstance(given, str) and given in kinds(path, data):
        return (
            path,
            f"must be a section (a mapping), not one word (did you mean {key_text(path)}.kind?)",
        )
    expected = re.sub(r"^\w+ should", "must", detail["msg"].partition(" after validation")[0])
    for theirs, ours in WORDS.items():
        expected = expected.replace(theirs, ours)
    words = re.findall("'([^']*)'", expected) if detail["type"] == "literal_error" else []
    close = did_you_mean(given, words) if isinstance(given, str) else ""
    return path, f"{expected}, not {show(given)}{close}"


def _general(known: dict[str, bool]) -> str:
    return listing([name for name, general in known.items() if general])


def _unknown_key(path: KeyPath, data: dict[str, Any]) -> str:
    if path == ("extends",):
        return "can only be written in a config file"
    *above, key = path
    section = value_at(tuple(above), data)
    kind = section.get("kind") if isinstance(section, dict) else None
    allowed = known_keys(tuple(above), kind, data) or []
    of_kind = f" of kind {kind!r}" if kind is not None and kinds(tuple(above), data) else ""
    return (
        f"unknown key{of_kind}; allowed are {', '.join(allowed)}{did_you_mean(str(key), allowed)}"
    )
