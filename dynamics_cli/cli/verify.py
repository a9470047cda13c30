"""`dyn verify`: are the files of runs and figures what was written?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from dynamics_cli.cli.arguments import complete_run
from dynamics_cli.cli.options import json_option

if TYPE_CHECKING:
    from dynamics_cli.runs import Finding

    Check = Callable[[], list[Finding]]

EXAMPLES = """\b
Examples:
  dyn verify boursier2022-orthogonal
  dyn verify outputs/figures/boursier2022-fig2.json outputs/runs/*
  dyn verify --all

\b
Exit codes:
  0 everything is what was written, 7 something is damaged, missing, or of a newer version of dyn
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [*complete_run(ctx, param, incomplete), CompletionItem(incomplete, type="file")]


@click.command(epilog=EXAMPLES)
@click.argument("paths", nargs=-1, metavar="[RUN_OR_FIGURE]...", shell_complete=_complete)
@click.option("--all", "everything", is_flag=True, help="All runs, sweeps and figures below the root of outputs.")
@json_option
def verify(paths: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Check runs and figures against their checksums.

    RUN_OR_FIGURE is a run directory, the name of a run, the directory of a sweep, or the JSON beside a figure, which
    stands for the pictures and tables that it names and for the runs that it was drawn from. Told is which file is
    damaged, what is wrong with it, and what can still be used.
    """
    from dynamics_cli.errors import RunError

    if everything == bool(paths):
        raise click.UsageError("say what to check: runs, figures' JSON files, or --all")
    checks = _everything() if everything else _named(paths)
    checked = [(path, check()) for path, check in checks]
    if as_json:
        _emit_json(checked)
    else:
        _emit(checked)
    damaged = sum(bool(findings) for _, findings in checked)
    if damaged:
        raise RunError(f"{damaged} of {len(checked)} {'is' if damaged == 1 else 'are'} damaged")


def _named(paths: tuple[str, ...]) -> list[tuple[Path, Check]]:
    """Return what stands behind each argument, with what checks it.

    Raises:
        RunError: there is no such file, nor a run of this name.

    """
    from dynamics_cli.cli.arguments import is_there, run_directory

    targets = []
    for text in paths:
        path = Path(text)
        targets.append(path if is_there(path) and not path.is_dir() else run_directory(text))
    return _checks(targets)


def _everything() -> list[tuple[Path, Check]]:
    from dynamics_cli.reproduction.document import list_figures
    from dynamics_cli.runs import list_runs, outputs_root
    from dynamics_cli.sweeps.directory import is_sweep

    root = outputs_root()
    sweeps = [path for path in sorted((root / "sweeps").glob("*")) if is_sweep(path)]
    runs = [run.path for run in list_runs(root) if not any(run.path.is_relative_to(sweep) for sweep in sweeps)]
    return _checks([*runs, *sweeps, *list_figures(root / "figures")])


def _checks(targets: list[Path]) -> list[tuple[Path, Check]]:
    """Return each target with the function that checks it; runs that several of them share are checked once."""
    from functools import partial

    from dynamics_cli.reproduction.document import verify_figure
    from dynamics_cli.runs import verify_run
    from dynamics_cli.runs.store import layout
    from dynamics_cli.sweeps.directory import is_sweep, verify_sweep

    remembered = cache(verify_run)

    def check_run(path: Path) -> list[Finding]:
        return remembered(path.absolute())

    checks: list[tuple[Path, Check]] = []
    for target in targets:
        if is_sweep(target):
            checks.append((target, partial(verify_sweep, target)))
        elif target.is_dir() or target.name == layout.INFO:
            directory = target if target.is_dir() else target.parent
            checks.append((directory, partial(check_run, directory)))
        else:
            checks.append((target, partial(verify_figure, target, check_run)))
    return checks


def _emit_json(checked: list[tuple[Path, list[Finding]]]) -> None:
    from dynamics_cli.cli.output import emit_json

    emit_json(
        [
            {
                "path": path,
                "intact": not findings,
                "findings": [{"file": f.file, "problem": f.problem, "usable": f.usable} for f in findings],
            }
            for path, findings in checked
        ]
    )


def _emit(checked: list[tuple[Path, list[Finding]]]) -> None:
    from dynamics_cli.cli.output import emit

    for path, findings in checked:
        emit(f"{path}: {'damaged' if findings else 'intact'}")
        for finding in findings:
            emit(f"  {_below(finding.file, path)}: {finding.problem}")
            if finding.usable:
                emit(f"    still usable: {finding.usable}")


def _below(file: Path, path: Path) -> Path:
    """Return how a file is shown below the line of `path`: relative to it, or to the folder it is in."""
    for folder in (path.absolute(), path.absolute().parent):
        if file.absolute() != folder and file.absolute().is_relative_to(folder):
            return file.absolute().relative_to(folder)
    return file
