"""`dyn explain`: the description of a kind or a section."""

from __future__ import annotations

import click

import dynamics_cli as dyn
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit


@documented("explain", epilog="\b\nExamples:\n  dyn explain architecture.fully_connected\n  dyn explain record")
@click.argument("kind")
def explain(kind: str) -> None:
    emit(dyn.explain(kind))
