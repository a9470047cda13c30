"""The pages of papers, written before every build from `docs/figures`, the index of papers and
their notes.

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
from typing import TYPE_CHECKING, Any

from dynamics_cli._bundled.experiments.index import PAPERS
from markup import folded, gallery, inline, table, toctree, write_changed

from dynamics_cli.mathematics import with_formulas
from dynamics_cli.reproduction.audits import Audit, read_audit
from dynamics_cli.reproduction.claims import (
    DEPENDS,
    KINDS,
    ClaimOverSeeds,
    explained,
    summary,
)
from dynamics_cli.reproduction.document import (
    AUDIT,
    SEEDS,
    audit_belongs,
    beside,
    figures_in,
    read_document,
    seeds_of,
)
from dynamics_cli.reproduction.entries import CAUSES, FigureEntry, PaperEntry
from dynamics_cli.reproduction.publish import audit_without_paths, without_machine
from dynamics_cli.reproduction.settings import chosen_by_outcome, origins_of
from dynamics_cli.runs.store.sealed import write_sealed
from dynamics_cli.text import duration, number

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
FIGURES = DOCS / "figures"
FULL = DOCS / "full"
"""Figures of the preset `full`, which take hours; they decide claims that the default leaves
undecided.
"""
KEPT = (".png", ".csv")
"""Endings of the files of a figure that are committed; its PDF would double the size of the
repository.
"""
VERDICTS = ("reproduced", "not reproduced", DEPENDS, "premise not met", "undecided")
"""In the order of the tally."""


# -- import of figures


def import_figures(folder: Path) -> Iterator[str]:
    """Put the figures of the index, their seeds and their audits into `docs/figures`, those of the
    preset `full` into `docs/full`; yield a line for each left out.

    The JSON is sealed anew: it names the files that are committed, and neither the machine nor the
    time that runs took.

    Raises CorruptRunError: a file is not as `dyn` wrote it.
    """
    FIGURES.mkdir(exist_ok=True)
    for name in (name for paper in PAPERS.values() for name in paper.figures):
        source = folder / f"{name}.json"
        figure = FIGURES / f"{name}.json"
        if source.is_file():
            document = read_document(source)
            if document["preset"] == "full":
                _import(source, document, FULL)
                continue
            _import(source, document, FIGURES)
        if not figure.is_file():
            continue
        document = read_document(figure)
        if seeds_of(source, document):
            over_seeds = {**read_document(beside(source, SEEDS)), "runs": []}
            write_sealed(beside(figure, SEEDS), without_machine(over_seeds))
        elif beside(source, SEEDS).is_file():
            yield f"{beside(source, SEEDS)}: stale, its claims are not those of the figure"
        audit = read_audit(beside(source, AUDIT))
        if audit is not None and belongs(audit, document):
            write_sealed(beside(figure, AUDIT), audit_without_paths(audit).as_dict())
        elif audit is not None:
            yield f"{beside(source, AUDIT)}: stale, its claims are not those of the figure"


def _import(source: Path, document: Mapping[str, Any], folder: Path) -> None:
    """Write a figure's JSON, and those of its files that are committed, into a folder."""
    folder.mkdir(exist_ok=True)
    files = [file for file in document["files"] if Path(file).suffix in KEPT]
    for file in files:
        (folder / file).write_bytes((source.parent / file).read_bytes())
    digests = {file: document["sha256"][file] for file in files}
    kept = without_machine({**document, "files": files, "sha256": digests})
    write_sealed(folder / source.name, kept)


def belongs(audit: Audit, document: Mapping[str, Any]) -> bool:
    """Return whether an audit is of a figure, and has its claims with the same verdicts."""
    verdicts = {
        claim["id"]: claim["verdict"] for claim in document["claims"] if claim["kind"] == "claim"
    }
    same = verdicts == {claim.id: claim.verdict for claim in audit.claims}
    return same and audit_belongs(audit, document)


# -- Markdown


def badge(verdict: str, said: str = "") -> str:
    """Return a word on the colour of a verdict."""
    return f"[{said or verdict}]{{.verdict .{verdict.replace(' ', '-')}}}"


def plural(count: int, noun: str) -> str:
    """Return `1 claim`, `2 claims`."""
    return f"{count} {noun}{'s' * (count != 1)}"


