"""`dyn config`: config files without running them."""

from __future__ import annotations

import click

from dynamics_cli.cli.lazy import LazyGroup

COMMANDS = {
    "check": "dynamics_cli.cli.config.check:check",
    "schema": "dynamics_cli.cli.config.schema:schema",
}
"""Name of a command -> `module:attribute`."""

EXAMPLES = """\b
Examples:
  dyn config check my.yaml
  dyn config schema > schema.json
"""


@click.group("config", cls=LazyGroup, table=COMMANDS, epilog=EXAMPLES)
def config() -> None:
    """Check config files, or print their JSON Schema."""
