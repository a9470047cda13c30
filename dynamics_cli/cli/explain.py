"""`dyn explain`: what a kind does."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from dynamics_cli.cli.output import emit


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dynamics_cli.config.describe import kind_rows

    names = (f"{one['section']}.{one['kind']}" for one in kind_rows())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command(epilog="Example: dyn explain architecture.fully_connected")
@click.argument("kind", shell_complete=_complete)
def explain(kind: str) -> None:
    """Explain a kind: what it does, its keys, an example.

    KIND is `section.kind`, or the kind alone where only one section has it; `dyn list kinds` lists them.
    """
    from dynamics_cli import api

    emit(api.explain(kind))
