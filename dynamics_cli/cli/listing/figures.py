"""`dyn list figures`."""

from __future__ import annotations

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list figures --paper boursier2022")
@click.option("--paper", metavar="KEY", help="Only those of one paper.")
@json_option
def figures(paper: str | None, as_json: bool) -> None:
    """List the figures that can be reproduced.

    The time is what each takes on two CPU cores, training included.
    """
    from dynamics_cli.cli.output import duration, emit, emit_json, table
    from dynamics_cli.reproduction import catalogue

    found = catalogue.figures(paper)
    if as_json:
        emit_json([{"id": f.id, "paper": f.paper, "title": f.title, "seconds": f.seconds} for f in found])
    else:
        emit(table(["figure", "time", "title"], [[f.id, duration(f.seconds), f.title] for f in found], right=[1]))
