"""`dyn runs verify`: are the files of runs what was written?"""

from __future__ import annotations

from pathlib import Path

import click

from dynamics_cli.cli.arguments import complete_run
from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn runs verify outputs/runs/*")
@click.argument("runs", nargs=-1, required=True, shell_complete=complete_run)
@json_option
def verify(runs: tuple[str, ...], as_json: bool) -> None:
    """Check the files of runs against their checksums.

    The exit code is 7 when one is damaged.
    """
    from dynamics_cli.cli.arguments import run_directory
    from dynamics_cli.cli.output import emit, emit_json
    from dynamics_cli.errors import RunError
    from dynamics_cli.runs import verify_run

    checked = [(path, verify_run(path)) for path in map(run_directory, runs)]
    if as_json:
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
    else:
        for path, findings in checked:
            emit(f"{path}: {'damaged' if findings else 'intact'}")
            for finding in findings:
                emit(f"  {_below(finding.file, path)}: {finding.problem}{finding.usable and f'; {finding.usable}'}")
    damaged = sum(bool(findings) for _, findings in checked)
    if damaged:
        raise RunError(f"{damaged} of {len(checked)} runs {'is' if damaged == 1 else 'are'} damaged")


def _below(file: Path, directory: Path) -> Path:
    return file.relative_to(directory) if file.is_relative_to(directory) else file
