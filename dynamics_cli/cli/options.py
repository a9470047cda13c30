"""Options that several commands share."""

from __future__ import annotations

import os
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


class Directory(click.Path):
    """A directory to write into; a name that no file system takes is refused before anything is made."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with what is wrong with it."""
        if "\0" in os.fspath(value):
            self.fail("a name cannot hold a null character", param, ctx)
        return super().convert(value, param, ctx)


def out_option(help: str) -> Decorator[Any]:
    """Return the option `--out DIR`."""
    return click.option("--out", type=Directory(), metavar="DIR", help=help)


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
