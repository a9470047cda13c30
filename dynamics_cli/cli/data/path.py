"""`dyn data path`: where a data set is."""

from __future__ import annotations

import click

from dynamics_cli.cli.data.names import complete_name
from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: ls $(dyn data path mnist)")
@click.argument("name", shell_complete=complete_name)
@json_option
def path(name: str, as_json: bool) -> None:
    """Print where data set NAME is; exit code 4 when it is not here."""
    from dynamics_cli.cli.output import emit, emit_json
    from dynamics_cli.datasets.files.catalogue import find_data

    entry = find_data(name)
    if as_json:
        emit_json({"name": entry.name, "path": entry.path})
    else:
        emit(str(entry.path))
