"""`dyn sweep`: one config at many settings and seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli.arguments import complete_config, json_option, out_option, quiet_option, set_option
from dynamics_cli.cli.output import CountBar, emit, emit_json
from dynamics_cli.errors import PartialFailure
from dynamics_cli.text import pairs

if TYPE_CHECKING:
    from dynamics_cli.sweeps.sweep import Sweep

EXAMPLES = """\b
Examples:
  dyn sweep boursier2022/orthogonal --seeds 20
  dyn sweep boursier2022/orthogonal --grid initialization.scale=1e-6:10:log:25 --grid architecture.width=20,60,200
  dyn sweep my.yaml --grid loss.kind=mse,logistic --grid optimizer.lr=0.01:0.1:10 --workers 2
  dyn sweep my.yaml --grid initialization.scale=0.1:1:5 --let "optimizer.lr=min(10, 0.1 / initialization.scale**2)"

\b
Forms of --grid and --zip:
  key=v1,v2,...               these values: numbers, words, kinds, files
  key=first:last:count        evenly spaced
  key=first:last:log:count    geometrically spaced
  key=first:last:logint:count the same, rounded to whole numbers

\b
An expression of --let holds numbers, keys, + - * / ** and parentheses, min, max, sqrt, log, exp, abs, round, int.
"""


@click.command(epilog=EXAMPLES)
@click.argument("config", shell_complete=complete_config)
@click.option("--grid", "grid", multiple=True, metavar="KEY=VALUES", help="Sweep one setting; can be repeated.")
@click.option(
    "--zip", "together", multiple=True, metavar="KEY=VALUES", help="Settings that run together, value by value."
)
@click.option("--let", "let", multiple=True, metavar="KEY=EXPRESSION", help="Compute a setting from others.")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="Seeds per grid point (default: 1).")
@set_option
@click.option("--seed", type=click.IntRange(0), metavar="N", help="The first seed (default: that of the config).")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes for jobs that cannot be batched.")
@click.option("--record", type=click.Choice(["light", "config"]), default="light", help="What each job keeps.")
@out_option("Directory of the sweep (default: one named after it below outputs/sweeps).")
@quiet_option
@json_option
def sweep(
    *,
    config: str,
    grid: tuple[str, ...],
    together: tuple[str, ...],
    let: tuple[str, ...],
    seeds: int | None,
    overrides: tuple[str, ...],
    seed: int | None,
    workers: int | None,
    record: str,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a config over a grid and several seeds.

    The grid stands in the section `sweep` of the config (keys grid, zip, let, seeds), in options, or in both. Jobs of
    equal shape are trained together, the others in processes of their own. The same sweep again skips what is done; a
    job that fails does not stop the others (exit code 6).
    """
    run_and_show(
        config, grid, together=together, let=let, overrides=overrides, seeds=seeds, seed=seed, workers=workers,
        record=record, out=out, quiet=quiet, as_json=as_json,
    )  # fmt: skip


def run_and_show(config: str, grid: tuple[str, ...] = (), *, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run a sweep under a progress bar and print where its table is; exit 6 when jobs failed."""
    from dynamics_cli import api

    with CountBar("job", shown=sys.stderr.isatty() and not (quiet or as_json)) as bar:
        done = api.sweep(config, grid, progress=bar, **options)
    _show(done, as_json=as_json)
    failed = [result for result in done.results if result.status == "failed"]
    if failed:
        raise PartialFailure(f"{len(failed)} of {len(done.results)} jobs failed, the first: {failed[0].message}")


def _show(done: Sweep, *, as_json: bool) -> None:
    from dynamics_cli.sweeps.sweep import counts, job_document

    ended = counts(done.results)
    if as_json:
        jobs = [job_document(result, done.path) for result in done.results]
        emit_json({"path": done.path, "table": done.table, **ended, "jobs": jobs})
        return
    summary = ", ".join(f"{count} {status}" for status, count in ended.items() if count)
    emit(pairs({"sweep": str(done.path), "table": str(done.table), "jobs": summary}))
