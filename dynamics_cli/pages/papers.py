"""Pages of figures and papers, and the site of a paper: a folder for any web server.

The handbook has the same parts. Begin with `Reproduced` and `figure_parts`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Self

from dynamics_cli.config.dump import flat
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.mathematics import in_html, with_formulas
from dynamics_cli.pages.crate import CRATE, WORKFLOW, crate, script
from dynamics_cli.pages.document import Html, Page, folded, image, items, joined, shown, table, tag
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.claims import DEPENDS, KINDS, ClaimOverSeeds, explained, summary
from dynamics_cli.reproduction.document import (
    AUDIT,
    OTHER_RUNS,
    FigureDocument,
    FigureRun,
    beside,
    config_files,
    figures_folder,
    file_of,
    read_document,
    run_path,
    seeds_of,
)
from dynamics_cli.reproduction.entries import CAUSES, PaperEntry
from dynamics_cli.reproduction.publish import audit_of, published
from dynamics_cli.reproduction.settings import chosen_by_outcome, named, origins_of
from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files, manifest
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.text import duration, number, plural

PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
"""Endings of pictures that a page can hold, the better one first."""
ROWS = 200
"""Rows of a table that a page shows."""
STYLES = {"reproduced": "reproduced", "fails": "reproduced", "not reproduced": "not-reproduced"}
"""Verdict, or what a claim does under a null -> class of its badge, `partly` by default."""

FIGURES = "figures"
"""Folder of the files that `dyn reproduce` and `dyn audit` wrote."""
VERDICTS = {
    "reproduced": "The measured number lies in the range that the paper or its theory gives.",
    "not reproduced": "It lies outside of that range.",
    DEPENDS: "Over seeds, neither is more frequent beyond doubt.",
    "premise not met": "The paper presupposes what the runs do not meet; it counts neither way.",
    "undecided": "The runs at hand cannot decide it; it counts neither way.",
}
"""Verdict -> its meaning."""
CSV_COLUMNS = ("figure", "id", "kind", "statement", "source", "expected", "measured", "verdict")
"""Columns of `claims.csv`, before those of seeds and nulls."""
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    }
)
Made = Mapping[str, Sequence[str]]
"""What made figures -> its values, all where they differ."""


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
        claims = seeds_of(file, self.document) or self.document.over_seeds
        self.entry = catalogue.entry_of(self.document.figure)
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
        return self.document.title

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
    def origins(self) -> list[list[str]]:
        """Rows of config, origin and settings, as the comments of the configs say."""
        return origins_of(self.name, config_files(self.document))

    def pictures(self) -> Iterator[Html]:
        """Yield its caption, its pictures and its tables.

        Raises CorruptRunError: a file is not the one that was written with the JSON.
        """
        document = self.document
        yield tag("p", prose(with_formulas(document.caption)))
        for name in document.files:
            path = self.file.parent / name
            better = path.suffix == ".svg" and path.with_suffix(".png").name in document.files
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
                yield image(data, f"{self.title}. {document.caption}", PICTURES[path.suffix])
        if not any(Path(name).suffix in PICTURES for name in document.files):
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


def _cells(figure: Reproduced, claim: ClaimOverSeeds) -> dict[str, object]:
    """Return the cells of a claim by their columns."""
    first = claim.first
    return {
        "claim": joined([prose(first.statement), tag("code", first.id, class_="below")]),
        # beside the statement, so that a phone shows both
        "verdict": _judged(claim),
        "expected": first.expected,
        "measured": claim.shown,
        "source": first.source,
        "figure": figure.link,
        "fails under nulls": figure.failing(claim),
        "trained longer": figure.after(claim),
    }


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


def claims_table(
    claims: Claims, caption: str = "", last: Sequence[str] = ("source",)
) -> Html | None:
    """Return a table of claims of figures without its empty columns; None without any claim.

    `last` names the columns behind the measured number.
    """
    cells = [_cells(*pair) for pair in claims]
    columns = ("claim", "verdict", "expected", "measured", *last)
    kept = [name for name in columns if any(row[name] for row in cells)]
    rows = [[row[name] for name in kept] for row in cells]
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
        claims_table(failed, "What does not come out as printed", ("figure", "source")),
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
    held = [(figure, claim) for claim in figure.claims if claim.verdict == "reproduced"]
    others = [(figure, claim) for claim in figure.claims if claim.verdict != "reproduced"]
    yield claims_table(others)
    if held:
        title = plural(len(held), "reproduced claim")
        yield folded(title, claims_table(held), opened=figure.opened)
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
    known = figure.document.numbers
    if not known:
        return None
    lines = items(f"{name}: {number(value)}" for name, value in known.items())
    return folded(plural(len(known), "further number"), lines, opened=figure.opened)


def _damage(page: Page, figure: Reproduced) -> Html | None:
    """Return what is damaged in the runs of a figure that are still there."""
    told = []
    runs = figure.document.runs
    for directory in dict.fromkeys(run_path(figure.file, run.path) for run in runs):
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
    configs = dict.fromkeys(run.config for run in figure.document.runs)
    links = Html(", ".join(map(figure.config, configs)))
    again = tag("code", figure.document.command)
    return tag("p", again, f"{made}.", " Configs: " * bool(configs), links)


def _runs(document: FigureDocument) -> Iterator[Html]:
    rows = [
        [
            run.role,
            named(run.config),
            " ".join(run.overrides),
            run.seed,
            run.replicas,
            Path(run.path).name,
            (run.hash or "")[:10],
        ]
        for run in document.runs
    ]
    header = ["role", "config", "changes", "seed", "networks", "run", "hash"]
    yield table(header, rows[:ROWS], "Runs") if rows else tag("p", "No network is trained.")
    if rows:
        yield tag("p", "A run has its own page: ", tag("code", f"dyn page {rows[0][5]}"))
    made = document.as_dict()["provenance"]
    kept = flat({key: value for key, value in made.items() if key != "obtained"})
    yield table([], kept.items(), "Where, when and with what it was made")


# -- the site of a paper


class _Figure(Reproduced):
    """A figure with a page of its own, beside its files and configs."""

    @property
    def place(self) -> str:
        """Its page."""
        return f"{self.name}.html"

    def config(self, name: str) -> Html:
        """Return the place of a config, which leads there."""
        return _link(_place(name))


def site(paper: str, out: str | Path) -> list[Path]:
    """Write the pages of a paper into a folder that any web server can offer.

    The folder has a page of the paper with all claims and their verdicts, a page for each figure
    that was reproduced, their pictures, claims over seeds, nulls, configs, the environment, how to
    cite it, and all of it for machines, as an RO-Crate. Nothing is loaded from elsewhere.

    Args:
        paper: its key, such as `boursier2022`.
        out: the folder; files in it that `dyn` did not write stay, and are never overwritten.

    Returns:
        The paths of the files, the first page first.

    Raises:
        UsageError: there is no such paper, or a file of this name is somebody else's.
        RunError: nothing of the paper was reproduced, or a file is damaged.
    """
    papers = catalogue.papers()
    if paper not in papers:
        raise UsageError(
            f"no paper {paper!r}{catalogue.meant(paper, papers)}; `dyn list papers` lists them"
        )
    figures = _Figure.of_paper(paper)
    if not figures:
        raise RunError(
            f"no figure of {paper} has been reproduced yet: `dyn reproduce {paper}` does it"
        )
    made = _made(figures)
    cited = _citation(papers[paper], figures, made)
    contents = dict(_contents(paper, papers[paper], figures, made, cited))
    documents = {figure.name: figure.document for figure in figures}
    contents[WORKFLOW] = script(documents)
    contents[CRATE] = crate(papers[paper], cited, made, documents, contents)
    return manifest.write_listed(Path(out), contents)


# -- contents


def _contents(
    key: str, entry: PaperEntry, figures: Sequence[Reproduced], made: Made, cited: str
) -> Iterator[tuple[str, bytes]]:
    """Yield the name in the site and the contents of each file."""
    notes = _notes(key)
    bibtex = _bibtex(key, entry, made)
    further = ["claims.csv", "citation.bib", WORKFLOW, CRATE, *(["NOTES.md"] if notes else [])]

    index = Page("index", f"Reproduction of {key}")
    add_paper(index, key, figures)
    parts = [
        *_verdicts(figures),
        tag("h2", "Cite"),
        tag("p", cited),
        tag("pre", bibtex),
        *_configs(figures),
        *_environment(made),
        tag("h2", "Files"),
        items(map(_link, further)),
    ]
    index.body.append(tag("section", *parts))
    yield "index.html", index.encode()

    for figure in figures:
        page = Page(figure.name, figure.name)
        back = tag("a", f"All figures of {key}", href="index.html")
        page.body.append(tag("nav", back, aria_label="paper"))
        add_figure(page, figure, level="h2")
        of_figure = {
            f"{FIGURES}/{name}": data
            for name, data in published(figure.file, figure.document, _place)
        }
        links = items(map(_link, of_figure))
        page.body.append(tag("section", tag("h2", "Files of this figure"), links))
        yield f"{figure.name}.html", page.encode()
        yield from of_figure.items()

    yield "claims.csv", _claims_csv(figures)
    yield "citation.bib", bibtex.encode("utf-8", "backslashreplace")
    if notes is not None:
        yield "NOTES.md", notes.read_bytes()
    for figure in figures:
        own = config_files(figure.document)
        for run in figure.document.runs:
            yield _place(run.config), _config(figure.file, run.config, own)


def _link(place: str) -> Html:
    return tag("a", place, href=place)


def _place(config: str) -> str:
    """Return the place of a config in the site."""
    return f"configs/{named(config)}"


def _config(file: Path, config: str, own: Mapping[str, Path]) -> bytes:
    """Return the contents of a config that the JSON in `file` names.

    Raises CorruptRunError: it is no config of the figure, or gone.
    """
    if (path := own.get(config)) is None:
        raise CorruptRunError(file, f"{config!r} is no config of this figure")
    with unreadable_as_corrupt(path):
        return files.read(path)


def _notes(key: str) -> Traversable | None:
    """Return the notes of a paper, `NOTES.md` beside its figures; None without any."""
    for figure in catalogue.figures(key):
        package = figure.module.rpartition(".")[0]
        if package and (notes := resources.files(package) / "NOTES.md").is_file():
            return notes
    return None


def _verdicts(figures: Sequence[Reproduced]) -> Iterator[Html | None]:
    every = [(figure, claim) for figure in figures for claim in figure.claims]
    counts = [
        [verdict, str(sum(claim.verdict == verdict for _, claim in every)), meaning]
        for verdict, meaning in VERDICTS.items()
    ]
    yield tag("h2", "Verdicts", id="verdicts")
    yield table(["verdict", "claims", "meaning"], counts, "Verdicts and what they mean")

    yield claims_table(every, "All claims", ("figure", "fails under nulls", "trained longer"))
    yield tag(
        "p",
        "Seeds: in how many of them the claim comes out, with the 95 % interval of the share."
        " Nulls: the networks are trained again untrained, stopped early, with permuted labels, and"
        " so on; a claim that holds under all of them says nothing about training.",
    )


def _configs(figures: Sequence[Reproduced]) -> Iterator[Html]:
    """Yield the configs with the figures that use them, and the seeds of their networks."""
    used: dict[str, list[tuple[str, FigureRun]]] = {}
    for figure in figures:
        for run in figure.document.runs:
            used.setdefault(run.config, []).append((figure.name, run))
    rows = [
        [_link(_place(config)), ", ".join(dict(runs)), seeds_in(run for _, run in runs)]
        for config, runs in used.items()
    ]
    yield tag("h2", "Configs and seeds", id="configs")
    yield table(["config", "figures", "seeds"], rows, "Configs of the networks")


def seeds_in(runs: Iterable[FigureRun]) -> str:
    """Return the seeds of the networks of runs: `0, 3 to 9`."""
    parts: list[tuple[int, int]] = []
    for first, count in sorted((run.seed, run.replicas) for run in runs):
        last = first + count - 1
        if parts and first <= parts[-1][1] + 1:
            parts[-1] = parts[-1][0], max(parts[-1][1], last)
        else:
            parts.append((first, last))
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in parts)


def _made(figures: Sequence[Reproduced]) -> Made:
    """Return versions, commit, threads, platform and dates of figures; all where they differ."""
    made: dict[str, dict[str, None]] = {}
    for figure in figures:
        provenance = figure.document.provenance
        entries: dict[str, object] = {
            **{f"version of {name}": text for name, text in provenance.versions.items()},
            **provenance.model_dump(include={"commit", "platform", "threads"}),
            "date": provenance.started[:10],
        }
        for key, value in entries.items():
            if value is not None:
                made.setdefault(key, {})[str(value)] = None
    return {key: list(values) for key, values in made.items()}


def _environment(made: Made) -> Iterator[Html]:
    rows = [[key, ", ".join(values)] for key, values in made.items()]
    yield tag("h2", "Environment", id="environment")
    yield table([], rows, "Where, when and with what the figures were made")


def _claims_csv(figures: Sequence[Reproduced]) -> bytes:
    rows = []
    for figure in figures:
        for claim in figure.claims:
            first = claim.first
            kept = claim.measured
            measured = "" if kept is None else repr(kept)
            of_seeds = [str(claim.held), str(len(claim.decided))] if claim.decided else ["", ""]
            rows.append(
                [
                    *(figure.name, first.id, first.kind, first.statement, first.source),
                    *(first.expected, measured, claim.verdict, *of_seeds),
                    *(figure.failing(claim), figure.after(claim), first.note),
                ]
            )
    header = [*CSV_COLUMNS, "seeds held", "seeds", "fails under nulls", "trained longer", "note"]
    return files.csv_of(header, rows)


# -- citation


def _version(made: Made) -> tuple[str, str]:
    """Return the versions and commits in words, and the date of the last figure."""
    words = f"dyn {', '.join(made.get('version of dyn', ['of an unknown version']))}"
    if commits := made.get("commit"):
        words += f", commit {', '.join(commits)}"
    return words, max(made["date"])


def _citation(entry: PaperEntry, figures: Sequence[Reproduced], made: Made) -> str:
    words, date = _version(made)
    outcome = summary([claim for figure in figures for claim in figure.claims])
    return (
        f"Reproduction of “{entry.title}” ({entry.authors}; {entry.venue}). Made with {words},"
        f" {date}. {outcome}."
    )


def _bibtex(key: str, entry: PaperEntry, made: Made) -> str:
    words, date = _version(made)
    note = f"Of the paper by {entry.authors}, {entry.venue}; made with {words}, {date}"
    fields = {"title": f"Reproduction of: {entry.title}", "note": note, "year": date[:4]}
    lines = [f"  {name} = {{{text.translate(_LATEX)}}}," for name, text in fields.items()]
    return "\n".join([f"@misc{{{key}-reproduction,", *lines, "}"]) + "\n"
