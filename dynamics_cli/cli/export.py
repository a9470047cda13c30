"""`dyn export`: a run or a sweep in the form of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli import api
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit


@documented(api.export, epilog="Example: dyn export latest --to tensorboard events")
@click.argument("run", metavar="RUN", type=click.Path())
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--to", type=click.Choice(["parquet", "tensorboard", "safetensors"]), required=True)
@click.option("--at", type=click.IntRange(0), metavar="ITERATION")
def export(run: str, out: Path, to: str, at: int | None) -> None:
    api.export(run, out, to=to, at=at)
    emit(str(out))
