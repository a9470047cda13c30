"""Commands with the help texts of `api`, groups of commands, and the program, which imports a command when asked."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from dynamics_cli import api
from dynamics_cli.cli.guard import guarded, hang_up
from dynamics_cli.errors import did_you_mean

PROGRAM = "dyn"


def help_texts(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the paragraphs of a docstring before its sections, and the descriptions of the arguments."""
    doc = inspect.getdoc(function) or ""
    text = re.split(r"^(?:Args|Returns|Raises)\b", doc, maxsplit=1, flags=re.MULTILINE)[0]
    section = re.search(r"^Args:\n(.*?)(?=^\w|\Z)", doc, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", section[1] if section else "", re.MULTILINE | re.DOTALL)
    described = {name: " ".join(told.split()) for name, told in found}
    for name, told in described.items():
        if other := re.match(r"as (?:for )?`(\w+)`", told):
            described[name] = help_texts(getattr(api, other[1]))[1].get(name, told)
    return text.rstrip(), described


def documented(function: Callable[..., Any], **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command with the help texts of a function.

    Arguments, and options that have no text of their own, show the function's description of the argument of their
    name up to the first semicolon or full stop.
    """
    text, described = help_texts(function)

    def decorate(called: Callable[..., Any]) -> click.Command:
        command: click.Command = click.command(**attributes)(called)
        told = [text]
        for parameter in command.params:
            first = re.split(r"[;.](?= |$)", described.get(parameter.name or "", ""))[0]
            if isinstance(parameter, click.Option):
                repeatable = "; repeatable" if parameter.multiple else ""
                parameter.help = parameter.help or f"{first[:1].upper()}{first[1:]}{repeatable}."
            elif first:
                name = (parameter.metavar or parameter.name or "").upper().strip("[].")
                told.append(f"{name}: {first}.")
        command.help = "\n\n".join(told)
        return command

    return decorate


class CommandGroup(click.Group):
    """A group that lists its commands as they were added; a wrong name is answered with the closest right one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no command {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}")
        return super().resolve_command(ctx, args)


class RootGroup(CommandGroup):
    """The program itself: commands are imported when asked for; an error is one message and an exit code."""

    def __init__(
        self, *arguments: Any, table: Mapping[str, str], groups: Mapping[str, Sequence[str]], **keywords: Any
    ) -> None:
        """Hold the table, name of a command -> `module:attribute`, and the headings of the help: names below each."""
        super().__init__(*arguments, **keywords)
        self.table, self.groups = dict(table), groups

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below their headings."""
        width = max(map(len, self.table))
        for heading, names in self.groups.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (f"{name:{width}}", command.get_short_help_str(100))
                        for name, command in commands.items()
                        if command
                    ]
                )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when there is none of this name."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit; without `standalone_mode` return, and let exceptions pass."""
        name = PROGRAM if standalone_mode else prog_name

        def run() -> Any:
            return super(RootGroup, self).main(args, name, complete_var, standalone_mode=False, **extra)

        if not standalone_mode:
            return run()
        sys.exit(guarded(run))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader of its output who has gone away ends it quietly."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if not (setting := _setting_like(error)):
                raise
            hint = f"No such option {error.option_name!r} (did you mean `--set {setting}=...`?)"
            raise click.UsageError(hint, error.ctx) from error
        except BrokenPipeError:
            hang_up()
            raise click.exceptions.Exit(141) from None  # 128 + SIGPIPE, as other programs


def _setting_like(error: click.NoSuchOption) -> str:
    """Return the setting whose last word is nearest to an unknown option; empty for commands without `--set`."""
    from dynamics_cli.kinds import RunConfig
    from dynamics_cli.kinds.registry import SECTIONS, all_kinds

    if error.ctx is None or not any("--set" in parameter.opts for parameter in error.ctx.command.params):
        return ""
    keys = {
        key: f"{section}.{key}"
        for section in SECTIONS
        if section in RunConfig.model_fields
        for kind in all_kinds(section).values()
        for key in kind.model_fields
    }
    close = difflib.get_close_matches(error.option_name.strip("-").replace("-", "_"), keys, n=1, cutoff=0.75)
    return keys[close[0]] if close else ""
