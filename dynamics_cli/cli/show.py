"""`dyn show`: a run's summary, or a resolved config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from dynamics_cli.cli.arguments import complete_config, complete_run
from dynamics_cli.cli.options import json_option, set_option

if TYPE_CHECKING:
    from dynamics_cli.config import RunConfig
    from dynamics_cli.runs import Run

EXAMPLES = """\b
Examples:
  dyn show boursier2022/orthogonal --set architecture.width=200
  dyn show boursier2022-orthogonal --json
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    configs = [item for item in complete_config(ctx, param, incomplete) if item.type == "plain"]
    return configs + complete_run(ctx, param, incomplete)


@click.command(epilog=EXAMPLES)
@click.argument("run_or_config", shell_complete=_complete)
@set_option
@json_option
def show(run_or_config: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Show a run or a resolved config.

    Of a run: status, final numbers, settings and files. Of a config: every key with its value. RUN_OR_CONFIG is a run
    directory or the name of a run, a config file or the name of a bundled config.
    """
    directory = _run_directory(run_or_config)
    if directory is None:
        from dynamics_cli.cli.arguments import read_config

        _show_config(read_config(run_or_config, overrides), as_json=as_json)
        return
    if overrides:
        raise click.UsageError("--set changes a config; a run is what it is")
    from dynamics_cli.runs import load_run

    _show_run(load_run(directory), as_json=as_json)


def _run_directory(text: str) -> Path | None:
    """Return the directory of the run that `text` names; None when it speaks of a config."""
    from dynamics_cli.cli.arguments import bundled_configs, is_there, run_directory, run_names

    path = Path(text)
    if is_there(path):
        return path if path.is_dir() else None
    if text not in bundled_configs() and any(name.startswith(text) for name in run_names()):
        return run_directory(text)
    return None


def _show_config(config: RunConfig, *, as_json: bool) -> None:
    from dynamics_cli.cli.output import emit, emit_json
    from dynamics_cli.config import to_yaml
    from dynamics_cli.config.dump import to_plain

    if as_json:
        emit_json(to_plain(config))
    else:
        emit(to_yaml(config).rstrip("\n"))


def _show_run(run: Run, *, as_json: bool) -> None:
    from dynamics_cli.cli import output
    from dynamics_cli.cli.summary import final_measures, final_numbers
    from dynamics_cli.config import to_yaml
    from dynamics_cli.config.dump import to_plain

    numbers, measures = final_numbers(run), final_measures(run)
    files = _files(run.path)
    if as_json:
        document: dict[str, Any] = {
            "path": run.path,
            **numbers,
            "measures": measures,
            "messages": run.info.get("messages", []),
            "hash": run.hash,
            "versions": run.info.get("versions"),
            "threads": run.info.get("threads"),
            "provenance": run.info.get("provenance"),
            "snapshots": len(run.snapshot_iterations),
            "losses": len(run.losses),
            "config": to_plain(run.config),
            "files": [run.path / name for name in files],
        }
        output.emit_json(document)
        return
    lines = {"run": str(run.path)}
    lines |= {
        name.replace("_", " "): output.number(value) if isinstance(value, float) else str(value)
        for name, value in numbers.items()
        if value is not None
    }
    lines |= {name.replace("_", " "): output.number(value) for name, value in measures.items()}
    lines |= {"snapshots": str(len(run.snapshot_iterations)), "losses": str(len(run.losses))}
    settings = "\n".join(f"  {line}" for line in to_yaml(run.config).splitlines())
    messages = "".join(f"\nmessage: {message}" for message in run.info.get("messages", []))
    sizes = "\n".join(f"  {output.size(count):>10}  {name}" for name, count in files.items())
    emit_text = f"{output.pairs(lines)}{messages}\n\nsettings\n{settings}\n\nfiles\n{sizes}"
    output.emit(emit_text)


def _files(directory: Path) -> dict[str, int]:
    """Return the size of every file below a run directory, without the lock's."""
    from dynamics_cli.runs.store.layout import LOCK, LOCK_HOLDER

    return {
        path.relative_to(directory).as_posix(): path.stat().st_size
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (LOCK, LOCK_HOLDER)
    }
