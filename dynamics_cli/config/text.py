"""Words for the values that a config key allows, and for a value that was found instead."""

from __future__ import annotations

import re
from typing import Any

from dynamics_cli.errors import alternatives

LIMIT = 2**63


def type_text(node: dict[str, Any]) -> str:
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
        case "string" if "pattern" in node:
            return [f"a text that matches {node['pattern']}"]
        case "string":
            return ["a text"]
        case "array":
            items = _plural(node["items"])
            if "maxItems" in node and node["maxItems"] == node.get("minItems"):
                return [f"a list of {node['maxItems']} {items}"]
            if node.get("minItems"):
                return [f"a non-empty list of {items}"]
            return [f"a list of {items}"]
        case "object" if isinstance(node.get("additionalProperties"), dict):
            return [f"a mapping of names to {_plural(node['additionalProperties'])}"]
    return ["a section (a mapping)"]


def listing(words: list[str], most: int = 10) -> str:
    """Return `'a', 'b', 'c'`, or the first `most` words and the number of the others."""
    shown = ", ".join(map(repr, words[:most]))
    if len(words) > most:
        return f"{shown} and {len(words) - most} more"
    return shown


def _bounds(node: dict[str, Any]) -> str:
    bounds = [
        f" {sign} {node[key]:g}"
        for sign, key in (
            (">", "exclusiveMinimum"),
            (">=", "minimum"),
            ("<=", "maximum"),
            ("<", "exclusiveMaximum"),
        )
        if key in node and node[key] != LIMIT
    ]
    return " and".join(bounds)


def _plural(node: dict[str, Any]) -> str:
    """Return `integers >= 1` for `an integer >= 1`; words and sections are `texts`, `mappings`."""
    if "kinds" in node or node.get("type") in ("array", "integer", "number"):
        return re.sub(r"^an? (non-empty )?(\w+)", r"\1\2s", type_text(node))
    return {"object": "mappings", "string": "texts"}.get(node.get("type", ""), "sections")


def show(value: object) -> str:  # noqa: PLR0911 - one return a type
    """Return a value in short, with its type where the type is the mistake."""
    match value:
        case None:
            return "empty (null)"
        case bool():
            return repr(value).lower()
        case str() if len(value) > 60:
            return f"the text {value[:60]!r}..."
        case str():
            return f"the text {value!r}"
        case int() if abs(value) >= 10**30:
            return "an integer of many digits"
        case int() | float():
            return repr(value)
        case []:
            return "an empty list"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return "a mapping"
    return f"a {type(value).__name__}"
