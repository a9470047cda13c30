"""`dyn sweep`: one config at many settings and seeds."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli.arguments import complete_config, json_option, out_option, quiet_option, set_option
from dynamics_cli.cli.output import CountBar, emit, emit_json
from dynamics_cli.errors import PartialFailure
from dynamics_cli.text import duration, pairs, size

if TYPE_CHECKING:
    from dynamics_cli.sweeps.sweep import Sweep, SweepProspect

SHARDS = 50
"""Parts of a sweep that a job array has, if it has so many batches."""

EXAMPLES = """\b
Examples:
  dyn sweep boursier2022/orthogonal --seeds 20
  dyn sweep boursier2022/orthogonal --grid initialization.scale=1e-6:10:log:25 --grid architecture.width=20,60,200
  dyn sweep my.yaml --dry-run
  dyn sweep my.yaml --engine slurm --script-only --partition cpu --time 02:00:00 --mem 4G | sbatch
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
@click.option("--resume", is_flag=True, help="Go on with what was interrupted, which the same command does anyway.")
@click.option("--dry-run", is_flag=True, help="Only say what would run, and what it would need.")
@click.option("--shard", metavar="K/N", help="Train one of N parts; the command without --shard completes the table.")
@click.option("--engine", type=click.Choice(["local", "slurm"]), default="local", help="Where it runs (default: here).")
@click.option("--script-only", is_flag=True, help="Of slurm: print a job array of shards, for `| sbatch`.")
@click.option(
    "--shards", type=click.IntRange(1), metavar="N", help="Of slurm: parts of the sweep (default: 50 at most)."
)
@click.option("--partition", metavar="NAME", help="Of slurm: where the job array runs.")
@click.option("--time", "limit", metavar="TIME", help="Of slurm: time of one shard, such as 02:00:00.")
@click.option("--mem", metavar="SIZE", help="Of slurm: memory of one shard, such as 4G.")
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
    resume: bool,
    dry_run: bool,
    shard: str | None,
    engine: str,
    script_only: bool,
    shards: int | None,
    partition: str | None,
    limit: str | None,
    mem: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train a config over a grid and several seeds.

    The grid stands in the section `sweep` of the config (keys grid, zip, let, seeds), in options, or in both. Jobs of
    equal shape are trained together, the others in processes of their own. The same sweep again skips what is done; a
    job that fails does not stop the others (exit code 6).
    """
    of_slurm = {"shards": shards, "partition": partition, "time": limit, "mem": mem}
    planned: dict[str, Any] = {
        "together": together, "let": let, "overrides": overrides, "seeds": seeds, "seed": seed, "record": record,
    }  # fmt: skip
    if engine == "slurm" and not script_only:
        raise click.UsageError("--engine slurm goes with --script-only, whose output is for `sbatch`")
    if engine == "local" and (script_only or any(of_slurm.values())):
        raise click.UsageError("--script-only, --shards, --partition, --time and --mem go with --engine slurm")
    if shard is not None and (dry_run or engine == "slurm"):
        raise click.UsageError("--shard goes with neither --dry-run nor --engine slurm")
    if engine == "slurm" or dry_run:
        from dynamics_cli import api

        found = api.plan_sweep_needs(config, grid, out=out, **planned)
        if dry_run:
            _show_needs(found, as_json=as_json)
        else:
            emit(_slurm_script(config, grid, planned, out, workers, found, of_slurm))
        return
    run_and_show(config, grid, out=out, shard=_shard(shard), workers=workers, quiet=quiet, as_json=as_json, **planned)


def _shard(text: str | None) -> tuple[int, int] | None:
    """Return `(3, 50)` for `3/50`."""
    if text is None:
        return None
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise click.UsageError(f"--shard {text!r} must have the form K/N with K from 1 to N, such as 3/50")
    return int(k), int(n)


def _show_needs(found: SweepProspect, *, as_json: bool) -> None:
    if as_json:
        emit_json(vars(found))
        return
    refused = {"refused": "; ".join(found.refused)} if found.refused else {}
    lines = {
        "sweep": str(found.path),
        "jobs": f"{found.jobs}, of which {found.done} are done",
        "batches": f"{found.batches} of jobs that are trained together, and {found.alone} jobs alone",
        "time": f"about {duration(found.seconds)} on two cores, within a factor of a few",
        "disk": f"about {size(found.disk_bytes)}",
    }
    emit(pairs({**lines, **refused}))


def _slurm_script(
    config: str,
    grid: tuple[str, ...],
    planned: dict[str, Any],
    out: Path | None,
    workers: int | None,
    found: SweepProspect,
    of_slurm: dict[str, Any],
) -> str:
    """Return a job array in which every job trains one shard; one that is requeued goes on where it was."""
    count = of_slurm.pop("shards") or max(1, min(found.batches + found.alone, SHARDS))
    names = {"together": "zip", "overrides": "set"}
    given: dict[str, Any] = {"grid": grid, **planned, "out": out and out.absolute(), "workers": workers or 1}
    options = []
    for name, values in given.items():
        for value in values if isinstance(values, tuple) else [values]:
            options += [f"--{names.get(name, name)}", str(value)] if value is not None else []
    command = shlex.join([sys.executable, "-m", "dynamics_cli", "sweep", config, *options, "--quiet"])
    kept = {name: os.environ[name] for name in ("DYN_OUTPUTS", "DYN_WITH") if os.environ.get(name)}
    return "\n".join([
        "#!/bin/bash",
        f"#SBATCH --job-name={found.path.name}",
        f"#SBATCH --array=1-{count}",
        *(f"#SBATCH --{name}={value}" for name, value in of_slurm.items() if value),
        f"#SBATCH --cpus-per-task={workers or 1}",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:TERM@60",
        f"# {found.jobs} jobs; then the same `dyn sweep` without --shard writes the table",
        f"cd {shlex.quote(str(Path.cwd()))} || exit 1",
        *(f"export {name}={shlex.quote(value)}"
          for name, value in kept.items()),
        f'exec {command} --shard "$SLURM_ARRAY_TASK_ID/{count}"',
    ])  # fmt: skip


def run_and_show(config: str, grid: tuple[str, ...] = (), *, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run a sweep under a progress bar and print where its table is; exit 6 when jobs failed."""
    from dynamics_cli import api

    with CountBar("job", shown=sys.stderr.isatty() and not (quiet or as_json)) as bar:
        done = api.sweep(config, grid, progress=bar, **options)
    _show(done, as_json=as_json)
    if failed := done.results.counts()["failed"]:
        first = done.results.first_failed().message
        raise PartialFailure(f"{failed} of {len(done.results)} jobs failed, the first: {first}")


def _show(done: Sweep, *, as_json: bool) -> None:
    from dynamics_cli.sweeps.table import job_document

    ended = done.results.counts()
    if as_json:
        jobs = [job_document(result, done.path) for result in done.results]
        emit_json({"path": done.path, "table": done.table, **ended, "jobs": jobs})
        return
    summary = ", ".join(f"{count} {status}" for status, count in ended.items() if count)
    emit(pairs({"sweep": str(done.path), "table": str(done.table), "jobs": summary}))
