"""The site of a paper: a folder of pages, pictures, claims and configs for any web server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.pages.crate import CRATE, WORKFLOW, crate, script
from dynamics_cli.pages.document import Html, Page, items, table, tag
from dynamics_cli.pages.figure import Reproduced, add_figure, add_paper, claims_table
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.claims import DEPENDS, summary
from dynamics_cli.reproduction.document import config_files
from dynamics_cli.reproduction.entries import PaperEntry
from dynamics_cli.reproduction.publish import published
from dynamics_cli.reproduction.settings import named
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store import files, manifest

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
COLUMNS = ("figure", "id", "kind", "statement", "source", "expected", "measured", "verdict")
"""Columns of `claims.csv`, before those of seeds and nulls."""
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    }
)
Made = Mapping[str, Sequence[str]]
"""What made figures -> its values, all where they differ."""


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
    index.body += [
        tag("section", *_verdicts(figures)),
        tag("section", tag("h2", "Cite"), tag("p", cited), tag("pre", bibtex)),
        tag("section", *_configs(figures)),
        tag(
            "section",
            tag("h2", "Environment", id="environment"),
            table(
                [],
                [[key, ", ".join(values)] for key, values in made.items()],
                "Where, when and with what the figures were made",
            ),
        ),
        tag("section", tag("h2", "Files"), items(_link(name) for name in further)),
    ]
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
        for run in figure.document["runs"]:
            yield _place(run["config"]), _config(figure.file, run["config"], own)


def _link(place: str) -> Html:
    return tag("a", place, href=place)


def _place(config: str) -> str:
    """Return the place of a config in the site."""
    return f"configs/{named(config)}"


def _config(file: Path, config: str, own: Mapping[str, Path]) -> bytes:
    """Return the contents of a config that the JSON in `file` names.

    Raises:
        CorruptRunError: it is no config of the figure.
        RunError: it is gone.
    """
    if (path := own.get(config)) is None:
        raise CorruptRunError(file, f"{config!r} is no config of this figure")
    try:
        return files.read(path)
    except OSError as error:
        raise RunError(f"the config {path} cannot be read: {error.strerror}") from error


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

    yield claims_table(
        every,
        "All claims",
        *("claim", "verdict", "expected", "measured", "figure"),
        *("fails under nulls", "trained longer"),
    )
    yield tag(
        "p",
        "Seeds: in how many of them the claim comes out, with the 95 % interval of the share."
        " Nulls: the networks are trained again untrained, stopped early, with permuted labels, and"
        " so on; a claim that holds under all of them says nothing about training.",
    )


def _configs(figures: Sequence[Reproduced]) -> Iterator[Html]:
    """Yield the configs with the figures that use them, and the seeds of their networks."""
    used: dict[str, dict[str, None]] = {}
    seeds: dict[str, set[tuple[int, int]]] = {}
    for figure in figures:
        for run in figure.document["runs"]:
            used.setdefault(run["config"], {})[figure.name] = None
            of_run = (run["seed"], run["seed"] + run.get("replicas", 1) - 1)
            seeds.setdefault(run["config"], set()).add(of_run)
    rows = [
        [_link(_place(config)), ", ".join(names), ranges(sorted(seeds[config]))]
        for config, names in used.items()
    ]
    yield tag("h2", "Configs and seeds", id="configs")
    yield table(["config", "figures", "seeds"], rows, "Configs of the networks")


def ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Return the numbers of ranges, in order, as text: `0, 3 to 9`."""
    parts: list[tuple[int, int]] = []
    for first, last in ranges:
        if parts and first <= parts[-1][1] + 1:
            parts[-1] = parts[-1][0], max(parts[-1][1], last)
        else:
            parts.append((first, last))
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in parts)


def _made(figures: Sequence[Reproduced]) -> Made:
    """Return versions, commit, threads, platform and dates of figures; all where they differ."""
    made: dict[str, dict[str, None]] = {}
    for figure in figures:
        provenance = figure.document["provenance"]
        entries = {f"version of {name}": text for name, text in provenance["versions"].items()}
        for key in ("commit", "platform", "threads"):
            entries[key] = provenance.get(key)
        entries["date"] = str(provenance["started"])[:10]
        for key, value in entries.items():
            if value is not None:
                made.setdefault(key, {})[str(value)] = None
    return {key: list(values) for key, values in made.items()}


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
    header = [*COLUMNS, "seeds held", "seeds", "fails under nulls", "trained longer", "note"]
    return files.csv_of(header, rows)


# -- citation


def _version(made: Made) -> str:
    """Return the versions and commits in words, and the date of the last figure."""
    words = f"dyn {', '.join(made['version of dyn'])}"
    if commits := made.get("commit"):
        words += f", commit {', '.join(commits)}"
    return f"{words}, {max(made['date'])}"


def _citation(entry: PaperEntry, figures: Sequence[Reproduced], made: Made) -> str:
    outcome = summary([claim for figure in figures for claim in figure.claims])
    return (
        f"Reproduction of “{entry.title}” ({entry.authors}; {entry.venue}). Made with"
        f" {_version(made)}. {outcome}."
    )


def _bibtex(key: str, entry: PaperEntry, made: Made) -> str:
    note = f"Of the paper by {entry.authors}, {entry.venue}; made with {_version(made)}"
    year = max(made["date"])[:4]
    fields = {"title": f"Reproduction of: {entry.title}", "note": note, "year": year}
    lines = [f"  {name} = {{{text.translate(_LATEX)}}}," for name, text in fields.items()]
    return "\n".join([f"@misc{{{key}-reproduction,", *lines, "}"]) + "\n"
