"""Pydantic's errors in words: the mistake, the allowed values, what was probably meant."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.schema import node_at
from dynamics_cli.config.source import Written
from dynamics_cli.config.text import listing, show
from dynamics_cli.errors import did_you_mean
from dynamics_cli.kinds.registry import all_kinds, speaking_of

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


def mistakes_in(error: ValidationError, source: Written) -> list[Mistake]:
    """Return the problems of `error`, each with its line of `source`.

    Values that have been complained about already are left out.
    """
    told: dict[KeyPath, str] = {}
    for detail in error.errors(include_url=False, include_context=False)[:MAX_EXPLAINED]:
        path, message = _message(detail, source.data)
        if path in told and ", not " in message:
            message = f"{told[path].partition(', not ')[0]} or {message.removeprefix('must be ')}"
        told[path] = message

    # a problem below a value is that of the alternative that was meant: those above do not matter
    for path in list(told):
        for length in range(len(path)):
            told.pop(path[:length], None)
    return [
        source.problem(path, message)
        for path, message in told.items()
        if not source.is_broken(path)
    ]


def _message(detail: ErrorDetails, data: dict[str, Any]) -> tuple[KeyPath, str]:
    """Return where a problem is, and what is wrong there."""
    given = detail["input"]
    # the place, without the names of the alternatives of a union
    path = tuple(
        part for part in detail["loc"] if not str(part).startswith(("literal[", "list[", "dict["))
    )
    match detail["type"]:
        case "extra_forbidden":
            return path, _unknown_key(path, data)
        case "missing":
            return path, "is missing"
        case "union_tag_not_found":
            known = node_at(path, data).kinds()
            return (*path, "kind"), f"is missing; allowed are {_general(known)}"
        case "union_tag_invalid":
            node = node_at(path, data)
            assert node.choice is not None
            known = node.kinds()
            kind = given
            if not isinstance(given, str):
                kind = given["kind"]
                path = (*path, "kind")
            close = did_you_mean(str(kind), known)
            close = close or speaking_of(str(kind), all_kinds(node.choice.section))
            return path, f"unknown kind {kind!r}; allowed are {_general(known)}{close}{OTHERS}"

    expected = re.sub(r"^\w+ should", "must", detail["msg"].partition(" after validation")[0])
    for theirs, ours in WORDS.items():
        expected = expected.replace(theirs, ours)
    close = ""
    if isinstance(given, str):
        if given in node_at(path, data).kinds():
            meant = f"{key_text(path)}.kind"
            return path, f"must be a section (a mapping), not one word (did you mean {meant}?)"
        if detail["type"] == "literal_error":
            close = did_you_mean(given, re.findall("'([^']*)'", expected))
    return path, f"{expected}, not {show(given)}{close}"


def _general(known: dict[str, bool]) -> str:
    return listing([name for name, general in known.items() if general])


def _unknown_key(path: KeyPath, data: dict[str, Any]) -> str:
    if path == ("extends",):
        return "can only be written in a config file"
    above = node_at(path[:-1], data)
    of_kind = ""
    if above.choice is not None and "kind" in above.value:
        of_kind = f" of kind {above.value['kind']!r}"
    allowed = above.keys()
    close = did_you_mean(str(path[-1]), allowed)
    for name in node_at((), data).keys():  # noqa: SIM118 - a `Node` is no dictionary
        able = node_at((name,), data).keys()
        if path[-1] in able:
            close = f" (did you mean {name}.{path[-1]}?)"
    return f"unknown key{of_kind}; allowed are {', '.join(allowed)}{close}"
