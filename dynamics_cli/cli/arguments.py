"""Arguments and options that several commands share, and how they are completed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from dynamics_cli import api

if TYPE_CHECKING:
    from dynamics_cli.config import RunConfig

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


class Directory(click.Path):
    """A directory to write into; a name that no file system takes is refused before anything is made."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with the reason why it is none."""
        if "\0" in os.fspath(value):
            self.fail("a name cannot hold a null character", param, ctx)
        return super().convert(value, param, ctx)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress bar, no messages.")
force_option = click.option("--force", is_flag=True)
set_option = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE")
device_option = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), help="Where to compute (default: as the config says)."
)
out_option = click.option("--out", type=Directory(), metavar="DIR")


def format_option(default: tuple[str, ...]) -> Decorator[Any]:
    """Return the option `--format`, which can be repeated."""
    return click.option(
        "--format", "formats", type=click.Choice(["png", "pdf", "svg"]), multiple=True, default=default,
        help=f"Format of the pictures (default: {', '.join(default)}); repeatable.",
    )  # fmt: skip


def read_config(text: str, overrides: tuple[str, ...] = (), **settings: str | int | None) -> RunConfig:
    """Load the config that a CONFIG argument stands for; settings come from options such as `--seed`.

    Raises ConfigError: with all problems at once.
    """
    from dynamics_cli.config import ConfigError
    from dynamics_cli.config.reader import SETTINGS

    try:
        return api.load_config(text, overrides, **settings)
    except ConfigError as error:
        problems = [replace(p, file=f"--{p.key}", key="") if p.file == SETTINGS else p for p in error.problems]
        raise ConfigError(problems) from error


def complete_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a CONFIG: bundled names, and files by the shell."""
    from dynamics_cli._bundled import bundled_configs

    return _begun(bundled_configs(), incomplete) or [CompletionItem(incomplete, type="file")]


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a RUN: names of runs and sweeps kept, and directories by the shell."""
    from dynamics_cli.sweeps.find import LATEST, run_names, sweeps_root

    return _begun([*run_names(), *run_names(sweeps_root()), LATEST], incomplete) or [
        CompletionItem(incomplete, type="dir")
    ]


def complete_run_or_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a config by name or a run."""
    configs = [item for item in complete_config(ctx, param, incomplete) if item.type == "plain"]
    return configs + complete_run(ctx, param, incomplete)


def complete_figure(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a figure."""
    from dynamics_cli.reproduction import catalogue

    return [CompletionItem(figure.id) for figure in catalogue.figures() if figure.id.startswith(incomplete)]


def _begun(names: Any, incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with the typed text; none where nothing is typed."""
    return [CompletionItem(name) for name in names if incomplete and name.startswith(incomplete)]
