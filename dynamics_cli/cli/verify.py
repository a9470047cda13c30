"""`dyn verify`: do the files of runs and figures have the contents that were written?"""

from __future__ import annotations

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit, emit_json, say
from dynamics_cli.errors import RunError
from dynamics_cli.text import Table

EXAMPLES = """\b
Examples:
  dyn verify boursier2022-orthogonal
  dyn verify outputs/figures/boursier2022-fig2.json outputs/runs/*
  dyn verify --all

\b
Exit codes:
  0 every file is intact,
  7 a file is damaged, missing, or of a later version of dyn
"""


@documented("verify", epilog=EXAMPLES)
@click.argument("paths", nargs=-1, metavar="[RUN_OR_FIGURE]...", type=NamedPath())
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All runs, sweeps and figures below the root of outputs.",
)
@json_option
def verify(*, paths: tuple[str, ...], everything: bool, as_json: bool) -> None:
    if everything == bool(paths):
        raise click.UsageError("say what to check: runs, figures' JSON files, or --all")
    checked = dyn.verify(*paths)
    if as_json:
        emit_json(checked)
    elif checked:
        _emit(checked)
    else:
        say("there is nothing to check")
    damaged = sum(not row["intact"] for row in checked)
    if damaged:
        raise RunError(f"{damaged} of {len(checked)} {'is' if damaged == 1 else 'are'} damaged")


def _emit(checked: Table) -> None:
    for row in checked:
        emit(f"{row['path']}: {'intact' if row['intact'] else 'damaged'}")
        if row["code"]:
            emit(f"  made by {row['code']}")
        for finding in row["findings"]:
            emit(f"  {finding['file']}: {finding['problem']}")
