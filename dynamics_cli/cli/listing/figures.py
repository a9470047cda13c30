"""`dyn list figures`."""

from __future__ import annotations

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list figures --paper boursier2022")
@click.option("--paper", metavar="KEY", help="Only those of one paper.")
@json_option
def figures(paper: str | None, as_json: bool) -> None:
    """List the figures that can be reproduced.

    The time is what each takes on two CPU cores, training included. A variant is the same figure of other runs, such as
    `flow`, gradient flow itself: `dyn reproduce FIGURE --variant NAME`.
    """
    from dynamics_cli.cli.output import duration, emit, emit_json, table
    from dynamics_cli.reproduction import catalogue

    found = catalogue.figures(paper)
    if as_json:
        keys = ("id", "paper", "title", "seconds", "variants")
        emit_json([{key: getattr(figure, key) for key in keys} for figure in found])
        return
    rows = [[f.id, duration(f.seconds), ", ".join(f.variants), f.title] for f in found]
    emit(table(["figure", "time", "variants", "title"], rows, right=[1]))
