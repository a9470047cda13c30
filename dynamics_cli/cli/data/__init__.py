"""`dyn data`: data sets that are files."""

from __future__ import annotations

import click

from dynamics_cli.cli.lazy import LazyGroup

COMMANDS = {
    "list": "dynamics_cli.cli.data.listing:list_",
    "fetch": "dynamics_cli.cli.data.fetch:fetch",
    "add": "dynamics_cli.cli.data.add:add",
    "path": "dynamics_cli.cli.data.path:path",
    "remove": "dynamics_cli.cli.data.remove:remove",
}
"""Name of a command -> `module:attribute`."""

EXAMPLES = """\b
Examples:
  dyn data list
  dyn data fetch mnist
  dyn data add dogs-vs-cats ~/Downloads/train.zip
"""


@click.group("data", cls=LazyGroup, table=COMMANDS, epilog=EXAMPLES)
def data() -> None:
    """Get data sets, and see which are here.

    They are kept in the directory that DYN_DATA names, by default ~/.local/share/dyn ($XDG_DATA_HOME/dyn).
    """
