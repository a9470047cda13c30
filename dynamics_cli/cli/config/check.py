"""`dyn config check`: everything that is wrong with config files."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from dynamics_cli.cli.arguments import complete_config
from dynamics_cli.cli.options import json_option, set_option

if TYPE_CHECKING:
    from dynamics_cli.config import Problem


@click.command(epilog="Example: dyn config check configs/*/*.yaml")
@click.argument("files", nargs=-1, required=True, shell_complete=complete_config)
@set_option
@json_option
def check(files: tuple[str, ...], overrides: tuple[str, ...], as_json: bool) -> None:
    """Check configs without running them.

    FILES are YAML or JSON files, or names of bundled configs; the exit code is 3 when one is wrong. Data files are
    looked for, not read: `dyn train --dry-run` reads them too.
    """
    from dynamics_cli.cli.output import emit, emit_json
    from dynamics_cli.config import ConfigError

    checked = [(file, _problems(file, overrides)) for file in files]
    if as_json:
        emit_json(
            [
                {"file": file, "valid": not problems, "problems": [asdict(problem) for problem in problems]}
                for file, problems in checked
            ]
        )
    else:
        for file, problems in checked:
            if not problems:
                emit(f"{file}: valid")
    found = [problem for _, problems in checked for problem in problems]
    if found:
        raise ConfigError(found)


def _problems(file: str, overrides: tuple[str, ...]) -> list[Problem]:
    from dynamics_cli.cli.arguments import read_config
    from dynamics_cli.config import ConfigError

    try:
        read_config(file, overrides)
    except ConfigError as error:
        return error.problems
    return []
