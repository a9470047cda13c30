"""`dyn data`: data sets that are files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import quiet_option
from dynamics_cli.cli.groups import CommandGroup
from dynamics_cli.cli.output import CountBar, emit


@click.group("data", cls=CommandGroup, epilog="Example: dyn data fetch mnist")
def data() -> None:
    """Get data sets of images.

    They are kept in the directory that DYN_DATA names, by default ~/.local/share/dyn ($XDG_DATA_HOME/dyn).
    """


@data.command(epilog="Example: dyn data fetch mnist")
@click.argument("name", type=click.Choice(["mnist", "cifar10"]))
@quiet_option
def fetch(name: str, quiet: bool) -> None:
    """Download data set NAME and print where it is.

    A file is used only if its SHA-256 is that of the original; a file that is here is not downloaded again.
    """
    emit(str(dyn.fetch_data(name, bar=not quiet and sys.stderr.isatty())))


@data.command(epilog="Example: dyn data add dogs-vs-cats ~/Downloads/train.zip")
@click.argument("name", type=click.Choice(["mnist", "cifar10", "dogs-vs-cats"]))
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@quiet_option
def add(name: str, path: Path, quiet: bool) -> None:
    """Use the files of data set NAME at PATH from now on.

    They are checked, and their place is printed. For mnist PATH is a directory with the four IDX files, gzipped or not,
    for cifar10 cifar-10-binary.tar.gz or its directory; they are copied. For dogs-vs-cats it is Kaggle's train.zip or
    the folder that it unpacks to; every image is decoded once to see that it can be, and the place is remembered.
    """
    with CountBar("images", shown=not quiet) as bar:
        place = dyn.add_data(name, path, progress=bar)
    emit(str(place))
