"""`dyn new`: begin a kind or a paper of your own from a template that runs as it is."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.groups import CommandGroup
from dynamics_cli.cli.output import emit, say


@click.group("new", cls=CommandGroup, epilog="Example: dyn new kind measure distance")
def new() -> None:
    """Begin a kind or a paper of your own, in the working directory."""


@new.command(epilog="Example: dyn new kind optimizer heavy_ball")
@click.argument("section")
@click.argument("name")
def kind(section: str, name: str) -> None:
    """Write a new kind of SECTION, a config that uses it, and a test."""
    from dynamics_cli.templates import new_kind

    for path in new_kind(section, name, Path()):
        emit(str(path))
    say(f"try: dyn --with {name}.py train {name}.yaml")


@new.command(epilog="Example: dyn new paper mine2026")
@click.argument("key")
def paper(key: str) -> None:
    """Write the repository of a new paper: a figure, its config, notes, a test, a workflow."""
    from dynamics_cli.templates import new_paper

    for path in new_paper(key, Path()):
        emit(str(path))
    say(f"try: cd {key} && dyn reproduce {key}-fig1")