# -- facts


def short(key: str, entry: PaperEntry) -> str:
    """Return `Boursier et al. 2022`, for lists."""
    names = entry.authors.partition(";")[0].split(", ")
    return f"{names[0]} et al. {key[-4:]}" if len(names) > 2 else f"{', '.join(names)} {key[-4:]}"


def numbered(figure: str, title: str) -> str:
    """Return the title of a figure with its number in the paper, where it has one."""
    label = re.match(r"(fig|table)(\d+\w?)(?=-|$)", figure.partition("-")[2])
    return f"{'Figure' if label[1] == 'fig' else 'Table'} {label[2]}: {title}" if label else title


def documents() -> dict[str, dict[str, Any]]:
    """Return the committed JSON of all figures by their ids.

    Raises CorruptRunError: a file is not as it was imported.
    """
    return {file.stem: read_document(file) for file in figures_in(FIGURES)}


def claims_of(document: Mapping[str, Any]) -> list[ClaimOverSeeds]:
    """Return the claims of a figure, over seeds where these are committed, theory after those of
    networks. What the default preset leaves undecided the preset `full` decides, where it was run.
    """
    over_seeds = seeds_of(FIGURES / f"{document['figure']}.json", document)
    claims = over_seeds or [ClaimOverSeeds.from_dict(claim) for claim in document["claims"]]
    full = {claim.first.id: claim for claim in full_claims(document["figure"])}
    for k, claim in enumerate(claims):
        decided = full.get(claim.first.id)
        if claim.verdict == "undecided" and decided is not None and decided.decided:
            first = decided.first.but(note="decided by --preset full")
            claims[k] = ClaimOverSeeds((first,))
    claims = explained(claims, PAPERS[document["paper"]].figures[document["figure"]].missed)
    return [claim for kind in KINDS for claim in claims if claim.first.kind == kind]


def full_claims(name: str) -> list[ClaimOverSeeds]:
    """Return the claims of a figure with the preset `full`; none where that was not committed.

    A run of an hour is not made again whenever a claim is put another way: claims that said
    something else then are left out.

    Raises CorruptRunError: the file is not as it was imported.
    """
    file = FULL / f"{name}.json"
    if not file.is_file():
        return []
    today = {
        claim["id"]: claim["statement"] for claim in read_document(FIGURES / file.name)["claims"]
    }
    return [
        ClaimOverSeeds.from_dict(claim)
        for claim in read_document(file)["claims"]
        if claim["statement"] == today.get(claim["id"])
    ]


def counts(claims: Sequence[ClaimOverSeeds]) -> list[str]:
    """Return the cells `25 of 26`, `1 of 1` of claims and theory; claims that are not decided do
    not count.
    """
    cells = []
    for kind in KINDS:
        of_kind = [claim for claim in claims if claim.first.kind == kind]
        held = sum(claim.verdict == "reproduced" for claim in of_kind)
        missed = sum(claim.missed for claim in of_kind)
        if held + missed == 0:
            cells.append("–")
            continue
        said = "partly" if held else "not reproduced"
        if not missed:
            said = "reproduced"
        cells.append(badge(said, f"{held} of {held + missed}"))
    return cells


def of_seeds(claims: Sequence[ClaimOverSeeds]) -> list[str]:
    """Return the cells `12 of 26`, `3`: claims with a verdict over seeds, and those of them that
    depend on the seed.
    """
    stated = [claim for claim in claims if claim.first.kind == "claim"]
    several = [claim for claim in stated if len(claim.each) > 1]
    depend = sum(claim.verdict == DEPENDS for claim in several)
    return [f"{len(several)} of {len(stated)}" if stated else "–", str(depend) if several else "–"]


def judged(claim: ClaimOverSeeds) -> str:
    """Return the cell of a verdict: of a claim with the seeds that it stands on."""
    shown = badge(
        claim.verdict if claim.verdict.endswith("reproduced") else "partly", claim.verdict
    )
    if claim.first.kind == "theory":
        shown += " (theory)"
    elif claim.decided:
        shown += f" [{claim.count or 'on one seed'}]{{.below}}"
    return " ".join([shown, *below(claim.why)])


