"""What of a figure goes to other machines: its files without paths and times of this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from dynamics_cli.reproduction.audits import Audit, read_audit
from dynamics_cli.reproduction.document import (
    AUDIT,
    SEEDS,
    FigureDocument,
    audit_belongs,
    beside,
    file_of,
    read_document,
    regular,
    seeds_of,
)
from dynamics_cli.runs.errors import unreadable_as_corrupt
from dynamics_cli.runs.store.sealed import seal

PROVENANCE = ("started", "versions", "commit", "threads", "seconds")
"""Entries of `provenance` that are published, beside the author's code: the others name the
machine, or the time that each run took.
"""
SMALL = (".png", ".csv")
"""Endings of the files that a repository can hold; a PDF is as large as its PNG again."""


def audit_of(file: Path, document: FigureDocument) -> Audit | None:
    """Return the audit beside the JSON of a figure; None without one of its runs and verdicts.

    Raises RunError: it is damaged.
    """
    audit = read_audit(beside(file, AUDIT))
    belongs = audit is not None and audit_belongs(audit, document)
    return audit if belongs else None


def published(
    file: Path,
    document: FigureDocument,
    place: Callable[[str], str] = str,
    *,
    small: bool = False,
) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of a figure, given its JSON, as others may have them.

    `place` gives the published name of a config. JSON files are sealed anew. `small` leaves out
    pictures for print and the author's code.

    Raises RunError: a file is damaged or gone.
    """
    digests = document.sha256
    if small:
        digests = {name: digests[name] for name in digests if name.endswith(SMALL)}
    for name in digests:
        yield name, file_of(file, document, name)
    for source in () if small else document.provenance.code.kept.values():
        copy = f"{source.copy_}/{source.origin}"
        with unreadable_as_corrupt(path := file.parent / copy):
            yield copy, regular(path)

    def elsewhere(document: FigureDocument, **changes: object) -> bytes:
        content = document.as_dict()
        made = content["provenance"]
        kept = {key: made[key] for key in PROVENANCE if key in made}
        if not small and made.get("code"):
            kept["code"] = made["code"]
        for run in content["runs"]:
            run["config"] = place(run["config"])
            if Path(run["path"]).is_absolute():
                run["path"] = Path(run["path"]).name
        return seal({**content, "provenance": kept, **changes})

    yield file.name, elsewhere(document, files=list(digests), sha256=digests)
    if seeds_of(file, document):
        seeds = beside(file, SEEDS)
        yield seeds.name, elsewhere(read_document(seeds), runs=[])
    if (audit := audit_of(file, document)) is not None:
        yield beside(file, AUDIT).name, seal(audit.model_dump())
