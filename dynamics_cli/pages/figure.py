"""The pages of figures and papers: pictures, claims, origins of settings, and how to repeat it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.mathematics import in_html, with_formulas
from dynamics_cli.pages.document import Html, Page, folded, image, items, joined, shown, table, tag
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.audits import read_audit
from dynamics_cli.reproduction.claims import ClaimOverSeeds, explained, summary
from dynamics_cli.reproduction.document import (
    AUDIT,
    OTHER_RUNS,
    audit_belongs,
    beside,
    command,
    config_files,
    figures_folder,
    file_of,
    read_document,
    run_path,
    seeds_of,
)
from dynamics_cli.reproduction.settings import chosen_by_outcome, origins_of
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.text import number

PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
"""Endings of pictures that a page can hold, the better one first."""
KINDS = {
    "claim": "Claims, decided by trained networks",
    "theory": "Theory, decided by formulas or data alone",
}
ROWS = 200
"""Rows of a table that a page shows."""


def documents_of(paper: str) -> dict[str, Path]:
    """Return the JSON files of a paper's reproduced figures by name, variants after figures."""
    folder = figures_folder()
    files = {name: folder / f"{name}.json" for name in catalogue.figure_names(paper)}
    return {name: file for name, file in files.items() if file.is_file()}


CLASSES = {
    "reproduced": "reproduced",
    "premise not met": "undecided",
    "undecided": "undecided",
}
"""Verdict -> class of its cell, `failed` by default."""


def add_paper(page: Page, key: str, *, apart: bool = False) -> None:
    """Add a paper: how its claims came out, and every figure that was reproduced.

    With `apart` figures have pages of their own beside this one, `FIGURE.html`, to which it links.

    Raises RunError: a file is damaged.
    """
    entry = catalogue.papers()[key]
    files = documents_of(key)
    documents = {name: (file, read_document(file)) for name, file in files.items()}
    every: list[ClaimOverSeeds] = []
    rows = []
    failed = []
    for name, (file, document) in documents.items():
        claims = claims_of(file, document)
        every += claims
        place = f"{name}.html" if apart else f"#{name}"
        rows.append([tag("a", name, href=place), document.get("title", ""), summary(claims)])
        for claim in claims:
            if claim.verdict == "not reproduced":
                statement, *cells = _cells(claim)
                failed.append([statement, name, *cells])
    outcome = "No figure has been reproduced here yet."
    if every:
        outcome = f"{summary(every)}."
    parts: list[Html] = [
        tag("h2", entry.title, id=key),
        tag("p", f"{entry.authors}. {entry.venue}."),
        tag("p", tag("strong", outcome)),
    ]
    if rows:
        parts.append(table(["figure", "title", "outcome"], rows, f"Figures of {key}"))
    if failed:
        header = ["claim", "figure", "source", "expected", "measured"]
        parts.append(table(header, failed, "What does not come out as printed"))
    missing = [
        joined([tag("code", f"dyn reproduce {figure.id}"), f" {figure.title}"])
        for figure in catalogue.figures(key)
        if figure.id not in files
    ]
    if missing:
        parts.append(folded("Not reproduced here", items(missing)))
    page.body.append(tag("section", *parts, class_="paper"))
    if apart:
        return
    for file, document in documents.values():
        add_figure(page, file, document)


def _cells(claim: ClaimOverSeeds) -> list[object]:
    """Return statement, source, expected and measured number of a claim."""
    first = claim.first
    return [Html(in_html(first.statement)), first.source, first.expected, claim.shown]


def add_figure(page: Page, file: Path, document: Mapping[str, Any], *, level: str = "h3") -> None:
    """Add a figure whose JSON in `file` is `document`.

    Raises CorruptRunError: a picture is not the one that was written with the JSON.
    """
    claims = claims_of(file, document)
    numbers = document.get("numbers", {})
    name = str(document["figure"])
    origins = origins_of(name, config_files(document))
    outcome = [f"A setting was chosen by outcome: {text}" for text in chosen_by_outcome(origins)]
    parts = [
        tag(level, f"{name}: {document.get('title', '')}", id=name),
        tag("p", Html(in_html(with_formulas(shown(document.get("caption", "")))))),
        _damage(page, file, document),
        *_pictures(file, document),
        tag("p", tag("strong", f"{summary(claims)}.")),
        *(
            _claims_table(kind, [claim for claim in claims if claim.first.kind == kind])
            for kind in KINDS
        ),
        *(tag("p", text) for text in outcome),
        items(f"{key}: {number(value)}" for key, value in numbers.items()),
        _audit(file, document),
        tag("p", "Again: ", tag("code", command(document))),
        folded(
            "Origins of the settings",
            table(["config", "origin", "settings"], origins, f"Settings of {name}"),
        ),
        folded("Runs and provenance", *_runs(document)),
    ]
    page.body.append(tag("section", *parts, class_="figure"))


