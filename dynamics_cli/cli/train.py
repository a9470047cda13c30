"""`dyn train`: one run of one config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli.arguments import complete_config
from dynamics_cli.cli.options import (
    device_option,
    force_option,
    json_option,
    out_option,
    quiet_option,
    set_option,
)

if TYPE_CHECKING:
    from dynamics_cli.runs import Run
    from dynamics_cli.training.session import Plan

EXAMPLES = """\b
Examples:
  dyn train boursier2022/orthogonal
  dyn train my.yaml --set architecture.width=200 --set optimizer.lr=0.01 --seed 3
  dyn train my.yaml --dry-run
  dyn train my.yaml --replicas 100
"""


@click.command(epilog=EXAMPLES)
@click.argument("config", shell_complete=complete_config)
@set_option
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Replace the seed of the config.")
@device_option
@click.option("--backend", metavar="NAME", help="Which stepper trains: auto, or one by name, e.g. autograd.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Precision of weights and data.")
@out_option("The run directory itself (default: one named after the config below outputs/runs).")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@force_option
@click.option("--no-wait", is_flag=True, help="Refuse, instead of waiting, when another process trains this run.")
@click.option(
    "--replicas", type=click.IntRange(1), metavar="N", help="Train N seeds together, into one sweep directory."
)
@click.option("--dry-run", is_flag=True, help="Only say what would run, and what it would need.")
@quiet_option
@json_option
def train(
    *,
    config: str,
    overrides: tuple[str, ...],
    seed: int | None,
    device: str | None,
    backend: str | None,
    dtype: str | None,
    out: Path | None,
    resume: bool,
    force: bool,
    no_wait: bool,
    replicas: int | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train the network of a config.

    CONFIG is a YAML or JSON file, or the name of a bundled config (`dyn list configs`). The same config is the same
    run: one that is finished is shown again, not trained again.
    """
    from dynamics_cli.cli.arguments import read_config

    if resume and force:
        raise click.UsageError("--resume continues a run and --force starts over; give one of them")
    if replicas is not None:
        from dynamics_cli.cli.sweep import run_and_show

        if dry_run or force or no_wait:
            raise click.UsageError("--replicas goes with neither --dry-run, --force nor --no-wait")
        run_and_show(
            config, overrides, [], seeds=replicas, seed=seed, full_record=True, out=out, quiet=quiet, as_json=as_json,
            device=device, backend=backend, dtype=dtype,
        )  # fmt: skip
        return
    loaded = read_config(config, overrides, seed=seed, device=device, backend=backend, dtype=dtype)
    from dynamics_cli.training.session import plan_run

    plan = plan_run(loaded, out)
    if dry_run:
        from dynamics_cli.cli.dry_run import show_plan

        show_plan(plan, resume=resume, force=force, as_json=as_json)
        return
    run = _obtain(plan, resume=resume, force=force, wait=not no_wait, quiet=quiet, as_json=as_json)
    _show(run, as_json=as_json)
    _refuse_diverged(run)


def _obtain(plan: Plan, *, resume: bool, force: bool, wait: bool, quiet: bool, as_json: bool) -> Run:
    """Train or reuse the run, under a progress bar."""
    from dynamics_cli.cli.output import say
    from dynamics_cli.cli.progress import ProgressBar
    from dynamics_cli.runs import load_run
    from dynamics_cli.training.session import obtain_run
    from dynamics_cli.training.signals import Interrupted

    silent = quiet or as_json

    def on_wait(message: str) -> None:
        say(message, quiet=silent)

    try:
        with ProgressBar(plan.needs.iterations, shown=not silent) as bar:
            obtained = obtain_run(plan, resume=resume, force=force, wait=wait, progress=bar, on_wait=on_wait)
    except Interrupted:
        if as_json:
            _show(load_run(plan.directory, verify=False), as_json=True)
        raise
    if obtained.reused:
        say("this run was finished before and is reused; --force trains it again", quiet=silent)
    return obtained.run


def _show(run: Run, *, as_json: bool) -> None:
    """Print where the run is and its final numbers."""
    from dynamics_cli.cli import output
    from dynamics_cli.cli.summary import final_measures, final_numbers

    numbers, measures = final_numbers(run), final_measures(run)
    if as_json:
        document: dict[str, Any] = {"path": run.path, **numbers}
        output.emit_json({**document, "measures": measures} if measures else document)
        return
    lines = {"run": str(run.path), **{name.replace("_", " "): _text(value) for name, value in numbers.items()}}
    lines |= {name.replace("_", " "): output.number(value) for name, value in measures.items()}
    output.emit(output.pairs(lines))


def _text(value: object) -> str:
    from dynamics_cli.cli.output import number

    return number(value) if isinstance(value, float) else str(value)


def _refuse_diverged(run: Run) -> None:
    """Raise `RunError` with what a diverged run says of itself."""
    from dynamics_cli.errors import RunError

    if run.status == "diverged":
        messages = run.info.get("messages") or ["the loss is not finite"]
        raise RunError(messages[-1])
