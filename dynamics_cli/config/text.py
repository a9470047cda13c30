"""Words for the values that a config key allows, and for a value that was found instead."""

from __future__ import annotations

import re
from typing import Any

from dynamics_cli.errors import alternatives

LIMIT = 2**63


def describe(node: dict[str, Any]) -> str:
    """Return the values that the JSON Schema `node` allows, such as `an integer >= 1`."""
    options = node.get("anyOf", [node])
    words = [word for option in options if option.get("type") != "null" for word in _words(option)]
    return alternatives([*dict.fromkeys(words)])


def _words(node: dict[str, Any]) -> list[str]:  # noqa: PLR0911 - one return a type
    if "kinds" in node:
        return [f"a kind of `{node['kinds']}`"]
    if "enum" in node or "const" in node:
        return [repr(word) for word in node.get("enum", [node.get("const")])]
    match node.get("type"):
        case "integer":
            return [f"an integer{_bounds(node)}"]
        case "number":
            return [f"a number{_bounds(node)}"]
        case "boolean":
            return ["true or false"]
        case "string":
            return ["a text" + (f" that matches {node['pattern']}" if "pattern" in node else "")]
        case "array":
            if "maxItems" in node and node["maxItems"] == node.get("minItems"):
                return [f"a list of {node['maxItems']} {_plural(node['items'])}"]
            empty = "non-empty " if node.get("minItems") else ""
            return [f"a {empty}list of {_plural(node['items'])}"]
        case "object" if isinstance(node.get("additionalProperties"), dict):
            return [f"a mapping of names to {_plural(node['additionalProperties'])}"]
    return ["a section (a mapping)"]


def listing(words: list[str], most: int = 10) -> str:
    """Return `'a', 'b', 'c'`, or the first `most` words and the number of the others."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(map(repr, words[:most])) + more


def _bounds(node: dict[str, Any]) -> str:
    bounds = [
        # 0.0 by pydantic 2.8
        f"{sign} {int(node[key]) if float(node[key]).is_integer() else node[key]}"
        for sign, key in (
            (">", "exclusiveMinimum"),
            (">=", "minimum"),
            ("<=", "maximum"),
            ("<", "exclusiveMaximum"),
        )
        if key in node and node[key] != LIMIT
    ]
    return f" {' and '.join(bounds)}" if bounds else ""


def _plural(node: dict[str, Any]) -> str:
    """Return `integers >= 1` for `an integer >= 1`; of words and mappings only that they are
    texts or mappings.
    """
    if "kinds" not in node and node.get("type") not in ("array", "integer", "number"):
        return "mappings" if node.get("type") == "object" else "texts"
    return re.sub(r"^an? (non-empty )?(\w+)", r"\1\2s", describe(node))


def show(value: object) -> str:  # noqa: PLR0911 - one return a type
    """Return a value in short, with its type where the type is the mistake."""
    match value:
        case None:
            return "empty (null)"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:60]!r}" + ("..." if len(value) > 60 else "")
        case int() | float():
            return (
                repr(value)
                if not isinstance(value, int) or abs(value) < 10**30
                else "an integer of many digits"
            )
        case list():
            return "an empty list" if not value else f"a list of {len(value)}"
        case dict():
            return "a mapping"
    return f"a {type(value).__name__}"
