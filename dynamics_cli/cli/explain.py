"""`dyn explain`: the description of a kind or a section."""

from __future__ import annotations

import click

from dynamics_cli import api
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit


@documented(api.explain, epilog="\b\nExamples:\n  dyn explain architecture.fully_connected\n  dyn explain record")
@click.argument("kind")
def explain(kind: str) -> None:
    emit(api.explain(kind))
