"""What of a figure goes to other machines: its files without paths and times of this one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dynamics_cli.reproduction.audits import Audit, read_audit
from dynamics_cli.reproduction.document import (
    AUDIT,
    SEEDS,
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
"""Entries of `provenance` that are published: the others name the machine, or the time that each
run took.
"""


def without_machine(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a figure without what only the machine knows."""
    kept = {key: document["provenance"][key] for key in PROVENANCE if key in document["provenance"]}
    return {**document, "provenance": kept}


def without_paths(reason: str) -> str:
    """Return a reason without directories; a run that diverged is named by its own."""
    return re.sub(r"/\S*/", "", reason.partition("; everything up to it is kept")[0])


def audit_without_paths(audit: Audit) -> Audit:
    """Return an audit whose reasons name no directories."""
    nulls = [
        outcome.model_copy(update={"reason": without_paths(outcome.reason)})
        for outcome in audit.nulls
    ]
    return audit.model_copy(update={"nulls": nulls})


def audit_of(file: Path, document: Mapping[str, Any]) -> Audit | None:
    """Return the audit beside the JSON of a figure; None without one of the same runs.

    Raises RunError: it is damaged.
    """
    audit = read_audit(beside(file, AUDIT))
    if audit is None or not audit_belongs(audit, document):
        return None
    return audit_without_paths(audit)


def published(
    file: Path, document: Mapping[str, Any], configs: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of a figure, given its JSON, as others may have them.

    `configs` has the published name of each config. JSON files are sealed anew.

    Raises RunError: a file is damaged or gone.
    """
    for name in document["files"]:
        yield name, file_of(file, document, name)
    for kept in document["provenance"].get("code", {}).get("kept", {}).values():
        copy = f"{kept['copy']}/{kept['from']}"
        with unreadable_as_corrupt(path := file.parent / copy):
            yield copy, regular(path)
    yield file.name, seal(_elsewhere(document, configs))
    if seeds_of(file, document):
        over_seeds = {**read_document(beside(file, SEEDS)), "runs": []}
        yield beside(file, SEEDS).name, seal(_elsewhere(over_seeds, configs))
    if (audit := audit_of(file, document)) is not None:
        yield beside(file, AUDIT).name, seal(audit.as_dict())


def _elsewhere(document: Mapping[str, Any], configs: Mapping[str, str]) -> dict[str, Any]:
    runs = []
    for run in document["runs"]:
        path = run["path"]
        if Path(path).is_absolute():
            path = Path(path).name
        runs.append({**run, "config": configs.get(run["config"], run["config"]), "path": path})
    elsewhere = {**without_machine(document), "runs": runs}
    elsewhere["provenance"]["code"] = document["provenance"].get("code", {})
    return elsewhere
