"""Commands with the help texts of functions, groups of them, and the program itself."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.resources import files
from typing import Any

import click

import dynamics_cli as dyn
from dynamics_cli.cli.guard import guarded, hang_up

HEADING = {
    **dict.fromkeys(("--out", "--output", "--format"), "Where it goes"),
    **dict.fromkeys(("--quiet", "--json", "--help"), "How much is said"),
}
"""Option -> the heading of its help, for options that do not say what is done."""


def help_texts(name: str) -> tuple[str, dict[str, str]]:
    """Return the text of a public function's docstring, and the descriptions of its arguments.

    The docstring is read from the source: a command that only prints its help does not import the
    function.
    """
    source = files("dynamics_cli") / f"{dyn.HOMES[name].replace('.', '/')}.py"
    doc = re.search(
        rf'^def {name}\(.*?"""(.*?)"""',
        source.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert doc is not None, name
    text, _, sections = inspect.cleandoc(doc[1]).partition("\n\nArgs:\n")
    described = re.findall(
        r"^    (\w+): (.*?)(?=^    \w|^\w|\Z)", sections, re.MULTILINE | re.DOTALL
    )
    texts = {argument: " ".join(words.split()) for argument, words in described}
    for argument, words in texts.items():
        if like := re.match(r"as (?:for )?`(\w+)`", words):
            texts[argument] = help_texts(like[1])[1].get(argument, words)
    return re.split(r"\n\n(?:Returns|Raises)\b", text)[0], texts


def documented(function: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command with the help texts of a public function.

    Arguments, and options that have no text of their own, show the function's description of the
    argument of their name up to the first semicolon or full stop.
    """
    text, described = help_texts(function)

    def decorate(called: Callable[..., Any]) -> click.Command:
        command: click.Command = click.command(cls=Command, **attributes)(called)
        paragraphs = [text]
        for parameter in command.params:
            first = re.split(r"[;.](?= |$)", described.get(parameter.name or "", ""))[0]
            if isinstance(parameter, click.Option):
                repeatable = "; repeatable" if parameter.multiple else ""
                parameter.help = parameter.help or f"{first[:1].upper()}{first[1:]}{repeatable}."
            elif first:
                name = (parameter.metavar or parameter.name or "").upper().strip("[].")
                paragraphs.append(f"{name}: {first}.")
        command.help = "\n\n".join(paragraphs)
        return command

    return decorate


class Command(click.Command):
    """A command whose help has its options below headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings, in the order in which they were declared."""
        headings: dict[str, list[tuple[str, str]]] = {
            "What is done": [],
            "Where it goes": [],
            "How much is said": [],
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                heading = next(
                    (HEADING[name] for name in parameter.opts if name in HEADING), "What is done"
                )
                headings[heading].append(record)
        for heading, records in headings.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandGroup(click.Group):
    """A group that lists its commands as they were added."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they were added."""
        return list(self.commands)


class RootGroup(CommandGroup):
    """The program: commands are imported when asked for; an error is a message and a code."""

    def __init__(
        self,
        *arguments: Any,
        table: Mapping[str, str],
        groups: Mapping[str, Sequence[str]],
        **keywords: Any,
    ) -> None:
        """Hold the table, name of a command -> `module:attribute`, and headings -> names."""
        super().__init__(*arguments, **keywords)
        self.table = table
        self.groups = groups
        # their names, for click's suggestions
        self.commands = {name: click.Command(name) for name in table}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below their headings."""
        width = max(map(len, self.table))
        for heading, names in self.groups.items():
            with formatter.section(heading):
                rows = []
                for name in names:
                    if command := self.get_command(ctx, name):
                        rows.append((f"{name:{width}}", command.get_short_help_str(100)))
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when there is none of this name."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def main(self, *args: Any, standalone_mode: bool = True, **keywords: Any) -> Any:
        """Run the command line and exit; without `standalone_mode` return, or let errors pass."""
        run = partial(super().main, *args, standalone_mode=False, **keywords)
        if standalone_mode:
            sys.exit(guarded(partial(run, prog_name="dyn")))
        return run()

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader of its output who has gone away ends it quietly."""
        if os.path.isfile("pyproject.toml"):  # noqa: PTH113 - what it imports is light
            from dynamics_cli.reproduction.catalogue import use_here

            use_here(ctx.args)
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
    """Return the setting nearest to an unknown option; empty for commands without `--set`."""
    from dynamics_cli.kinds import RunConfig
    from dynamics_cli.kinds.registry import SECTIONS, all_kinds

    if error.ctx is None or not any(
        "--set" in parameter.opts for parameter in error.ctx.command.params
    ):
        return ""
    keys: dict[str, str] = {}
    for section in SECTIONS:
        if section not in RunConfig.model_fields:
            continue
        for kind in all_kinds(section).values():
            keys |= {key: f"{section}.{key}" for key in kind.model_fields}
    word = error.option_name.strip("-").replace("-", "_")
    close = difflib.get_close_matches(word, keys, n=1, cutoff=0.75)
    return "".join(keys[key] for key in close)
