"""`dyn list papers`."""

from __future__ import annotations

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list papers --json")
@json_option
def papers(as_json: bool) -> None:
    """List the papers whose figures can be reproduced."""
    from dynamics_cli.cli.output import emit, emit_json, table
    from dynamics_cli.reproduction import catalogue

    found = catalogue.papers()
    if as_json:
        emit_json([{"key": key, **paper._asdict(), "figures": list(paper.figures)} for key, paper in found.items()])
        return
    rows = [[key, str(len(p.figures)), f"{p.authors}: {p.title} ({p.venue})"] for key, p in found.items()]
    emit(table(["paper", "figures", "title"], rows, right=[1]))
