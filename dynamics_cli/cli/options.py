"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress bar, no messages.")
force_option = click.option("--force", is_flag=True, help="Train again, even when the run is there.")
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one setting, e.g. optimizer.lr=0.01; the value is YAML. Can be repeated.",
)
device_option = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to compute (default: what the config says)."
)


def out_option(help: str) -> Decorator[Any]:
    """Return the option `--out DIR`."""
    return click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help=help)


def format_option(default: tuple[str, ...]) -> Decorator[Any]:
    """Return the option `--format`, which can be repeated."""
    return click.option(
        "--format",
        "formats",
        type=click.Choice(["png", "pdf", "svg"]),
        multiple=True,
        default=default,
        help=f"Kind of picture; can be repeated (default: {', '.join(default)}).",
    )
