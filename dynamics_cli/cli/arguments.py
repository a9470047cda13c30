"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import dynamics_cli as dyn

if TYPE_CHECKING:
    from dynamics_cli.config import RunConfig

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


class NamedPath(click.Path):
    """A file or folder with a name; an empty text, as of an unset variable, would be `.`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; UsageError for an empty text."""
        if value == "":
            self.fail("it is empty: name a file or a folder", param, ctx)
        return super().convert(value, param, ctx)


def _hushed(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value:
        from dynamics_cli.waiting import hushed

        context.with_resource(hushed())
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_hushed,
    help="Print one JSON document on stdout, nothing else.",
)
quiet_option = click.option(
    "--quiet", "-q", is_flag=True, callback=_hushed, help="No progress bar, no messages."
)
force_option = click.option("--force", is_flag=True)
set_option = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE")
device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    help="Where to compute (default: as the config says).",
)
out_option = click.option("--out", type=NamedPath(path_type=Path), metavar="DIR")


def format_option(default: tuple[str, ...]) -> Decorator[Any]:
    """Return the option `--format`, which can be repeated."""
    return click.option(
        "--format",
        "formats",
        type=click.Choice(["png", "pdf", "svg"]),
        multiple=True,
        default=default,
        help=f"Format of the pictures (default: {', '.join(default)}); repeatable.",
    )


def read_config(
    text: str, overrides: tuple[str, ...] = (), **settings: str | int | None
) -> RunConfig:
    """Load the config of a CONFIG argument; settings come from options such as `--seed`.

    Raises ConfigError: with all problems at once.
    """
    from dynamics_cli.config import ConfigError
    from dynamics_cli.config.reader import SETTINGS

    try:
        return dyn.load_config(text, overrides, **settings)
    except ConfigError as error:
        problems = []
        for problem in error.problems:
            message = problem.message.replace(f"dyn sweep {problem.file}", f"dyn sweep {text}")
            problem = replace(problem, message=message)  # noqa: PLW2901
            if problem.file == SETTINGS:
                problem = replace(problem, file=f"--{problem.key}", key="")  # noqa: PLW2901
            problems.append(problem)
        raise ConfigError(problems) from error
