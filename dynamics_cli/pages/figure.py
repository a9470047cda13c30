"""Figures and papers as parts of pages, which the handbook shows too: pictures, claims, origins.

Begin with `Reproduced` and `figure_parts`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from dynamics_cli.config.dump import flat
from dynamics_cli.mathematics import in_html, with_formulas
from dynamics_cli.pages.document import Html, Page, folded, image, items, joined, shown, table, tag
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.claims import KINDS, ClaimOverSeeds, explained, summary
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
from dynamics_cli.reproduction.entries import CAUSES, PaperEntry
from dynamics_cli.reproduction.publish import audit_of
from dynamics_cli.reproduction.settings import chosen_by_outcome, named, origins_in
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.text import duration, number

PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
"""Endings of pictures that a page can hold, the better one first."""
ROWS = 200
"""Rows of a table that a page shows."""
STYLES = {"reproduced": "reproduced", "fails": "reproduced", "not reproduced": "not-reproduced"}
"""Verdict, or what a claim does under a null -> class of its badge, `partly` by default."""


class Reproduced:
    """A reproduced figure: its JSON, its claims, theory last, and the audit beside it.

    Pages that have pictures, configs or figures elsewhere derive from it.
    """

    opened = True
    """Whether claims that came out, and further numbers, are unfolded."""

    def __init__(self, file: Path) -> None:
        """Read the JSON. Raises RunError: a file is damaged."""
        self.name = file.stem
        self.file = file
        self.document = read_document(file)
        claims = seeds_of(file, self.document)
        if not claims:
            claims = [ClaimOverSeeds.from_dict(claim) for claim in self.document["claims"]]
        self.entry = catalogue.listed(self.document["figure"])
        claims = explained(claims, self.entry.missed)
        self.claims = sorted(claims, key=lambda claim: KINDS.index(claim.first.kind))
        self.audit = audit_of(file, self.document)

    @classmethod
    def of_paper(cls, key: str) -> list[Self]:
        """Return the figures of a paper that were reproduced, variants after figures."""
        files = (figures_folder() / f"{name}.json" for name in catalogue.figure_names(key))
        return [cls(file) for file in files if file.is_file()]

    @property
    def title(self) -> str:
        """The title, as the index of papers has it."""
        return str(self.document.get("title", ""))

    @property
    def place(self) -> str:
        """Where its section or its page is."""
        return f"#{self.name}"

    @property
    def link(self) -> Html:
        """Its name, which leads there."""
        return tag("a", self.name, href=self.place)

    def config(self, name: str) -> Html:
        """Return the name of a config, perhaps as a link."""
        return tag("code", named(name))

    @cached_property
    def origins(self) -> list[tuple[str, str, str]]:
        """Config, origin and settings, as the comments of the configs say."""
        return [
            (config, *origin)
            for config, file in config_files(self.document).items()
            if file.is_file()
            for origin in origins_in(file, self.name)
        ]

    def pictures(self) -> Iterator[Html]:
        """Yield its caption, its pictures and its tables.

        Raises CorruptRunError: a file is not the one that was written with the JSON.
        """
        document = self.document
        caption = document.get("caption", "")
        yield tag("p", prose(with_formulas(caption)))
        for name in document["sha256"]:
            path = self.file.parent / name
            better = path.suffix == ".svg" and path.with_suffix(".png").name in document["sha256"]
            if path.suffix not in (*PICTURES, ".csv") or better:
                continue
            data = file_of(self.file, document, name)
            if path.suffix == ".csv":
                text = io.StringIO(data.decode("utf-8", "replace"), newline="")
                try:
                    header, *rows = csv.reader(text)
                except (ValueError, csv.Error) as error:
                    raise CorruptRunError(path, f"it is no table: {error}") from error
                yield folded("The table", table(header, rows[:ROWS], self.title), opened=True)
            else:
                yield image(data, f"{self.title}. {caption}", PICTURES[path.suffix])
        if not any(Path(name).suffix in PICTURES for name in document["sha256"]):
            yield tag(
                "p",
                "The picture was written in a format that no page can hold; --format png writes"
                " one that can.",
            )

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


# -- words


def prose(text: str) -> Html:
    """Return a text with its formulas and its code."""
    return Html(in_html(shown(text)))


def badge(said: str, verdict: str = "") -> Html:
    """Return a word, or a verdict, in the colours of a verdict."""
    return tag("span", said, class_=f"verdict {STYLES.get(verdict or said, 'partly')}")


def plural(count: int, noun: str) -> str:
    """Return `1 claim`, `2 claims`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def causes(claims: Iterable[ClaimOverSeeds]) -> str:
    """Return why claims are missed, where that is known: `paper 4, our setting 5`."""
    known = Counter(
        claim.first.because.cause
        for claim in claims
        if claim.first.because is not None and claim.verdict != "reproduced"
    )
    return ", ".join(f"{cause} {known[cause]}" for cause in CAUSES if known[cause])


