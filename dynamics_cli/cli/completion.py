"""`dyn completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click

from dynamics_cli.cli.groups import PROGRAM
from dynamics_cli.cli.output import emit

EXAMPLES = """\b
Examples:
  eval "$(dyn completion bash)"     # in ~/.bashrc
  eval "$(dyn completion zsh)"      # in ~/.zshrc
  dyn completion fish > ~/.config/fish/completions/dyn.fish
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands."""
    from click.shell_completion import get_completion_class

    from dynamics_cli.cli import main

    script = get_completion_class(shell)
    assert script is not None  # click knows the three
    emit(script(main, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
