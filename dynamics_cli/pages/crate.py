"""The RO-Crate of a site: its files and how they were made, in JSON-LD of schema.org.

It follows RO-Crate 1.2 and the profile of workflow runs 0.5: the workflow is a script of the
commands, and each figure is a run of it, with its configs and its files. `assets/crate.json` has
the entities that all sites have.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files as resources

from dynamics_cli.reproduction.document import FigureDocument
from dynamics_cli.reproduction.entries import PaperEntry

CRATE = "ro-crate-metadata.json"
WORKFLOW = "reproduce.sh"
SPECIFICATION = "https://w3id.org/ro/crate/1.2"


def script(documents: Mapping[str, FigureDocument]) -> bytes:
    """Return the script that makes all figures again, given their JSON by name."""
    commands = (document.command for document in documents.values())
    return "\n".join(["#!/bin/bash -e", *commands, ""]).encode()


def crate(
    entry: PaperEntry,
    cited: str,
    made: Mapping[str, Sequence[str]],
    documents: Mapping[str, FigureDocument],
    contents: Mapping[str, bytes],
) -> bytes:
    """Return the metadata of the site of a paper.

    Args:
        entry: its entry in the index.
        cited: a sentence that cites the site.
        made: dates and versions of its figures, as their pages say them.
        documents: JSON of its figures, by name.
        contents: the files of the site, by name.
    """
    asset = resources("dynamics_cli.pages") / "assets" / "crate.json"
    known = {entity["@id"]: entity for entity in json.loads(asset.read_text(encoding="utf-8"))}
    known["./"] |= {
        "name": f"Reproduction of: {entry.title}",
        "description": cited,
        "datePublished": max(made["date"]),
        "hasPart": _ids(contents),
        "mentions": _ids(f"#{name}" for name in documents),
    }
    known["#paper"] |= {"name": entry.title, "creditText": f"{entry.authors}. {entry.venue}."}
    known["#dyn"]["version"] = ", ".join(made["version of dyn"])
    for name, data in contents.items():
        form = mimetypes.guess_type(name)[0] or "text/plain"
        described = {"name": name, "encodingFormat": form, "contentSize": str(len(data))}
        known[name] = {"@id": name, "@type": "File", **described, **known.get(name, {})}
    for name, document in documents.items():
        configs = tuple(run.config for run in document.runs)
        results = (f"figures/{name}.", f"{name}.")
        known[f"#{name}"] = {
            "@id": f"#{name}",
            "@type": "CreateAction",
            "name": document.title or name,
            "description": document.command,
            "instrument": {"@id": WORKFLOW},
            "object": _ids(place for place in contents if place.endswith(configs)),
            "result": _ids(place for place in contents if place.startswith(results)),
            "endTime": document.provenance.started,  # the time when it was drawn
        }
    graph = {"@context": f"{SPECIFICATION}/context", "@graph": [*known.values()]}
    return (json.dumps(graph, indent=1, ensure_ascii=False) + "\n").encode()


def _ids(names: Iterable[str]) -> object:
    """Return references to entities, as JSON-LD has them: one alone is no list."""
    ids = [{"@id": name} for name in names]
    return ids[0] if len(ids) == 1 else ids
