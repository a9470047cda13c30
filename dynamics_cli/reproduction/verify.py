"""Checking a figure: its JSON, the pictures and tables beside it, and the runs it was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError
from dynamics_cli.reproduction.document import read_document, run_path, sha256
from dynamics_cli.runs import CorruptRunError, Finding, Run, verify_run


def verify_figure(path: str | Path, check_run: Callable[[Path], list[Finding]] = verify_run) -> list[Finding]:
    """Check every checksum of a figure, given its JSON; return what is wrong, an empty list when nothing is.

    `check_run` checks a run directory; figures that share runs may hand in one that remembers.
    """
    file = Path(path)
    try:
        document = read_document(file)
    except CorruptRunError as error:
        return [Finding(error.file, error.problem, error.usable)]
    except RunError as error:
        return [Finding(file, str(error))]
    findings = list(_files(file, document))
    seen: set[tuple[Path, str | None]] = set()
    for told in document["runs"]:
        where = (run_path(file, told["path"]), told["hash"])
        if where not in seen:
            seen.add(where)
            findings += _run(*where, check_run)
    return findings


def list_figures(folder: str | Path) -> list[Path]:
    """Return the JSON files of the figures in a folder: those beside which a picture of their name may stand."""
    return sorted(file for file in Path(folder).glob("*.json") if not file.name.startswith("."))


def _files(file: Path, document: Mapping[str, Any]) -> Iterator[Finding]:
    again = f"`dyn reproduce {document['figure']}` makes it again"
    for name, expected in document["sha256"].items():
        beside = file.parent / name
        try:
            found = sha256(beside)
        except OSError as error:
            yield Finding(beside, f"it cannot be read ({error.strerror})", again)
            continue
        if found != expected:
            yield Finding(beside, f"it is not what was written with {file.name}: it has another SHA-256", again)


def _run(path: Path, identity: str | None, check_run: Callable[[Path], list[Finding]]) -> list[Finding]:
    if not path.exists():
        usable = "the figure's own files can still be checked"
        return [Finding(path, "this run of the figure is not there any more: was it moved or deleted?", usable)]
    findings = check_run(path)
    try:
        held = Run(path, verify=False).hash
    except RunError:
        return findings  # which say why
    if held != identity:
        findings = [*findings, Finding(path, "it holds another run than the one that the figure was drawn from")]
    return findings
