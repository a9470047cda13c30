"""Making room for a new run: the run that is there is moved aside, and no file is removed."""

from __future__ import annotations

from pathlib import Path

from dynamics_cli.errors import UsageError
from dynamics_cli.runs.info import write_info
from dynamics_cli.runs.store import files, layout


def make_room(directory: Path, *, force: bool = False) -> Path | None:
    """Let a new run begin in a directory whose lock the caller holds.

    With `force` what has the names of a run is moved to `DIRECTORY.before-N`, which is returned;
    other files stay. From then on `run.json` has the status `BEGINNING`: a run that is killed
    before it begins needs no `force`.

    Raises:
        UsageError: the directory holds a run and `force` is false, or files of somebody else under
            the names of a run.
        RunError: something cannot be moved or written.
    """
    with files.os_errors_as_run_errors(directory):
        aside = check_room(directory, force=force)
        if aside is not None:
            files.make_directory(aside)
            # `run.json` comes last: after a kill the same command moves what is left
            for name in reversed(_held(directory)):
                files.replace(directory / name, aside / name)
            files.sync_directory(aside)
        write_info(directory, {"status": layout.BEGINNING})
    return aside


def check_room(directory: Path, *, force: bool = False) -> Path | None:
    """Return the folder to which `make_room` moves a run, None without a run; raises as it does."""
    if files.exists(directory) and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory")
    if layout.is_run(directory) and not layout.has_begun(directory):
        return None
    names = _held(directory)
    if not names:
        return None
    first = "/".join([names[0], *files.names(directory / names[0])[:1]])
    if layout.is_run(directory):
        problem = f"{directory} holds a run already: give --resume to continue it or --force to"
        remedy = "start over"
    elif layout.was_run(directory):
        problem = f"{directory} has no {layout.INFO}, and holds {first} of a run:"
        remedy = "was it half copied? --force moves it aside"
    else:
        raise UsageError(
            f"{directory} holds {first}, which dyn did not write and will not overwrite: move it"
            " away, or choose another directory"
        )
    if not force:
        raise UsageError(f"{problem} {remedy}")
    return _free(directory.resolve(), names)


def _held(directory: Path) -> list[str]:
    """Return the names of a run that a directory holds, `run.json` first; no empty folders."""
    held = []
    for name in layout.RUN_FILES:
        path = directory / name
        is_folder = path.is_dir() and not path.is_symlink()
        if files.names(path) if is_folder else files.exists(path):
            held.append(name)
    return held


def _free(directory: Path, names: list[str]) -> Path:
    """Return the first `DIRECTORY.before-N` that has none of these names.

    A move that was killed goes on in the same folder.
    """
    n = 1
    while True:
        place = directory.with_name(f"{directory.name}.before-{n}")
        taken = {*files.names(place)}.intersection(names)
        if not taken and (place.is_dir() or not files.exists(place)) and not place.is_symlink():
            return place
        n += 1
