"""`dyn list datasets` and `dyn list architectures`: the kinds that a section of a config can have."""

from __future__ import annotations

from typing import Any

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list datasets")
@json_option
def datasets(as_json: bool) -> None:
    """List the kinds of data set and their keys."""
    _print_kinds("dataset", as_json=as_json)


@click.command(epilog="Example: dyn list architectures --json")
@json_option
def architectures(as_json: bool) -> None:
    """List the kinds of network and their keys."""
    _print_kinds("architecture", as_json=as_json)


def _print_kinds(section: str, *, as_json: bool) -> None:
    from dynamics_cli.cli.output import emit, emit_json

    found = _kinds(section)
    if as_json:
        emit_json(found)
        return
    blocks = []
    for entry in found:
        keys = [f"  {key['name']:<16}{key['description']}" for key in entry["keys"]]
        blocks.append("\n".join([f"{entry['kind']}: {entry['description']}", *keys]))
    emit("\n\n".join(blocks))


def _kinds(section: str) -> list[dict[str, Any]]:
    """Return kind, description and keys of every kind of a section, from the schema of configs."""
    from dynamics_cli.config import json_schema

    definitions = json_schema()["$defs"]
    choices = definitions["RunConfig"]["properties"][section]
    nodes = [definitions[choice["$ref"].rpartition("/")[2]] for choice in choices["oneOf"]]
    return [
        {
            "kind": node["properties"]["kind"]["const"],
            "description": _flat(node.get("description", "")),
            "keys": [
                {
                    "name": name,
                    "description": _flat(key.get("description", "")),
                    "required": name in node.get("required", ()),
                }
                for name, key in node["properties"].items()
                if name != "kind"
            ],
        }
        for node in nodes
    ]


def _flat(text: str) -> str:
    return " ".join(text.split())