def below(texts: Iterable[str]) -> list[str]:
    """Return texts as muted lines of a cell."""
    return [f"[{inline(text)}]{{.below}}" for text in texts]


def tally(claims: Sequence[ClaimOverSeeds]) -> list[str]:
    """Return the cells `26`, `–`, ...: claims and theory by verdict, and why those are missed that
    say so.
    """
    verdicts = Counter(claim.verdict for claim in claims)
    causes = Counter(
        claim.first.because.cause
        for claim in claims
        if claim.first.because is not None and claim.verdict != "reproduced"
    )
    why = ", ".join(f"{cause} {causes[cause]}" for cause in CAUSES if causes[cause])
    return [*(str(verdicts[verdict] or "–") for verdict in VERDICTS), why or "–"]


# -- pages of papers


def paper_page(key: str, entry: PaperEntry, made: Mapping[str, dict[str, Any]]) -> str:
    """Return the page of a paper; `made` holds the JSON of figures by their ids."""
    preamble, sections = notes_of(key)
    claims = {name: claims_of(made[name]) for name in entry.figures if name in made}
    every = [claim for of in claims.values() for claim in of]
    intro = re.sub(
        rf"^\*[^*]+\*, ({re.escape(entry.venue)}|[^*().;]*arXiv:[\d.]+\d)\.(\s*\n| *)", "", preamble
    )
    rows = [
        [f"[{inline(numbered(name, figure.title))}](#{name})", *counts(claims.get(name, []))]
        for name, figure in entry.figures.items()
    ]
    parts = [
        f"# {inline(entry.title)}",
        f"{inline(entry.authors)}. {linked(entry.venue)}.",
        f"**{summary(every)}.**{_due(every)} [What these words mean](../explanation/verdicts.md)",
        intro,
        table(["figure", "claims", "theory"], rows, "outcomes"),
        *(
            figure_section(name, figure, made.get(name), claims.get(name, []))
            for name, figure in entry.figures.items()
        ),
        *(_note(key, title, body) for title, body in sections.items()),
        configs_section(key, [made[name] for name in claims]),
    ]
    return "\n\n".join(parts) + "\n"


def _due(claims: Sequence[ClaimOverSeeds]) -> str:
    """Return a sentence on why claims are missed, where that is known."""
    *_, why = tally(claims)
    return "" if why == "–" else f" Those that are not are due to: {why}."


def _note(key: str, title: str, body: str) -> str:
    """Return a section of the notes: differences open, others folded unless they have headings
    of their own.
    """
    label = f"({key}-notes)=\n" * title.startswith("What differs")
    is_open = label or "\n### " in body
    return f"{label}## {title}\n\n{body if is_open else folded('Show', body)}"


def linked(venue: str) -> str:
    """Return where a paper appeared, with links to arXiv."""
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", venue)


def figure_section(
    name: str,
    entry: FigureEntry,
    document: Mapping[str, Any] | None,
    claims: Sequence[ClaimOverSeeds],
) -> str:
    """Return the section of a figure; without a document it says that the figure is not here."""
    title = f"({name})=\n## {inline(numbered(name, entry.title))}"
    if document is None:
        missing = (
            f"There is no picture of this figure here: `dyn reproduce {name}` makes it, or names"
            " missing data."
        )
        return f"{title}\n\n{missing}"
    origins = origins_of(name, [run["config"] for run in document["runs"]])
    parts = [
        title,
        _picked(chosen_by_outcome(origins), claims),
        *(
            _picture(file, document["caption"])
            for file in document["files"]
            if file.endswith(".png")
        ),
        *_verdicts(claims),
        "\n\n".join(
            f"{badge('partly', 'chosen by outcome')} {inline(text)}"
            for text in chosen_by_outcome(origins)
        ),
        _numbers(document.get("numbers", {})),
        _full(name),
        _audit(name, document),
        _origins(document["paper"], origins),
        _again(name, entry, document),
    ]
    return "\n\n".join(filter(None, parts))


