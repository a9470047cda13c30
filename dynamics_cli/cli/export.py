"""`dyn export`: the table of a run or a sweep as a file."""

from __future__ import annotations

from pathlib import Path

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit


@documented("export", epilog="Example: dyn export latest run.csv")
@click.argument("run", metavar="RUN_OR_SWEEP", type=NamedPath())
@click.argument("out", metavar="[FILE]", required=False, type=NamedPath(path_type=Path))
@click.option("--to", metavar="TOOL")
@click.option("--curves", is_flag=True)
def export(run: str, out: Path | None, to: str | None, *, curves: bool) -> None:
    emit(str(dyn.export(run, out, to=to, curves=curves)))
