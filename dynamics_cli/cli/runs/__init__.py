"""`dyn runs`: looking after the runs that are kept."""

from __future__ import annotations

import click

from dynamics_cli.cli.lazy import LazyGroup

COMMANDS = {
    "prune": "dynamics_cli.cli.runs.prune:prune",
}
"""Name of a command -> `module:attribute`."""

EXAMPLES = """\b
Examples:
  dyn runs prune --status interrupted --status failed
  dyn runs prune --older-than 30 --dry-run
"""


@click.group("runs", cls=LazyGroup, table=COMMANDS, epilog=EXAMPLES)
def runs() -> None:
    """Delete runs."""
