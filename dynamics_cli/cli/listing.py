"""`dyn list`: figures, papers, configs, kinds, runs and sweeps."""

from __future__ import annotations

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import json_option
from dynamics_cli.cli.groups import CommandGroup, documented
from dynamics_cli.cli.output import (
    emit,
    emit_either,
    emit_json,
    folder_table,
    run_table,
    say,
    say_problems,
)
from dynamics_cli.text import cell, duration, text_table

EXAMPLES = """\b
Examples:
  dyn list figures
  dyn list runs --json
"""


@click.group("list", cls=CommandGroup, epilog=EXAMPLES)
def list_() -> None:
    """List figures, papers, configs, kinds of parts, runs, or sweeps."""


@documented("list_figures", name="figures", epilog="Example: dyn list figures --paper boursier2022")
@click.option("--paper", metavar="KEY")
@json_option
def figures(paper: str | None, as_json: bool) -> None:
    table = dyn.list_figures(paper)
    rows = [
        [row["id"], duration(row["seconds"]), ", ".join(row["variants"]), row["title"]]
        for row in table
    ]
    emit_either(
        table, text_table(["figure", "time", "variants", "title"], rows, right=[1]), as_json=as_json
    )


@documented("list_papers", name="papers", epilog="Example: dyn list papers --json")
@json_option
def papers(as_json: bool) -> None:
    table = dyn.list_papers()
    rows = [
        [p["key"], str(len(p["figures"])), f"{p['authors']}: {p['title']} ({p['venue']})"]
        for p in table
    ]
    emit_either(table, text_table(["paper", "figures", "title"], rows, right=[1]), as_json=as_json)
    from dynamics_cli.reproduction.catalogue import paper_here

    here = paper_here()
    if here is not None and here.name not in (row["key"] for row in table):
        say(f"not loaded: {here.name} of this folder; its name or `--with .` loads its code")


@documented("list_configs", name="configs", epilog="Example: dyn list configs")
@json_option
def configs(as_json: bool) -> None:
    table = dyn.list_configs()
    rows = [[row["name"], row["title"]] for row in table]
    emit_either(table, text_table(["config", "what it is"], rows), as_json=as_json)


@documented("list_kinds", name="kinds", epilog="Example: dyn list kinds optimizer")
@click.argument("section", required=False)
@json_option
def kinds(section: str | None, as_json: bool) -> None:
    table = dyn.list_kinds(section)
    rows = [[f"{row['section']}.{row['kind']}", row["from"], row["what"]] for row in table]
    emit_either(table, text_table(["kind", "from", "what it is"], rows), as_json=as_json)
    from dynamics_cli.kinds.registry import SECTIONS, all_kinds, general_kinds

    for of in [section] if section else SECTIONS:
        general = general_kinds(of)
        of_papers = [name for name in all_kinds(of) if name not in general]
        if of_papers:
            names = ", ".join(of_papers)
            say(f"{of} of single papers, which `dyn explain` knows too: {names}", quiet=as_json)


@documented("list_runs", name="runs", epilog="Example: dyn list runs --status interrupted")
@click.option("--status", "statuses", multiple=True, metavar="STATUS")
@json_option
def runs(statuses: tuple[str, ...], as_json: bool) -> None:
    from dynamics_cli.runs.store.layout import runs_root

    table = dyn.list_runs(statuses=statuses)
    if as_json:
        emit_json(table)
    elif table:
        emit(run_table(table))
        say_problems(table)
    else:
        say(f"there are no such runs below {runs_root()}")


@documented("list_sweeps", name="sweeps", epilog="Example: dyn list sweeps --json")
@json_option
def sweeps(as_json: bool) -> None:
    table = dyn.list_sweeps()
    if as_json:
        emit_json(table)
    elif table:
        shown = [name for name in table.columns if name not in ("modified", "problem")]
        rows = [[cell(row[name]) for name in shown] for row in table]
        emit(folder_table(shown, rows))
        say_problems(table)
    else:
        say("there are no sweeps")


for _command in (figures, papers, configs, kinds, runs, sweeps):
    list_.add_command(_command)
