"""`dyn data add`: using data files that the user has."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.data.names import complete_name
from dynamics_cli.cli.options import quiet_option

EXAMPLES = """\b
Examples:
  dyn data add mnist ~/Downloads/mnist
  dyn data add dogs-vs-cats ~/Downloads/train.zip
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", shell_complete=complete_name)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@quiet_option
def add(name: str, path: Path, quiet: bool) -> None:
    """Check the files of data set NAME at PATH and use them from now on.

    For mnist PATH is a directory with the four IDX files, gzipped or not; they are copied. For dogs-vs-cats it is
    Kaggle's train.zip or the folder that it unpacks to; every image is decoded once to see that it can be, and the
    place is remembered.
    """
    from dynamics_cli.cli.data.bars import CountBar
    from dynamics_cli.cli.output import emit, say
    from dynamics_cli.datasets.files.catalogue import describe_counts, refuse_unless
    from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats
    from dynamics_cli.datasets.files.mnist import add_mnist

    def on_wait(message: str) -> None:
        say(message, quiet=quiet)

    refuse_unless(name, ("mnist", "dogs-vs-cats"), "added")
    if name == "mnist":
        emit(str(add_mnist(path, on_wait=on_wait)))
        return
    with CountBar("images", shown=not quiet) as bar:
        place = add_dogs_vs_cats(path, progress=bar, on_wait=on_wait)
    say(f"{describe_counts(place)}, all readable", quiet=quiet)
    emit(place.path)
