"""`dyn data remove`: deleting what dyn keeps of a data set."""

from __future__ import annotations

import click

from dynamics_cli.cli.data.names import complete_name
from dynamics_cli.cli.options import quiet_option


@click.command(epilog="Example: dyn data remove mnist")
@click.argument("name", shell_complete=complete_name)
@quiet_option
def remove(name: str, quiet: bool) -> None:
    """Delete what dyn keeps of data set NAME.

    That is downloads, copies, decoded images and the remembered place. Files of your own that were added with
    `dyn data add` stay where they are.
    """
    from dynamics_cli.cli.output import say, size
    from dynamics_cli.datasets.files.catalogue import remove_data

    freed = remove_data(name)
    say(f"{name}: {size(freed)} freed" if freed else f"{name}: there was nothing to remove", quiet=quiet)
