"""`dyn list`: figures, papers, configs, kinds, runs and sweeps."""

from __future__ import annotations

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import json_option
from dynamics_cli.cli.groups import CommandGroup
from dynamics_cli.cli.output import emit, emit_either, emit_json, run_table, say
from dynamics_cli.text import duration, text_table

EXAMPLES = """\b
Examples:
  dyn list figures
  dyn list runs --json
"""


@click.group("list", cls=CommandGroup, epilog=EXAMPLES)
def list_() -> None:
    """List figures, papers, configs, kinds of parts, runs, or sweeps."""


@list_.command(epilog="Example: dyn list figures --paper boursier2022")
@click.option("--paper", metavar="KEY", help="Only figures of one paper.")
@json_option
def figures(paper: str | None, as_json: bool) -> None:
    """List the figures that can be reproduced.

    The time is that of two CPU cores, training included. A variant is the same figure of other runs, such as
    `flow`, gradient flow itself: `dyn reproduce FIGURE --variant NAME`.
    """
    found = dyn.list_figures(paper)
    rows = [[one["id"], duration(one["seconds"]), ", ".join(one["variants"]), one["title"]] for one in found]
    emit_either(found, text_table(["figure", "time", "variants", "title"], rows, right=[1]), as_json=as_json)


@list_.command(epilog="Example: dyn list papers --json")
@json_option
def papers(as_json: bool) -> None:
    """List the papers whose figures can be reproduced."""
    found = dyn.list_papers()
    rows = [[p["key"], str(len(p["figures"])), f"{p['authors']}: {p['title']} ({p['venue']})"] for p in found]
    emit_either(found, text_table(["paper", "figures", "title"], rows, right=[1]), as_json=as_json)


@list_.command(epilog="Example: dyn list configs")
@json_option
def configs(as_json: bool) -> None:
    """List the bundled configs.

    `dyn train`, `dyn show` and `dyn config check` take their names as well as files.
    """
    found = dyn.list_configs()
    rows = [[one["name"], one["title"]] for one in found]
    emit_either(found, text_table(["config", "what it is"], rows), as_json=as_json)


@list_.command(epilog="Example: dyn list kinds optimizer")
@click.argument("section", required=False)
@json_option
def kinds(section: str | None, as_json: bool) -> None:
    """List the kinds that a config can name.

    Of all sections, or of one; `dyn explain SECTION.KIND` says more.
    """
    from dynamics_cli.config.describe import list_kinds

    found = list_kinds(section)
    rows = [[f"{one['section']}.{one['kind']}", one["from"], one["what"]] for one in found]
    emit_either(found, text_table(["kind", "from", "what it is"], rows), as_json=as_json)


@list_.command(epilog="Example: dyn list runs --status interrupted")
@click.option(
    "--status", "statuses", multiple=True, metavar="STATUS", help="Only runs of this status; can be repeated."
)
@json_option
def runs(statuses: tuple[str, ...], as_json: bool) -> None:
    """List the runs that are kept."""
    from dynamics_cli.runs import runs_root

    found = dyn.list_runs(statuses=statuses)
    if as_json:
        emit_json(found)
    elif found:
        emit(run_table(found))
    else:
        say(f"there are no such runs below {runs_root()}")


@list_.command(epilog="Example: dyn list sweeps --json")
@json_option
def sweeps(as_json: bool) -> None:
    """List the sweeps that are kept, finished or not."""
    found = dyn.list_sweeps()
    if as_json:
        emit_json(found)
    elif found:
        shown = [name for name in found.columns if name != "modified"]
        rows = [[str(one[name]) for name in shown] for one in found]
        emit(text_table(shown, rows, right=range(2, len(shown))))
    else:
        say("there are no sweeps")
