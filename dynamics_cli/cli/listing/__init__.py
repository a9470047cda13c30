"""`dyn list`: what there is."""

from __future__ import annotations

import click

from dynamics_cli.cli.lazy import LazyGroup

COMMANDS = {
    "figures": "dynamics_cli.cli.listing.figures:figures",
    "papers": "dynamics_cli.cli.listing.papers:papers",
    "configs": "dynamics_cli.cli.listing.configs:configs",
    "datasets": "dynamics_cli.cli.listing.kinds:datasets",
    "architectures": "dynamics_cli.cli.listing.kinds:architectures",
    "runs": "dynamics_cli.cli.listing.runs:runs",
}
"""Name of a command -> `module:attribute`."""

EXAMPLES = """\b
Examples:
  dyn list figures
  dyn list runs --json
"""


@click.group("list", cls=LazyGroup, table=COMMANDS, epilog=EXAMPLES)
def list_() -> None:
    """List figures, papers, configs, kinds of parts, or runs."""