# -- claims


Claims = Sequence[tuple[Reproduced, ClaimOverSeeds]]
COLUMNS: dict[str, Callable[[Reproduced, ClaimOverSeeds], object]] = {
    "claim": lambda _, claim: joined(
        [prose(claim.first.statement), tag("code", claim.first.id, class_="below")]
    ),
    # beside the statement, so that a phone shows both
    "verdict": lambda _, claim: _judged(claim),
    "expected": lambda _, claim: claim.first.expected,
    "measured": lambda _, claim: claim.shown,
    "source": lambda _, claim: claim.first.source,
    "figure": lambda figure, _: figure.link,
    "fails under nulls": lambda figure, claim: figure.failing(claim),
    "trained longer": lambda figure, claim: figure.after(claim),
}
"""Column of a table of claims -> its cell."""


def _judged(claim: ClaimOverSeeds) -> Html:
    """Return a verdict, the seeds that it stands on with their numbers, and why it is so."""
    is_theory = claim.first.kind == "theory"
    seeds = None
    if len(claim.each) > 1:
        each = enumerate(ClaimOverSeeds((one,)).shown for one in claim.each)
        count = claim.count or f"none of {len(claim.each)} seeds decides"
        seeds = folded(count, ", ".join(f"+{k}: {measured}" for k, measured in each))
    elif not is_theory:
        seeds = tag("div", claim.count or "one seed", class_="below")
    why = (tag("div", prose(text), class_="below") for text in claim.why)
    return joined([badge(claim.verdict), " (theory)" * is_theory, seeds, *why])


def claims_table(claims: Claims, caption: str, *columns: str) -> Html | None:
    """Return a table of claims of figures without its empty columns; None without any claim."""
    cells = {name: [COLUMNS[name](*pair) for pair in claims] for name in columns}
    kept = {name: column for name, column in cells.items() if any(column)}
    rows = [*zip(*kept.values(), strict=True)]
    several = any(len(claim.each) > 1 for _, claim in claims)
    header = ["median" if several and name == "measured" else name for name in kept]
    return table(header, rows, caption, class_="claims") if rows else None


def counts(claims: Iterable[ClaimOverSeeds]) -> list[Html]:
    """Return the cells `25 of 26`, `1 of 1` of claims and theory.

    Claims that are not decided do not count.
    """
    claims = [*claims]
    cells = []
    for kind in KINDS:
        of_kind = [claim for claim in claims if claim.first.kind == kind]
        held = sum(claim.verdict == "reproduced" for claim in of_kind)
        missed = sum(claim.missed for claim in of_kind)
        verdict = "reproduced"
        if missed:
            verdict = "partly" if held else "not reproduced"
        decided = held + missed
        cells.append(badge(f"{held} of {decided}", verdict) if decided else Html("–"))
    return cells


# -- papers


def paper_parts(
    entry: PaperEntry, figures: Iterable[tuple[Html, Sequence[ClaimOverSeeds]]]
) -> tuple[Html, Html, Html]:
    """Return the authors of a paper, how its claims came out, and a table of its figures.

    `figures` has links to figures, and their claims.
    """
    figures = [*figures]
    claims = [claim for _, of_figure in figures for claim in of_figure]
    venue = re.split(r"arXiv:(\d{4}\.\d{4,5})", entry.venue)  # words, number, words, ...
    venue[1::2] = [
        tag("a", f"arXiv:{paper}", href=f"https://arxiv.org/abs/{paper}") for paper in venue[1::2]
    ]
    why = causes(claims)
    rows = [[link, *counts(of_figure)] for link, of_figure in figures]
    return (
        tag("p", f"{entry.authors}. ", *venue, "."),
        tag(
            "p",
            tag("strong", f"{summary(claims)}."),
            why and f" Those that are not are due to: {why}.",
        ),
        table(["figure", "claims", "theory"], rows, class_="outcomes"),
    )


def add_paper(page: Page, key: str, figures: Sequence[Reproduced]) -> None:
    """Add a paper: how its claims came out, and links to its figures that were reproduced.

    Raises RunError: a file is damaged.
    """
    entry = catalogue.papers()[key]
    failed = [
        (figure, claim)
        for figure in figures
        for claim in figure.claims
        if claim.verdict == "not reproduced"
    ]
    links = (joined([figure.link, f": {figure.title}"]) for figure in figures)
    authors, *outcome = paper_parts(
        entry, zip(links, (figure.claims for figure in figures), strict=True)
    )
    if not figures:
        outcome = [tag("p", "No figure has been reproduced here yet.")]
    there = {figure.name for figure in figures}
    missing = items(
        joined([tag("code", f"dyn reproduce {figure.id}"), f" {figure.title}"])
        for figure in catalogue.figures(key)
        if figure.id not in there
    )
    parts = [
        tag("h2", entry.title, id=key),
        authors,
        *outcome,
        claims_table(
            failed,
            "What does not come out as printed",
            *("claim", "verdict", "expected", "measured", "figure", "source"),
        ),
        missing and folded("Not reproduced here", missing),
    ]
    page.body.append(tag("section", *parts, class_="paper"))


