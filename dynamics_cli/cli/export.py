"""`dyn export`: a run or a sweep in the form of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.arguments import complete_run
from dynamics_cli.cli.output import emit


@click.command(epilog="Example: dyn export latest --to tensorboard events")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--to", type=click.Choice(["parquet", "tensorboard", "safetensors"]), required=True, help="The form.")
@click.option(
    "--at",
    type=click.IntRange(0),
    metavar="ITERATION",
    help="Of safetensors: the state nearest to it (default: the last).",
)
def export(run: str, out: Path, to: str, at: int | None) -> None:
    """Write a run or a sweep in the form of another tool.

    parquet: a file with a row for every recorded state, or every job of a sweep. tensorboard: a directory with losses
    and measures as scalars. safetensors: a file with the weights of a state, a `state_dict` for PyTorch. They need
    `pip install "dynamics-cli[export]"`. In Python, `run.to_xarray()` has the arrays with named axes.
    """
    from dynamics_cli import api

    api.export(run, out, to=to, at=at)
    emit(str(out))
