"""Emptying a run directory, and refusing what is not ours."""

from __future__ import annotations

from pathlib import Path

from dynamics_cli.errors import UsageError
from dynamics_cli.runs import files, layout
from dynamics_cli.runs.info import is_run


def clear_run(directory: Path) -> None:
    """Delete what a run holds, for `--force`; the lock, which the caller holds, and files that are not ours stay.

    A directory that does not exist, or holds nothing of the names that a run uses, is left as it is.

    Raises:
        UsageError: the directory is not a run, yet holds files whose names a run needs.
        RunError: something cannot be deleted.
    """
    if not is_run(directory):
        refuse_foreign(directory)
        return
    with files.told(directory):
        files.remove_temporaries(directory)
        for name in layout.RUN_FILES:
            if name == layout.CONFIG:
                files.sync_directory(directory)
            files.remove_tree(directory / name)
            if name == layout.INFO:
                files.sync_directory(directory)  # a power cut, too, finds the first gone first, and the last last


def refuse_foreign(directory: Path) -> None:
    """Raise `UsageError` when a new run in this directory would meet another run, or files that are not ours."""
    if files.exists(directory / layout.INFO) and is_run(directory):
        raise UsageError(f"{directory} holds a run already: give --resume to continue it or --force to start over")
    ours = is_run(directory)  # a run that was killed before its first moment, or half deleted
    met = [name for name in layout.RUN_FILES if files.exists(directory / name)]
    if met and not ours:
        raise UsageError(f"{directory} is not a run, and holds {', '.join(met)}: dyn will not overwrite it")
    if files.exists(directory) and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory")
