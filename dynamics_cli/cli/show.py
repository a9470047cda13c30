"""`dyn show`: a run's summary, or a resolved config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

import dynamics_cli as dyn
from dynamics_cli._bundled import bundled_configs
from dynamics_cli.cli.arguments import NamedPath, json_option, read_config, set_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import emit, emit_either, emit_json, named_cells
from dynamics_cli.errors import InputError
from dynamics_cli.text import (
    cell,
    counted,
    duration,
    fitted,
    one_line,
    pairs,
    shorten,
    size,
    terminal_width,
)

if TYPE_CHECKING:
    from dynamics_cli.runs.run import Run

ENDS = ("complete", "diverged", "failed")
EXAMPLES = """\b
Examples:
  dyn show boursier2022/orthogonal --set architecture.width=200
  dyn show boursier2022-orthogonal --json
"""


@documented("describe", epilog=EXAMPLES)
@click.argument("run", metavar="RUN_OR_CONFIG", type=NamedPath())
@set_option
@json_option
def show(run: str, overrides: tuple[str, ...], as_json: bool) -> None:
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    if not os.path.isfile(run) and (sweep := sweep_directory(run)):  # noqa: PTH113 - as below
        if overrides:
            raise click.UsageError("--set cannot be used with a sweep")
        show_sweep(dyn.describe(sweep), as_json=as_json)
        return
    if not _is_run(run):
        _show_config(run, overrides, as_json=as_json)
        return
    if overrides:
        raise click.UsageError("--set cannot be used with a run")
    if as_json:
        emit_json(dyn.describe(run))
        return
    emit(_run_text(open_run(run, together=True, whole=True)))


def _is_run(text: str) -> bool:
    """Whether a run is meant; the reader of runs is not imported for files and configs."""
    # `Path.is_file` raises for a name that is too long
    if os.path.isfile(text) or text in bundled_configs():  # noqa: PTH113
        return False
    from dynamics_cli.sweeps.find import stands_for_run

    return stands_for_run(text)


def _show_config(text: str, overrides: tuple[str, ...], *, as_json: bool) -> None:
    """Print a config, and below it the sweep, whose keys have their first values in the config.

    Raises InputError: there is no such config, which is the last thing that the text can stand for.
    """
    from dynamics_cli.config import ConfigError, to_yaml
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.load import config_file, load_sweep

    try:
        file = config_file(text)
    except ConfigError as error:
        raise InputError(f"{error}; nor is it a run or a sweep") from error
    if (section := load_sweep(file, overrides)[0]) is None:
        config = read_config(text, overrides)
        plain = to_plain(config)
        jobs = ""
    else:
        planned = dyn.plan_sweep(text, overrides=overrides, record="config")
        try:
            config = read_config(text, overrides, swept=True)
        except ConfigError:
            config = planned[0].config
        plain = {**to_plain(config), "sweep": section.model_dump(exclude_unset=True)}
        points = len(planned) // planned.seeds
        seeds = planned.seeds
        jobs = (
            f"# points x seeds: {points} x {seeds} = {len(planned)} jobs, which `dyn sweep` trains"
        )
    emit_either(plain, f"{to_yaml(plain, terminal_width())}{jobs}".rstrip("\n"), as_json=as_json)


def _run_text(run: Run) -> str:
    from dynamics_cli.config import to_yaml
    from dynamics_cli.runs.run import end_of, file_sizes, final_measures

    known = {name: value for name, value in end_of(run).items() if value is not None}
    lines = {"run": str(run.path), **named_cells({**known, **final_measures(run)})}
    lines |= {"snapshots": str(len(run.snapshot_iterations)), "losses": str(len(run.losses))}
    messages = "".join(
        f"\n{fitted(f'message: {one_line(message)}')}" for message in run.info.get("messages", [])
    )
    settings = "\n".join(
        f"  {line}" for line in to_yaml(run.config, terminal_width() - 2).splitlines()
    )
    files = "\n".join(
        f"  {size(count):>10}  {name}" for name, count in file_sizes(run.path).items()
    )
    return f"{pairs(lines)}{messages}\n\nsettings\n{settings}\n\nfiles\n{files}"


def show_sweep(sweep: dict[str, Any], *, as_json: bool) -> None:
    """Print how far a sweep is."""
    if as_json:
        emit_json(sweep)
        return
    counts = {name: sweep[name] for name in ENDS} | sweep.get("others", {})
    jobs = f"{sweep['ended']} of {sweep['jobs']}"
    if ended := counted(counts):
        jobs += f": {ended}"
    lines = {"sweep": str(sweep["path"]), "status": sweep["status"], "jobs": jobs}
    if sweep["status"] == "unfinished":
        left = sweep["jobs"] - sweep["ended"]
        lines["status"] += f": {left} jobs missing or failed; run it without --shard"
    if "seconds" in sweep:
        lines["time"] = f"{duration(sweep['seconds'])} of training so far"
        if sweep["left"] is not None:
            lines["time"] += f", about {duration(sweep['left'])} to go"
        if at_work := [f"{p['part']} on {p['host']} ({p['process']})" for p in sweep["parts"]]:
            lines["parts"] = ", ".join(at_work)
    if sweep["table"]:
        lines["table"] = str(sweep["table"])
    for key, values in sweep["settings"].items():
        lines[key] = shorten(", ".join(map(cell, values)), 80)
    lines |= {key: f"= {expression}" for key, expression in sweep["computed"].items()}
    lines["seeds"] = str(sweep["seeds"])
    lines |= {name: f"= {expression}" for name, expression in sweep["columns"].items()}
    text = pairs(lines)
    if sweep["messages"]:
        text += "\n\nmessages"
    for message, count in sweep["messages"].items():
        text += "\n" + fitted(f"  {count} x {one_line(message)}")
    emit(text)
