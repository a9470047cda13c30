"""`dyn explain`: the description of a kind or a section."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from dynamics_cli import api
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dynamics_cli.config.describe import WHOLE, list_kinds
    from dynamics_cli.kinds.registry import SECTIONS

    names = [*WHOLE, *SECTIONS, *(f"{one['section']}.{one['kind']}" for one in list_kinds())]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@documented(api.explain, epilog="\b\nExamples:\n  dyn explain architecture.fully_connected\n  dyn explain record")
@click.argument("kind", shell_complete=_complete)
def explain(kind: str) -> None:
    emit(api.explain(kind))