def _damage(page: Page, file: Path, document: Mapping[str, Any]) -> Html | None:
    """Return what is damaged in the runs of a figure that are still there."""
    told = []
    for directory in dict.fromkeys(run_path(file, run["path"]) for run in document["runs"]):
        if directory.exists():
            for finding in verify_run(directory):
                told.append(f"{finding.file} is damaged: {finding.problem}")
    page.notes += told
    return items(told, class_="messages")


def claims_of(file: Path, document: Mapping[str, Any]) -> list[ClaimOverSeeds]:
    """Return the claims of a figure, over seeds where `dyn reproduce --seeds` has left them."""
    claims = seeds_of(file, document)
    if not claims:
        claims = [ClaimOverSeeds.from_dict(claim) for claim in document["claims"]]
    return explained(claims, catalogue.missed(document["figure"]))


def _claims_table(kind: str, claims: Sequence[ClaimOverSeeds]) -> Html | None:
    if not claims:
        return None
    seeds = max(len(claim.each) for claim in claims)
    # the verdict beside the statement, so that a phone shows both
    header = ["statement", "verdict", "expected", "measured", "source"]
    if seeds > 1:
        header = ["statement", "verdict", "expected", "median", "source", "seeds"]
    rows = []
    for claim in claims:
        because = [tag("div", text) for text in claim.why]
        said = tag("td", claim.verdict, *because, class_=CLASSES.get(claim.verdict, "failed"))
        statement, source, expected, measured = _cells(claim)
        cells = [statement, said, expected, measured, source]
        if seeds > 1:
            each = ", ".join(
                f"+{k}: {ClaimOverSeeds((of_seed,)).shown}" for k, of_seed in enumerate(claim.each)
            )
            cells.append(tag("td", folded(claim.count or "each seed", each)))
        rows.append(cells)
    return table(header, rows, KINDS[kind], class_="claims")


def _audit(file: Path, document: Mapping[str, Any]) -> Html | None:
    """Return which claims hold under nulls, where `dyn audit` has left its table."""
    if (audit := read_audit(beside(file, AUDIT))) is None:
        return None
    if not audit_belongs(audit, document):
        return tag("p", f"The audit {beside(file, AUDIT).name} is not shown: {OTHER_RUNS}.")
    return folded(
        "Claims under nulls",
        table(
            *audit.table(),
            f"Which claims of {audit.figure} hold for other networks than the figure's",
        ),
        items(filter(None, (outcome.remark for outcome in audit.nulls))),
    )


def _pictures(file: Path, document: Mapping[str, Any]) -> Iterator[Html]:
    for name in document["sha256"]:
        path = file.parent / name
        better = path.suffix == ".svg" and path.with_suffix(".png").name in document["sha256"]
        if path.suffix not in (*PICTURES, ".csv") or better:
            continue
        data = file_of(file, document, name)
        if path.suffix == ".csv":
            text = io.StringIO(data.decode("utf-8", "replace"), newline="")
            try:
                header, *rows = csv.reader(text)
            except (ValueError, csv.Error) as error:
                raise CorruptRunError(path, f"it is no table: {error}") from error
            yield folded(
                "The table", table(header, rows[:ROWS], f"{document.get('title', '')}"), opened=True
            )
        else:
            said = f"{document.get('title', '')}. {document.get('caption', '')}"
            yield image(data, said, PICTURES[path.suffix])
    if not any(Path(name).suffix in PICTURES for name in document["sha256"]):
        yield tag(
            "p",
            "The picture was written in a format that no page can hold; --format png writes one"
            " that can.",
        )


def config_name(config: str) -> str:
    """Return how a config is called on any machine: below `configs/`, or by its own name."""
    return Path(config).name if Path(config).is_absolute() else config


def _runs(document: Mapping[str, Any]) -> Iterator[Html]:
    rows = [
        [
            run["role"],
            config_name(run["config"]),
            " ".join(run.get("overrides", [])),
            run["seed"],
            run.get("replicas", 1),
            Path(run["path"]).name,
            (run["hash"] or "")[:10],
        ]
        for run in document["runs"]
    ]
    header = ["role", "config", "changes", "seed", "networks", "run", "hash"]
    yield table(header, rows[:ROWS], "Runs") if rows else tag("p", "No network is trained.")
    if rows:
        yield tag("p", "A run has its own page: ", tag("code", f"dyn page {rows[0][5]}"))
    made = document["provenance"]
    kept = {key: value for key, value in made.items() if key != "obtained"}
    yield table([], kept.items(), "Where, when and with what it was made")