def _picked(settings: Sequence[str], claims: Sequence[ClaimOverSeeds]) -> str:
    """Return how many seeds show a figure whose own seed was chosen by outcome; nothing for
    other figures.
    """
    if not any(re.match(r"(the )?seed\b", setting) for setting in settings):
        return ""
    shown = (
        claim.each
        for claim in claims
        if (claim.first.kind, claim.first.verdict) == ("claim", "reproduced")
    )
    each = [
        all(claim.verdict == "reproduced" for claim in of_seed)
        for of_seed in zip(*shown, strict=True)
    ]
    again = (
        f"of {len(each)} seeds, it and those after it, {sum(each)} show all claims that it shows"
    )
    tried = again if len(each) > 1 else "claims on one network hold for this seed alone"
    return f"**The seed of this figure was chosen by outcome; {tried}.**"


def _verdicts(claims: Sequence[ClaimOverSeeds]) -> Iterator[str]:
    """Yield how many claims came out, a table of the others, and the table of reproduced claims,
    folded.
    """
    if not claims:
        return
    held = [claim for claim in claims if claim.verdict == "reproduced"]
    others = [claim for claim in claims if claim.verdict != "reproduced"]
    yield f"**{summary(claims)}.**"
    if others:
        yield _claims_table(others)
    if held:
        yield folded(f"{plural(len(held), 'reproduced claim')}", _claims_table(held))


def _claims_table(claims: Sequence[ClaimOverSeeds]) -> str:
    several = any(len(claim.each) > 1 for claim in claims)
    header = ["claim", "source", "expected", "median" if several else "measured", "verdict"]
    rows = [
        [
            f"{inline(claim.first.statement)} [`{claim.first.id}`]{{.below}}",
            inline(claim.first.source),
            inline(claim.first.expected),
            claim.shown,
            judged(claim),
        ]
        for claim in claims
    ]
    return table(header, rows, "claims")


def _numbers(numbers: Mapping[str, float]) -> str:
    lines = "\n".join(f"- {inline(name)}: {number(value)}" for name, value in numbers.items())
    return folded(plural(len(numbers), "further number"), lines) if numbers else ""


def _full(name: str) -> str:
    """Return picture and claims of the preset `full`, folded; nothing where it was not run."""
    claims = full_claims(name)
    if not claims:
        return ""
    document = read_document(FULL / f"{name}.json")
    took = duration(document["provenance"]["seconds"])
    title = f"With --preset full, {took}: {summary(claims)}"
    pictures = [
        _picture(file, document["caption"], FULL)
        for file in document["files"]
        if file.endswith(".png")
    ]
    numbers = _numbers(document.get("numbers", {}))
    return folded(title, *pictures, _claims_table(claims), numbers)


