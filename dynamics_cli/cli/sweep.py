"""`dyn sweep`: one config at many settings and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

import dynamics_cli as dyn
from dynamics_cli.cli.arguments import NamedPath, json_option, out_option, quiet_option, set_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import CountBar, emit, emit_json
from dynamics_cli.errors import PartialFailure, RunError, needing
from dynamics_cli.text import counted, pairs
from dynamics_cli.waiting import tell

EXAMPLES = """\b
Examples:
  dyn sweep boursier2022/orthogonal --seeds 20
  dyn sweep my.yaml --grid initialization.scale=1e-6:10:log:25 --seeds 5
  dyn sweep my.yaml --shard 3/50 --max-seconds 3500
  dyn sweep my_loop.py:train --grid lr=0.1,0.2 --seeds 3
  dyn sweep my.yaml --dask tcp://host:8786
  dyn sweep my.yaml --grid loss.kind=mse,logistic --workers 2
  dyn sweep my.yaml --zip optimizer.lr=0.1,0.2 --zip loss.kind=mse,logistic
  dyn sweep my.yaml --seeds 3 --let "optimizer.lr=0.1 / architecture.width"

\b
Forms of --grid:
  key=v1,v2,...               these values: numbers, words, kinds, files
  key=first:last:count        evenly spaced
  key=first:last:log:count    geometrically spaced
  key=first:last:logint:count the same, rounded to whole numbers

\b
An expression of --let holds numbers, keys, + - * / ** and parentheses,
min, max, sqrt, log, exp, abs, round and int.
"""


@documented("sweep", epilog=EXAMPLES)
@click.argument("config", type=NamedPath())
@click.option("--grid", "grid", multiple=True, metavar="KEY=VALUES")
@click.option("--points", type=NamedPath())
@click.option(
    "--zip",
    "together",
    multiple=True,
    metavar="KEY=VALUES",
    help="Setting and values: the k-th point has the k-th value of each --zip; repeatable.",
)
@click.option("--let", "let", multiple=True, metavar="KEY=EXPRESSION")
@click.option("--seeds", type=click.IntRange(1), metavar="N")
@set_option
@click.option("--workers", type=click.IntRange(1), metavar="N")
@click.option("--record", type=click.Choice(["light", "ends", "config"]))
@out_option
@click.option("--shard", metavar="K/N")
@click.option("--stop-at-failure", is_flag=True)
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), metavar="S")
@click.option("--dask", metavar="ADDRESS", help="Train by the workers of a Dask scheduler.")
@quiet_option
@json_option
def sweep(
    *,
    config: str,
    grid: tuple[str, ...],
    together: tuple[str, ...],
    workers: int | None,
    out: Path | None,
    shard: str | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **planned: Any,
) -> None:
    if together:
        from dynamics_cli.sweeps.grid import zipped

        if planned["points"]:
            raise click.UsageError("--points and --zip both give points; take one of them")
        planned["points"] = zipped(together)
    planned["points"] = planned["points"] or ()
    with _dask_executor(dask) if dask else nullcontext((None, None)) as (executor, threads):
        workers = workers or threads
        planned |= {"executor": executor, "out": out, "shard": _shard(shard), "workers": workers}
        run_and_show(config, grid, quiet=quiet, as_json=as_json, **planned)


@contextmanager
def _dask_executor(scheduler: str) -> Iterator[tuple[Executor, int]]:
    """Give the executor of a scheduler, and the number of threads that its workers have now."""
    with needing("--dask", "distributed"):
        from distributed import Client
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from error
    with client:
        yield client.get_executor(pure=False), sum(client.nthreads().values())


def _shard(text: str | None) -> tuple[int, int] | None:
    """Return `(3, 50)` for `3/50`."""
    if text is None:
        return None
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise click.UsageError(
            f"--shard {text!r} must have the form K/N with K from 1 to N, such as 3/50"
        )
    return int(k), int(n)


def run_and_show(
    config: str, grid: tuple[str, ...] = (), *, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run a sweep under a progress bar and print its table's place; exit 6 when jobs failed."""
    if not quiet:
        options["messages"] = tell
    with CountBar("job", shown=not (quiet or as_json)) as bar:
        done = dyn.sweep(config, grid, progress=bar, **options)
    counts = done.counts()
    if as_json:
        jobs = [{**row, "path": done.path / row["path"]} for row in done.rows]
        emit_json(
            {
                "path": done.path,
                "table": done.table if done.finished else None,
                **counts,
                "jobs": jobs,
            }
        )
    else:
        lines = {"sweep": str(done.path)}
        if done.finished:
            lines["table"] = str(done.table)
        lines["jobs"] = f"{len(done.rows)} of {done.described.jobs}"
        if ended := counted(counts):
            lines["jobs"] += f": {ended}"
        emit(pairs(lines))
    if lost := [row["message"] for row in done.rows if row["status"] != "complete"]:
        told = counted(counts | {"complete": 0})
        raise PartialFailure(f"{told} of {len(done.rows)} jobs, the first: {lost[0]}")
