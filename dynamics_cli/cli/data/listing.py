"""`dyn data list`: which data sets are here."""

from __future__ import annotations

import click

from dynamics_cli.cli.options import json_option


@click.command("list", epilog="Example: dyn data list --json")
@json_option
def list_(as_json: bool) -> None:
    """List data sets, missing ones included."""
    from dataclasses import asdict

    from dynamics_cli.cli.output import emit, emit_json, say, size, table
    from dynamics_cli.datasets.files.catalogue import list_data

    found = list_data()
    if as_json:
        emit_json([asdict(entry) for entry in found])
        return
    rows = [[entry.name, entry.state, size(entry.size) if entry.size else "-", entry.description] for entry in found]
    emit(table(["name", "state", "size", "what"], rows, right=(2,)))
    for entry in found:
        if entry.how:
            say(f"{entry.name} is {entry.state}: {entry.how}")