def _picture(file: str, caption: str, folder: Path = FIGURES) -> str:
    width = (
        int.from_bytes((folder / file).read_bytes()[16:20], "big") // 2
    )  # 300 dots an inch, for a screen
    options = {"figclass": "paper", "alt": caption, "width": f"{width}px", "loading": "lazy"}
    lines = [f":{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    said = inline(with_formulas(caption))
    return "\n".join([f":::{{figure}} ../{folder.name}/{file}", *lines, "", said, ":::"])


def _audit(name: str, document: Mapping[str, Any]) -> str:
    """Return which claims hold under nulls, as `dyn audit` prints it, where it was committed for
    this figure.
    """
    audit = read_audit(FIGURES / f"{name}{AUDIT}.json")
    if audit is None or not belongs(audit, document) or not audit.nulls:
        return ""
    words = {"HOLDS": badge("partly", "HOLDS"), "fails": badge("reproduced", "fails")}
    header, rows = audit.table()
    if not any(why for *_, why in rows):
        header = header[:-1]
        rows = [row[:-1] for row in rows]
    cells = [
        [f"`{first}`", *(words.get(cell, inline(cell)) for cell in others)]
        for first, *others in rows
    ]
    said = [f"- {inline(outcome.remark)}" for outcome in audit.nulls if outcome.remark]
    title = f"Audit: {plural(len(rows), 'claim')} under {plural(len(audit.nulls), 'null')}"
    return folded(title, table(header, cells, "audit"), "\n".join(said))


def _origins(key: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = [
        [f"[`{config}`](#{config_anchor(f'{key}/{config}')})", origin, inline(text)]
        for config, origin, text in rows
    ]
    return folded(
        "Settings and their origins", table(["config", "origin", "settings"], cells, "origins")
    )


def _again(name: str, entry: FigureEntry, document: Mapping[str, Any]) -> str:
    names = dict.fromkeys(run["config"].removesuffix(".yaml") for run in document["runs"])
    made = f"`dyn reproduce {name}` makes it in {duration(entry.seconds)}"
    said = [
        made,
        *(f"`--variant {variant}` draws it from other runs" for variant in entry.variants),
    ]
    configs = ", ".join(f"[`{config}`](#{config_anchor(config)})" for config in names)
    return "; ".join(said) + "." + f" Configs: {configs}." * bool(configs)


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


def configs_section(key: str, of_paper: Sequence[Mapping[str, Any]]) -> str:
    """Return the configs that figures of a paper are made of, folded."""
    names = list(dict.fromkeys(run["config"] for document in of_paper for run in document["runs"]))
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
            folded("YAML", file),
        ]
    return "\n\n".join(parts)


# -- the front page


def front_page(made: Mapping[str, dict[str, Any]]) -> str:
    """Return the part of the front page that is made from figures: counts, claims that are not
    reproduced.
    """
    claims = {name: claims_of(document) for name, document in made.items()}
    of_paper = {
        key: [claim for name in entry.figures for claim in claims.get(name, [])]
        for key, entry in PAPERS.items()
    }
    rows = [
        [
            f"[{short(key, entry)}]({key}.md) [{inline(entry.title)}]{{.below}}",
            *counts(of_paper[key]),
            *of_seeds(of_paper[key]),
            str(sum(name in made for name in entry.figures)),
        ]
        for key, entry in PAPERS.items()
    ]
    tallies = [
        [f"[{short(key, entry)}]({key}.md)", *tally(of_paper[key])] for key, entry in PAPERS.items()
    ]
    missed = _with_verdict(claims, "not reproduced")
    depending = _with_verdict(claims, DEPENDS)
    not_decided = [
        *_with_verdict(claims, "premise not met"),
        *_with_verdict(claims, "undecided"),
    ]
    outcome = [
        f"[{name}]({document['paper']}.md#{name})"
        for name, document in made.items()
        if chosen_by_outcome(origins_of(name, [run["config"] for run in document["runs"]]))
    ]
    stated = [claim for of in of_paper.values() for claim in of if claim.first.kind == "claim"]
    several = sum(len(claim.each) > 1 for claim in stated)
    return "\n\n".join(
        [
            (
                f"**{summary([claim for of in of_paper.values() for claim in of])}**, in"
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
                "outcomes",
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
            table(["paper", *VERDICTS, "due to"], tallies, "outcomes"),
            "## Claims that depend on the seed",
            missed_table(depending, "median"),
            "## Claims that are not reproduced",
            missed_table(missed),
            *(["## Claims that are not decided", missed_table(not_decided)] if not_decided else []),
            toctree(f"{short(key, entry)} <{key}>" for key, entry in PAPERS.items()),
        ]
    )


def _no_count(claim: ClaimOverSeeds) -> str:
    """Return what stands in place of a share of seeds."""
    tried = len(claim.each)
    return "one seed" if tried == 1 else f"none of {tried} seeds decides; median"


def missed_table(rows: list[list[str]], measured: str = "measured") -> str:
    """Return the table of claims of `_with_verdict`; narrow screens label its cells in
    `papers.css`.
    """
    return table(["claim", "figure", "expected", measured, "seeds, why"], rows, "claims missed")


def _with_verdict(claims: Mapping[str, Sequence[ClaimOverSeeds]], verdict: str) -> list[list[str]]:
    """Return a row for each claim of a verdict; `claims` holds those of figures by their ids."""
    rows = []
    for key, entry in PAPERS.items():
        for name in entry.figures:
            for claim in claims.get(name, []):
                if claim.verdict == verdict:
                    rows.append(
                        [
                            inline(claim.first.statement),
                            f"[{name}]({key}.md#{name})",
                            inline(claim.first.expected),
                            claim.shown,
                            " ".join(
                                [
                                    claim.count or _no_count(claim),
                                    *below(claim.why),
                                    f"[notes]({key}.md#{key}-notes)",
                                ]
                            ),
                        ]
                    )
    return rows


# -- Sphinx


def write_pages(app: Sphinx) -> None:
    """Write all pages, and the part of the front page."""
    made = documents()
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
