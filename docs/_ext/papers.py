"""The pages of papers, written before every build from `docs/figures`, the index of papers and
their notes: what `dyn page` shows of figures, between sections of Markdown.

Run as a script it imports figures: `python docs/_ext/papers.py FOLDER`. The folder holds files of
`dyn reproduce` and `dyn audit`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics_cli._bundled.experiments.index import PAPERS
from markup import gallery, inline, toctree, write_changed

from dynamics_cli.mathematics import with_formulas
from dynamics_cli.pages.document import Html, folded, joined, table, tag
from dynamics_cli.pages.papers import (
    VERDICTS,
    Reproduced,
    causes,
    claims_table,
    counts,
    figure_parts,
    numbers,
    paper_parts,
)
from dynamics_cli.reproduction.claims import DEPENDS, ClaimOverSeeds, summary
from dynamics_cli.reproduction.document import AUDIT, SEEDS, beside, figures_in, read_document
from dynamics_cli.reproduction.entries import PaperEntry
from dynamics_cli.reproduction.publish import published
from dynamics_cli.reproduction.settings import chosen_by_outcome
from dynamics_cli.text import duration, plural

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
FIGURES = DOCS / "figures"
FULL = DOCS / "full"
"""Figures of the preset `full`, which take hours; they decide claims that the default leaves
undecided.
"""


def import_figures(folder: Path) -> Iterator[str]:
    """Put the figures of the index, their seeds and their audits into `docs/figures`, those of the
    preset `full` into `docs/full`; yield a line for each file left out.

    The JSON is sealed anew: it names the files that are committed, and neither the machine nor the
    time that runs took.

    Raises CorruptRunError: a file is not as `dyn` wrote it.
    """
    for source in (folder / f"{name}.json" for paper in PAPERS.values() for name in paper.figures):
        if not source.is_file():
            continue
        document = read_document(source)
        target = FULL if document.preset == "full" else FIGURES
        target.mkdir(exist_ok=True)
        files = dict(published(source, document, small=True))
        for name, data in files.items():
            (target / name).write_bytes(data)
        for extra in (beside(source, SEEDS), beside(source, AUDIT)):
            if extra.is_file() and extra.name not in files:
                yield f"{extra}: stale, its claims are not those of the figure"


# -- figures


class Committed(Reproduced):
    """A committed figure, whose section is on the page of its paper."""

    opened = False
    full: Committed | None = None
    """The figure of the preset `full`, with those of its claims that still say the same."""

    @property
    def place(self) -> str:
        """Its section on the page of its paper."""
        return f"{self.document.paper}.html#{self.name}"

    @property
    def link(self) -> Html:
        """Its name, and the notes of its paper."""
        paper = self.document.paper
        return joined([super().link, " ", tag("a", "notes", href=f"{paper}.html#{paper}-notes")])

    def config(self, name: str) -> Html:
        """Return the name of a config, which leads to its section."""
        return tag("a", super().config(name), href=f"#{config_anchor(name)}")

    def pictures(self) -> Iterator[Html]:
        """Yield its pictures above its caption, as Markdown."""
        caption = self.document.caption
        said = inline(with_formulas(caption))
        for file in self.document.files:
            if file.endswith(".png"):
                # 300 dots an inch, for a screen
                width = int.from_bytes((self.file.parent / file).read_bytes()[16:20], "big") // 2
                yield Html(
                    f":::{{figure}} ../{self.file.parent.name}/{file}\n:figclass: paper\n"
                    f":alt: {json.dumps(caption, ensure_ascii=False)}\n:width: {width}px\n"
                    f":loading: lazy\n\n{said}\n:::"
                )


def committed() -> dict[str, Committed]:
    """Return the committed figures by their ids.

    What the default preset leaves undecided the preset `full` decides, where it was run. A run of
    an hour is not made again whenever a claim is put another way: claims that said something else
    then are left out.

    Raises CorruptRunError: a file is not as it was imported.
    """
    figures = {file.stem: Committed(file) for file in figures_in(FIGURES)}
    for file in figures_in(FULL):
        figure = figures[file.stem]
        figure.full = Committed(file)
        default = {claim.first.id: claim for claim in figure.claims}
        figure.full.claims = [
            claim
            for claim in figure.full.claims
            if claim.first.id in default
            and claim.first.statement == default[claim.first.id].first.statement
        ]
        for claim in figure.full.claims:
            if default[claim.first.id].verdict == "undecided" and claim.decided:
                first = claim.first.but(note="decided by --preset full")
                default[claim.first.id] = ClaimOverSeeds((first,))
        figure.claims = [*default.values()]
    return figures


def short(key: str, entry: PaperEntry) -> str:
    """Return `Boursier et al. 2022`, for lists."""
    names = entry.authors.partition(";")[0].split(", ")
    return f"{names[0]} et al. {key[-4:]}" if len(names) > 2 else f"{', '.join(names)} {key[-4:]}"


def numbered(figure: str, title: str) -> str:
    """Return the title of a figure with its number in the paper, where it has one."""
    label = re.match(r"(fig|table)(\d+\w?)(?=-|$)", figure.partition("-")[2])
    return f"{'Figure' if label[1] == 'fig' else 'Table'} {label[2]}: {title}" if label else title


# -- pages of papers


def paper_page(key: str, entry: PaperEntry, made: Mapping[str, Committed]) -> str:
    """Return the page of a paper; `made` holds figures by their ids."""
    preamble, sections = notes_of(key)
    of_paper = {name: made[name] for name in entry.figures if name in made}
    intro = re.sub(
        rf"^\*[^*]+\*, ({re.escape(entry.venue)}|[^*().;]*arXiv:[\d.]+\d)\.(\s*\n| *)", "", preamble
    )
    links = (
        (
            tag("a", numbered(name, figure.title), href=f"#{name}"),
            of_paper[name].claims if name in of_paper else [],
        )
        for name, figure in entry.figures.items()
    )
    authors, outcome, figures = paper_parts(entry, links)
    parts = [
        f"# {inline(entry.title)}",
        authors,
        outcome,
        "[What these words mean](../explanation/verdicts.md)",
        intro,
        figures,
        *(
            figure_section(name, figure.title, of_paper.get(name))
            for name, figure in entry.figures.items()
        ),
        *(_note(key, title, body) for title, body in sections.items()),
        configs_section(key, of_paper.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _note(key: str, title: str, body: str) -> str:
    """Return a section of the notes: differences open, others folded unless they have headings
    of their own.
    """
    label = f"({key}-notes)=\n" * title.startswith("What differs")
    is_open = label or "\n### " in body
    return f"{label}## {title}\n\n{body if is_open else _folded('Show', body)}"


def _folded(title: str, body: str) -> str:
    """Return Markdown that a reader unfolds."""
    return folded(title, Html(f"\n\n{body}\n\n"))


def figure_section(name: str, title: str, figure: Committed | None) -> str:
    """Return the section of a figure; without one it says that the figure is not here."""
    parts: list[str | None] = [f"({name})=\n## {inline(numbered(name, title))}"]
    if figure is None:
        parts.append(
            f"There is no picture of this figure here: `dyn reproduce {name}` makes it, or names"
            " missing data."
        )
    else:
        parts += figure_parts(figure)
        if (full := figure.full) is not None:
            took = duration(full.document.provenance.seconds or 0)
            table_of = claims_table([(full, claim) for claim in full.claims])
            title = f"With --preset full, {took}: {summary(full.claims)}"
            inside = _paragraphs([*full.pictures(), table_of, numbers(full)])
            parts.append(_folded(title, inside))
    return _paragraphs(parts)


def _paragraphs(parts: Sequence[str | None]) -> str:
    return "\n\n".join(filter(None, parts))


# -- notes and configs


def notes_of(key: str) -> tuple[str, dict[str, str]]:
    """Return the preamble and the sections, title -> text, of a paper's notes, without the
    claims that the JSON has.
    """
    text = (ROOT / "experiments" / key / "NOTES.md").read_text(encoding="utf-8")
    preamble, *parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)  # title, text, title, ...
    sections = {
        title.partition(" (")[0]: body.strip("\n")
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return preamble.partition("\n")[2].strip(), {
        title: body for title, body in sections.items() if body
    }


def config_anchor(config: str) -> str:
    """Return the label of a config on the page of its paper."""
    return "config-" + re.sub(r"[^a-z0-9]+", "-", config.removesuffix(".yaml").lower())


def configs_section(key: str, of_paper: Iterable[Committed]) -> str:
    """Return the configs that figures of a paper are made of, folded."""
    names = dict.fromkeys(run.config for figure in of_paper for run in figure.document.runs)
    if not names:
        return ""
    parts = [
        f"({key}-configs)=\n## Configs",
        "The [reference](../reference/config.md) explains sections and keys.",
    ]
    for name in names:
        file = f"```{{literalinclude}} ../../configs/{name}\n:language: yaml\n:class: wrapped\n```"
        parts += [
            f"({config_anchor(name)})=\n### {inline(name.removesuffix('.yaml'))}",
            _folded("YAML", file),
        ]
    return "\n\n".join(parts)


# -- the front page


def front_page(made: Mapping[str, Committed]) -> str:
    """Return the part of the front page that is made from figures: counts, claims that are not
    reproduced.
    """
    claims = [
        (made[name], claim)
        for entry in PAPERS.values()
        for name in entry.figures
        if name in made
        for claim in made[name].claims
    ]
    rows = []
    tallies = []
    for key, entry in PAPERS.items():
        link = tag("a", short(key, entry), href=f"{key}.html")
        of_paper = [claim for figure, claim in claims if figure.document.paper == key]
        stated = [claim for claim in of_paper if claim.first.kind == "claim"]
        several = [claim.verdict for claim in stated if len(claim.each) > 1]
        rows.append(
            [
                joined([link, tag("span", entry.title, class_="below")]),
                *counts(of_paper),
                f"{len(several)} of {len(stated)}" if stated else "–",
                several.count(DEPENDS) if several else "–",
                sum(name in made for name in entry.figures),
            ]
        )
        verdicts = Counter(claim.verdict for claim in of_paper)
        tallies.append(
            [link, *(verdicts[verdict] or "–" for verdict in VERDICTS), causes(of_paper) or "–"]
        )
    by_verdict = {
        verdict: [pair for pair in claims if pair[1].verdict == verdict] for verdict in VERDICTS
    }
    outcome = [
        f"[{name}]({figure.document.paper}.md#{name})"
        for name, figure in made.items()
        if chosen_by_outcome(figure.origins)
    ]
    stated = [claim for _, claim in claims if claim.first.kind == "claim"]
    several = sum(len(claim.each) > 1 for claim in stated)
    depending = by_verdict[DEPENDS]
    not_decided = by_verdict["premise not met"] + by_verdict["undecided"]
    parts = [
        (
            f"**{summary([claim for _, claim in claims])}**, in"
            f" {plural(len(made), 'figure')} of {plural(len(PAPERS), 'paper')}."
            f" {plural(len(outcome), 'figure')} of them have a setting [chosen by"
            " outcome](../explanation/verdicts.md#where-settings-come-from):"
            f" {', '.join(outcome)}."
        ),
        (
            f"{several} of {plural(len(stated), 'claim')} have a verdict [over"
            f" seeds](../explanation/verdicts.md#seeds), and {len(depending)} of these depend"
            " on the seed. The others stand on one seed."
        ),
        table(
            ["paper", "claims", "theory", "on several seeds", "depend on the seed", "figures"],
            rows,
            class_="outcomes",
        ),
        "## Gallery",
        gallery(
            (f"_small/{name}.webp", short(key, entry), f"{key}.md")
            for key, entry in PAPERS.items()
            if (name := next((name for name in entry.figures if name in made), None))
        ),
        "## Verdicts by paper",
        (
            "Claims and theory together. The last column says how many of those that are not"
            " reproduced are due to the [paper, our setting or our"
            " data](../explanation/verdicts.md#what-not-reproduced-means), where that is known;"
            " the tables below say why."
        ),
        table(["paper", *VERDICTS, "due to"], tallies, class_="outcomes"),
        "## Claims that depend on the seed",
        claims_table(depending, last=["figure"]),
        "## Claims that are not reproduced",
        claims_table(by_verdict["not reproduced"], last=["figure"]),
        "## Claims that are not decided",
        claims_table(not_decided, last=["figure"]),
        toctree(f"{short(key, entry)} <{key}>" for key, entry in PAPERS.items()),
    ]
    return _paragraphs(parts)


# -- Sphinx


def write_pages(app: Sphinx) -> None:
    """Write all pages, and the part of the front page."""
    made = committed()
    pages = {key: paper_page(key, entry, made) for key, entry in PAPERS.items()}
    for name, text in {**pages, "_verdicts": front_page(made)}.items():
        write_changed(DOCS / "papers" / f"{name}.md", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages once the builder is there, and add their style sheet."""
    app.connect(
        "builder-inited", write_pages, priority=600
    )  # after the pages of kinds, to which these link
    app.add_css_file("papers.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for line in import_figures(Path(sys.argv[1])):
        print(line)
