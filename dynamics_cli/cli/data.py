"""`dyn data`: data sets that are files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, quiet_option
from dynamics_cli.cli.groups import CommandGroup, documented
from dynamics_cli.cli.output import CountBar, emit


@click.group("data", cls=CommandGroup, epilog="Example: dyn data fetch mnist")
def data() -> None:
    """Get data sets of images.

    They are kept in the directory that DYN_DATA names, by default ~/.local/share/dyn
    ($XDG_DATA_HOME/dyn).
    """


@documented("fetch_data", name="fetch", epilog="Example: dyn data fetch mnist")
@click.argument("name", type=click.Choice(["mnist", "cifar10"]))
@quiet_option
def fetch(name: str, quiet: bool) -> None:
    emit(str(dyn.fetch_data(name, bar=not quiet and sys.stderr.isatty())))


@documented(
    "add_data", name="add", epilog="Example: dyn data add dogs-vs-cats ~/Downloads/train.zip"
)
@click.argument("name", type=click.Choice(["mnist", "cifar10", "dogs-vs-cats"]))
@click.argument("path", type=NamedPath(exists=True, path_type=Path))
@quiet_option
def add(name: str, path: Path, quiet: bool) -> None:
    with CountBar("images", shown=not quiet) as bar:
        place = dyn.add_data(name, path, progress=bar)
    emit(str(place))


for _command in (fetch, add):
    data.add_command(_command)
