"""`dyn train`: one run of one config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dynamics_cli as dyn
from dynamics_cli.api import plan_train
from dynamics_cli.cli import arguments
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import TrainingBar, emit_either, named_cells, say
from dynamics_cli.errors import RunError
from dynamics_cli.text import one_line, pairs, size

if TYPE_CHECKING:
    from dynamics_cli.runs.run import Run
    from dynamics_cli.training.session import Plan, Prospect

EXAMPLES = """\b
Examples:
  dyn train boursier2022/orthogonal
  dyn train my.yaml --set architecture.width=200 --seed 3
  dyn train my.yaml --dry-run
  dyn train outputs/runs/my-0123456789 --at 5000 --set optimizer.lr=0.02
"""


@documented("train", epilog=EXAMPLES)
@click.argument("config", type=arguments.NamedPath())
@arguments.set_option
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Replace the seed of the config.")
@click.option("--at", type=click.IntRange(1), metavar="N")
@arguments.device_option
@arguments.out_option
@click.option("--resume", is_flag=True)
@arguments.force_option
@click.option(
    "--no-wait",
    is_flag=True,
    help="Refuse, instead of waiting, when another process trains this run.",
)
@click.option("--dry-run", is_flag=True, help="Only print the plan and its needs.")
@arguments.quiet_option
@arguments.json_option
def train(
    *,
    config: str,
    overrides: tuple[str, ...],
    at: int | None,
    out: Path | None,
    resume: bool,
    force: bool,
    no_wait: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    if resume and force:
        raise click.UsageError("--resume continues a run and --force starts over; give one of them")
    if at is None:
        plan = plan_train(arguments.read_config(config, overrides, **settings), out=out)
    else:
        plan = plan_train(config, overrides, at=at, out=out, **settings)
    if dry_run:
        from dynamics_cli.training.session import prospect

        _show_prospect(prospect(plan, resume=resume, force=force), as_json=as_json)
        return
    from dynamics_cli.runs.run import Run
    from dynamics_cli.runs.store import layout
    from dynamics_cli.training.signals import Interrupted

    shown = not (quiet or as_json)
    said: list[str] = []

    def tell(text: str) -> None:
        if shown:
            said.append(text)
            say(text)

    wait = not no_wait
    try:
        with TrainingBar(plan.needs.iterations, shown=shown) as bar:
            run = dyn.train(
                plan, resume=resume, force=force, wait=wait, progress=bar, messages=tell
            )
    except (Interrupted, KeyboardInterrupt):
        if as_json and layout.is_run(plan.directory):
            _show(Run(plan.directory), as_json=True)
        raise
    _show(run, as_json=as_json)
    messages = run.info.get("messages") or []
    if run.status == "diverged":
        raise RunError((messages or ["the loss is not finite"])[-1])
    for note in (f"note: {one_line(message)}" for message in messages):
        say(note, quiet=quiet or note in said)


def _show(run: Run, *, as_json: bool) -> None:
    """Print where the run is and its final numbers."""
    from dynamics_cli.runs.run import end_of, final_measures

    end = end_of(run)
    measures = final_measures(run)
    document = {"path": run.path, **end}
    if measures:
        document["measures"] = measures
    lines = {"run": str(run.path), **named_cells({**end, **measures})}
    emit_either(document, pairs(lines), as_json=as_json)


def _show_prospect(prospect: Prospect, *, as_json: bool) -> None:
    """Print the plan of training and its needs."""
    from dynamics_cli.formulas.tracing import obstacle
    from dynamics_cli.kinds.base import kinds_in

    plan = prospect.plan
    needs = prospect.plan.needs
    work = f"{needs.multiply_adds:.2g} multiply-adds"
    if plan.config.optimizer.stop_below is not None:
        work += "; less where the loss stops it"
    lines = {
        "run": str(plan.directory),
        "would": prospect.action,
        "device": plan.choice.device,
        "backend": _backend_of(plan),
        "parameters": str(needs.parameters),
        "iterations": str(needs.iterations),
        "snapshots": str(needs.snapshots),
        "memory": f"about {size(needs.memory_bytes)}, besides the libraries",
        "disk": f"about {size(needs.disk_bytes)}",
        "work": work,
    }
    for _, kind in kinds_in(plan.config):
        if why := obstacle(kind):
            lines[f"{kind.section}.kind"] = (
                f"autograd trains it, as it is no formula: {kind.kind}: {why}"
            )
    emit_either(prospect.as_dict(), pairs(lines), as_json=as_json)


def _backend_of(plan: Plan) -> str:
    """Return the backend, and why `auto` chose it where the engine could train the network."""
    from dynamics_cli.training.backends import LARGE, has_large_layers

    chosen = plan.choice
    by_torch = chosen.device == "cpu" and chosen.backend == "torch"
    if by_torch and plan.problem.config.backend == "auto" and plan.problem.averages:
        return f"{chosen.backend}, which keeps the average of the weights"
    if by_torch and plan.problem.config.backend == "auto" and has_large_layers(plan.problem):
        return f"{chosen.backend}, as a layer has more than {LARGE} inputs and {LARGE} outputs"
    return chosen.backend
