"""`dyn explain`: the description of a kind or a section."""

from __future__ import annotations

import textwrap

import click

import dynamics_cli as dyn
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit
from dynamics_cli.text import terminal_width


@documented(
    "explain",
    epilog="\b\nExamples:\n  dyn explain architecture.fully_connected\n  dyn explain record",
)
@click.argument("kind")
def explain(kind: str) -> None:
    words, example, config = dyn.explain(kind).partition("\nExample:")
    for line in words.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        emit(
            "\n".join(
                textwrap.wrap(
                    line, terminal_width(), subsequent_indent=indent, break_long_words=False
                )
            )
        )
    emit(f"{example}{config}")
