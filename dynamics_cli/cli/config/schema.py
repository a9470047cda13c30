"""`dyn config schema`: the JSON Schema of configs, for editors."""

from __future__ import annotations

import click

EXAMPLES = """\b
Example:
  dyn config schema > schema.json
  # and as the first line of a config:
  # yaml-language-server: $schema=schema.json
"""


@click.command(epilog=EXAMPLES)
def schema() -> None:
    """Print the JSON Schema of a config file.

    With it editors complete and check configs.
    """
    from dynamics_cli.cli.output import emit_json
    from dynamics_cli.config import json_schema

    emit_json(json_schema())
