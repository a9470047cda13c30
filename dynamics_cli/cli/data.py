"""`dyn data`: data sets that are files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import json_option, quiet_option
from dynamics_cli.cli.groups import CommandGroup
from dynamics_cli.cli.output import CountBar, emit, emit_either, emit_json, say
from dynamics_cli.text import size, text_table

NAMES = ("mnist-subset", "mnist", "cifar10", "dogs-vs-cats")
"""As `dyn data list` shows them; here, because completion must be quick."""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in NAMES if name.startswith(incomplete)]


name_argument = click.argument("name", shell_complete=_complete)


@click.group("data", cls=CommandGroup, epilog="Example: dyn data list")
def data() -> None:
    """Get data sets, and see which are here.

    They are kept in the directory that DYN_DATA names, by default ~/.local/share/dyn ($XDG_DATA_HOME/dyn).
    """


@data.command("list", epilog="Example: dyn data list --json")
@json_option
def list_(as_json: bool) -> None:
    """List data sets, here or missing."""
    from dynamics_cli.datasets.files.catalogue import list_data

    found = list_data()
    if as_json:
        emit_json(found)
        return
    rows = [[one["name"], one["state"], size(one["size"]) if one["size"] else "-", one["description"]] for one in found]
    emit(text_table(["name", "state", "size", "what"], rows, right=(2,)))
    for one in found:
        if one["how"]:
            say(f"{one['name']} is {one['state']}: {one['how']}")


@data.command(epilog="Example: dyn data fetch mnist --mirror https://example.org/mnist/")
@name_argument
@click.option(
    "--mirror", "mirrors", multiple=True, metavar="URL",
    help="Try this directory of published files first, https only; can be repeated.",
)  # fmt: skip
@click.option("--offline", is_flag=True, help="Do not use the network (so does DYN_OFFLINE=1).")
@quiet_option
def fetch(name: str, mirrors: tuple[str, ...], offline: bool, quiet: bool) -> None:
    """Download data set NAME (mnist, cifar10) from public mirrors.

    A file is used only if its SHA-256 is that of the original; a file that is here is not downloaded again.
    """
    with CountBar("B", shown=not quiet) as bar:
        directory = dyn.fetch_data(
            name, mirrors=mirrors, offline=offline, progress=lambda file, done, total: bar(done, total, file),
            messages=partial(say, quiet=quiet),
        )  # fmt: skip
    emit(str(directory))


@data.command(epilog="Example: dyn data add dogs-vs-cats ~/Downloads/train.zip")
@name_argument
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@quiet_option
def add(name: str, path: Path, quiet: bool) -> None:
    """Check the files of data set NAME at PATH and use them from now on.

    For mnist PATH is a directory with the four IDX files, gzipped or not, for cifar10 cifar-10-binary.tar.gz or its
    directory; they are copied. For dogs-vs-cats it is
    Kaggle's train.zip or the folder that it unpacks to; every image is decoded once to see that it can be, and the
    place is remembered.
    """
    with CountBar("images", shown=not quiet) as bar:

        def message(text: str) -> None:
            bar.close()
            say(text, quiet=quiet)

        place = dyn.add_data(name, path, progress=bar, messages=message)
    emit(str(place))


@data.command(epilog="Example: ls $(dyn data path mnist)")
@name_argument
@json_option
def path(name: str, as_json: bool) -> None:
    """Print where data set NAME is; exit code 4 when it is not here."""
    from dynamics_cli.datasets.files.catalogue import find_data

    place = find_data(name)
    emit_either({"name": name, "path": place}, str(place), as_json=as_json)


@data.command(epilog="Example: dyn data remove mnist")
@name_argument
@quiet_option
def remove(name: str, quiet: bool) -> None:
    """Delete the files that dyn keeps of data set NAME.

    That is downloads, copies, decoded images and the remembered place. Files of your own that were added with
    `dyn data add` stay where they are.
    """
    from dynamics_cli.datasets.files.catalogue import remove_data

    freed = remove_data(name)
    say(f"{name}: {size(freed)} freed" if freed else f"{name}: there was nothing to remove", quiet=quiet)
