"""`dyn config`: config files without running them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option, read_config, set_option
from dynamics_cli.cli.groups import CommandGroup, documented
from dynamics_cli.cli.output import emit, emit_json
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.config import Mistake


@click.group("config", cls=CommandGroup, epilog="Example: dyn config check my.yaml")
def config() -> None:
    """Check config files."""


@documented("load_config", name="check", epilog="Example: dyn config check configs/*/*.yaml")
@click.argument("files", nargs=-1, required=True, metavar="CONFIG...", type=NamedPath())
@set_option
@json_option
def check(files: tuple[str, ...], overrides: tuple[str, ...], as_json: bool) -> None:
    from dynamics_cli.config import ConfigError

    checked = [(file, _problems(file, overrides)) for file in files]
    if as_json:
        emit_json(
            [
                {"file": file, "valid": not mistakes, "problems": list(map(asdict, mistakes))}
                for file, mistakes in checked
            ]
        )
    else:
        for file, mistakes in checked:
            if not mistakes:
                emit(f"{file}: valid")
    problems = [problem for _, mistakes in checked for problem in mistakes]
    if problems:
        raise ConfigError(problems)


config.add_command(check)


def _problems(file: str, overrides: tuple[str, ...]) -> list[Mistake]:
    from dynamics_cli.config import ConfigError
    from dynamics_cli.config.load import config_file, load_sweep
    from dynamics_cli.training.estimate import check_problem

    try:
        section, written = load_sweep(config_file(file), overrides)
        if section is None:
            config = read_config(file, overrides)
        else:
            config = dyn.plan_sweep(file, overrides=overrides)[0].config
        check_problem(config)
    except ConfigError as error:
        return error.problems
    except InputError as error:
        key, _, why = str(error).partition(": ")  # most begin with the key, whose line is known
        path = tuple(key.split("."))
        known = path[0] in type(config).model_fields
        return [written.problem(path, why) if known else written.problem((), str(error))]
    return []