# -- figures


def add_figure(page: Page, figure: Reproduced, *, level: str = "h3") -> None:
    """Add a figure.

    Raises CorruptRunError: a picture is not the one that was written with the JSON.
    """
    parts = [
        tag(level, f"{figure.name}: {figure.title}", id=figure.name),
        _damage(page, figure),
        *figure_parts(figure),
        folded("Runs and provenance", *_runs(figure.document)),
    ]
    page.body.append(tag("section", *parts, class_="figure"))


def figure_parts(figure: Reproduced) -> Iterator[Html | None]:
    """Yield what is known of a figure, below its title.

    Raises CorruptRunError: a picture is not the one that was written with the JSON.
    """
    by_outcome = chosen_by_outcome(figure.origins)
    yield _seed_by_outcome(by_outcome, figure.claims)
    yield from figure.pictures()
    yield tag("p", tag("strong", f"{summary(figure.claims)}."))
    columns = ("claim", "verdict", "expected", "measured", "source")
    claims = [(figure, claim) for claim in figure.claims]
    yield claims_table([pair for pair in claims if pair[1].verdict != "reproduced"], "", *columns)
    held = [pair for pair in claims if pair[1].verdict == "reproduced"]
    if held:
        title = plural(len(held), "reproduced claim")
        yield folded(title, claims_table(held, "", *columns), opened=figure.opened)
    for text in by_outcome:
        yield tag("p", badge("chosen by outcome"), " ", prose(text))
    yield numbers(figure)
    yield _audit(figure)
    if figure.origins:
        rows = [
            [figure.config(config), origin, prose(text)] for config, origin, text in figure.origins
        ]
        origins = table(["config", "origin", "settings"], rows, class_="origins")
        yield folded("Settings and their origins", origins)
    yield _again(figure)


def _seed_by_outcome(settings: Sequence[str], claims: Sequence[ClaimOverSeeds]) -> Html | None:
    """Return how many seeds show a figure whose own seed was chosen by outcome."""
    if not any(re.match(r"(the )?seed\b", setting) for setting in settings):
        return None
    shown = (
        claim.each
        for claim in claims
        if (claim.first.kind, claim.first.verdict) == ("claim", "reproduced")
    )
    each = [
        all(claim.verdict == "reproduced" for claim in of_seed)
        for of_seed in zip(*shown, strict=True)
    ]
    tried = "claims on one network hold for this seed alone"
    if len(each) > 1:
        tried = f"of {len(each)} seeds, it and those after it, {sum(each)} show all its claims"
    return tag("p", tag("strong", f"The seed of this figure was chosen by outcome; {tried}."))


def numbers(figure: Reproduced) -> Html | None:
    """Return the further numbers of a figure; None without any."""
    known = figure.document.get("numbers", {})
    if not known:
        return None
    lines = items(f"{name}: {number(value)}" for name, value in known.items())
    return folded(plural(len(known), "further number"), lines, opened=figure.opened)


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
    header, rows = audit.table()
    if not any(why for *_, why in rows):
        header = header[:-1]
        rows = [row[:-1] for row in rows]
    cells = [
        [
            tag("code", claim),
            *(badge(cell) if cell in ("HOLDS", "fails") else cell for cell in others),
        ]
        for claim, *others in rows
    ]
    title = f"Audit: {plural(len(rows), 'claim')} under {plural(len(audit.nulls), 'null')}"
    remarks = filter(None, (outcome.remark for outcome in audit.nulls))
    return folded(title, table(header, cells, class_="audit"), items(remarks))


def _again(figure: Reproduced) -> Html:
    """Return the command that makes a figure, how long that takes, and the configs."""
    entry = figure.entry
    made = " makes it"
    if entry.id == figure.name:
        made += f" in {duration(entry.seconds)}"
        variants = (f"; --variant {name} draws it from other runs" for name in entry.variants)
        made += "".join(variants)
    configs = dict.fromkeys(run["config"] for run in figure.document["runs"])
    links = Html(", ".join(map(figure.config, configs)))
    again = tag("code", command(figure.document))
    return tag("p", again, f"{made}.", " Configs: " * bool(configs), links)


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
