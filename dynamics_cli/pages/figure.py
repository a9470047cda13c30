"""The pages of figures and papers: pictures, claims, origins of settings, and how to repeat it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.config.dump import flat
from dynamics_cli.mathematics import in_html, with_formulas
from dynamics_cli.pages.document import Html, Page, folded, image, items, joined, shown, table, tag
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.claims import ClaimOverSeeds, explained, summary
from dynamics_cli.reproduction.document import (
    AUDIT,
    OTHER_RUNS,
    beside,
    command,
    config_files,
    figures_folder,
    file_of,
    read_document,
    run_path,
    seeds_of,
)
from dynamics_cli.reproduction.publish import audit_of
from dynamics_cli.reproduction.settings import chosen_by_outcome, named, origins_of
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


CLASSES = {
    "reproduced": "reproduced",
    "premise not met": "undecided",
    "undecided": "undecided",
}
"""Verdict -> class of its cell, `failed` by default."""


class Reproduced:
    """A reproduced figure: its JSON, its claims, and the audits beside it."""

    def __init__(self, file: Path, *, apart: bool = False) -> None:
        """Read the JSON; a figure `apart` has a page of its own, `FIGURE.html`.

        Raises RunError: a file is damaged.
        """
        self.name = file.stem
        self.place = f"{self.name}.html" if apart else f"#{self.name}"
        self.file = file
        self.document = read_document(file)
        claims = seeds_of(file, self.document)
        if not claims:
            claims = [ClaimOverSeeds.from_dict(claim) for claim in self.document["claims"]]
        self.claims = explained(claims, catalogue.missed(self.document["figure"]))
        self.audit = audit_of(file, self.document)

    @property
    def title(self) -> str:
        """The title, as the index of papers has it."""
        return str(self.document.get("title", ""))

    def failing(self, claim: ClaimOverSeeds) -> str:
        """Return under how many nulls a claim fails, such as `7 of 9`; empty without an audit."""
        if self.audit is None:
            return ""
        nulls = [outcome for outcome in self.audit.nulls if outcome.factor is None]
        held = [outcome.held.get(claim.first.id) for outcome in nulls]
        asked = [holds for holds in held if holds is not None]
        return f"{asked.count(False)} of {len(asked)}" if asked else ""

    def after(self, claim: ClaimOverSeeds) -> str:
        """Return whether longer training changes a verdict; empty where that was not tried."""
        nulls = [] if self.audit is None else self.audit.nulls
        longer = [one for one in nulls if one.factor is not None and one.held]
        return "".join(outcome.said(claim.first) for outcome in longer)


def reproduced(paper: str, *, apart: bool = False) -> list[Reproduced]:
    """Return the figures of a paper that were reproduced, variants after figures."""
    files = (figures_folder() / f"{name}.json" for name in catalogue.figure_names(paper))
    return [Reproduced(file, apart=apart) for file in files if file.is_file()]


Claims = Sequence[tuple[Reproduced, ClaimOverSeeds]]
COLUMNS: dict[str, Callable[[Reproduced, ClaimOverSeeds], object]] = {
    "statement": lambda _, claim: Html(in_html(claim.first.statement)),
    # beside the statement, so that a phone shows both
    "verdict": lambda _, claim: tag(
        "td",
        claim.verdict,
        *(tag("div", text) for text in claim.why),
        class_=CLASSES.get(claim.verdict, "failed"),
    ),
    "expected": lambda _, claim: claim.first.expected,
    "measured": lambda _, claim: claim.shown,
    "source": lambda _, claim: claim.first.source,
    "figure": lambda figure, _: tag("a", figure.name, href=figure.place),
    "seeds": lambda _, claim: _seeds(claim),
    "fails under nulls": lambda figure, claim: figure.failing(claim),
    "trained longer": lambda figure, claim: figure.after(claim),
}
"""Column of a table of claims -> its cell."""


def _seeds(claim: ClaimOverSeeds) -> object:
    if len(claim.each) == 1:
        return claim.count or ("theory" if claim.first.kind == "theory" else "one seed")
    each = ", ".join(f"+{k}: {ClaimOverSeeds((one,)).shown}" for k, one in enumerate(claim.each))
    return tag("td", folded(claim.count or "each seed", each))


def claims_table(claims: Claims, caption: str, *columns: str) -> Html | None:
    """Return a table of claims of figures without its empty columns; None without any claim."""
    cells = {name: [COLUMNS[name](*pair) for pair in claims] for name in columns}
    kept = {name: column for name, column in cells.items() if any(column)}
    rows = [*zip(*kept.values(), strict=True)]
    several = any(len(claim.each) > 1 for _, claim in claims)
    header = ["median" if several and name == "measured" else name for name in kept]
    return table(header, rows, caption, class_="claims") if rows else None


def add_paper(page: Page, key: str, figures: Sequence[Reproduced], *, apart: bool = False) -> None:
    """Add a paper: how its claims came out, and its figures that were reproduced.

    With `apart` figures have pages of their own beside this one, `FIGURE.html`, to which it links.

    Raises RunError: a file is damaged.
    """
    entry = catalogue.papers()[key]
    every = [(figure, claim) for figure in figures for claim in figure.claims]
    failed = [(figure, claim) for figure, claim in every if claim.verdict == "not reproduced"]
    rows = []
    for figure in figures:
        link = tag("a", figure.name, href=figure.place)
        rows.append([link, figure.title, summary(figure.claims)])
    outcome = "No figure has been reproduced here yet."
    if every:
        outcome = f"{summary([claim for _, claim in every])}."
    there = {figure.name for figure in figures}
    missing = [
        joined([tag("code", f"dyn reproduce {figure.id}"), f" {figure.title}"])
        for figure in catalogue.figures(key)
        if figure.id not in there
    ]
    parts = [
        tag("h2", entry.title, id=key),
        tag("p", f"{entry.authors}. {entry.venue}."),
        tag("p", tag("strong", outcome)),
        table(["figure", "title", "outcome"], rows, f"Figures of {key}") if rows else None,
        claims_table(
            failed,
            "What does not come out as printed",
            *("statement", "figure", "source", "expected", "measured"),
        ),
        folded("Not reproduced here", items(missing)) if missing else None,
    ]
    page.body.append(tag("section", *parts, class_="paper"))
    if not apart:
        for figure in figures:
            add_figure(page, figure)


def add_figure(page: Page, figure: Reproduced, *, level: str = "h3") -> None:
    """Add a figure.

    Raises CorruptRunError: a picture is not the one that was written with the JSON.
    """
    document = figure.document
    name = str(document["figure"])
    origins = origins_of(name, config_files(document).values())
    outcome = [f"A setting was chosen by outcome: {text}" for text in chosen_by_outcome(origins)]
    columns = ["statement", "verdict", "expected", "measured", "source"]
    if any(len(claim.each) > 1 for claim in figure.claims):
        columns.append("seeds")
    parts = [
        tag(level, f"{name}: {figure.title}", id=name),
        tag("p", Html(in_html(with_formulas(shown(document.get("caption", "")))))),
        _damage(page, figure),
        *_pictures(figure),
        tag("p", tag("strong", f"{summary(figure.claims)}.")),
        *(
            claims_table(
                [(figure, claim) for claim in figure.claims if claim.first.kind == kind],
                caption,
                *columns,
            )
            for kind, caption in KINDS.items()
        ),
        *(tag("p", text) for text in outcome),
        items(f"{key}: {number(value)}" for key, value in document.get("numbers", {}).items()),
        _audit(figure),
        tag("p", "Again: ", tag("code", command(document))),
        folded(
            "Origins of the settings",
            table(["config", "origin", "settings"], origins, f"Settings of {name}"),
        ),
        folded("Runs and provenance", *_runs(document)),
    ]
    page.body.append(tag("section", *parts, class_="figure"))


def _damage(page: Page, figure: Reproduced) -> Html | None:
    """Return what is damaged in the runs of a figure that are still there."""
    told = []
    runs = figure.document["runs"]
    for directory in dict.fromkeys(run_path(figure.file, run["path"]) for run in runs):
        if directory.exists():
            for finding in verify_run(directory):
                told.append(f"{finding.file} is damaged: {finding.problem}")
    page.notes += told
    return items(told, class_="messages")


def _audit(figure: Reproduced) -> Html | None:
    """Return which claims hold under nulls, where `dyn audit` has left its table."""
    file = beside(figure.file, AUDIT)
    audit = figure.audit
    if audit is None:
        said = f"The audit {file.name} is not shown: {OTHER_RUNS}."
        return tag("p", said) if file.is_file() else None
    said = f"Which claims of {audit.figure} hold for other networks than the figure's"
    remarks = filter(None, (outcome.remark for outcome in audit.nulls))
    return folded("Claims under nulls", table(*audit.table(), said), items(remarks))


def _pictures(figure: Reproduced) -> Iterator[Html]:
    file = figure.file
    document = figure.document
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
            yield folded("The table", table(header, rows[:ROWS], figure.title), opened=True)
        else:
            said = f"{figure.title}. {document.get('caption', '')}"
            yield image(data, said, PICTURES[path.suffix])
    if not any(Path(name).suffix in PICTURES for name in document["sha256"]):
        yield tag(
            "p",
            "The picture was written in a format that no page can hold; --format png writes one"
            " that can.",
        )


def _runs(document: Mapping[str, Any]) -> Iterator[Html]:
    rows = [
        [
            run["role"],
            named(run["config"]),
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
    kept = flat({key: value for key, value in made.items() if key != "obtained"})
    yield table([], kept.items(), "Where, when and with what it was made")
