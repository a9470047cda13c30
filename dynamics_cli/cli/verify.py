"""`dyn verify`: do the files of runs and figures have the contents that were written?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit, emit_json, say
from dynamics_cli.errors import RunError
from dynamics_cli.text import Table, size

if TYPE_CHECKING:
    from dynamics_cli.runs.reading import Reading

EXAMPLES = """\b
Examples:
  dyn verify boursier2022-orthogonal
  dyn verify outputs/figures/boursier2022-fig2.json outputs/runs/*
  dyn verify --all
  dyn verify --all --sample 0.05
  dyn verify --all --incremental

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
@click.option("--sample", type=float, metavar="SHARE")
@click.option("--seed", type=click.IntRange(min=0), metavar="N")
@click.option("--incremental", is_flag=True)
@json_option
def verify(
    *,
    paths: tuple[str, ...],
    everything: bool,
    sample: float | None,
    seed: int | None,
    incremental: bool,
    as_json: bool,
) -> None:
    if everything == bool(paths):
        raise click.UsageError("say what to check: runs, figures' JSON files, or --all")
    checked = dyn.verify(*paths, sample=sample, seed=seed, incremental=incremental)
    if as_json:
        emit_json(checked)
    elif checked:
        _emit(checked)
    else:
        say("there is nothing to check")
    if sample is not None or incremental:
        _say_what_was_read(checked.reading)
    damaged = sum(not row["intact"] for row in checked)
    if damaged:
        raise RunError(f"{damaged} of {len(checked)} {'is' if damaged == 1 else 'are'} damaged")


def _say_what_was_read(reading: Reading) -> None:
    from dynamics_cli.runs.reading import Incremental, Sample

    share = reading.bytes_read / reading.bytes if reading.bytes else 1.0
    told = (
        f"read {reading.read} of {reading.arrays} arrays, {share:.1%} of {size(reading.bytes)}; of"
        " the others header and length"
    )
    if isinstance(reading, Sample):
        told += f" (seed {reading.seed})"
    elif isinstance(reading, Incremental):
        told += ": they are as they were when they were read and intact"
        if reading.problem:
            say(f"note: nothing is remembered: {reading.problem}")
    say(told)


def _emit(checked: Table) -> None:
    for row in checked:
        emit(f"{row['path']}: {'intact' if row['intact'] else 'damaged'}")
        for finding in row["findings"]:
            emit(f"  {finding['file']}: {finding['problem']}")
