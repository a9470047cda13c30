"""The pages of papers, written before every build from `docs/figures`, the index of papers and their notes.

Run as a script it imports figures: `python docs/_ext/papers.py [--times] FOLDER...`. A folder holds files of
`dyn reproduce`, of `dyn audit`, or of both; of two files for the same figure the file in the later folder counts. The
seconds of figures stay those committed, unless `--times` takes the new ones: measure them figure by figure on an idle
machine, and put its name into `MACHINE`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics_cli._bundled.experiments.index import PAPERS

from dynamics_cli.errors import InputError
from dynamics_cli.mathematics import FORMULA
from dynamics_cli.reproduction.audit import NULLS, Audit, NullOutcome, read_audit, reasons
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.claims import Claim, ClaimOverSeeds, summary
from dynamics_cli.reproduction.document import AUDIT, SEEDS, figures_in, read_document, seeds_of, sha256
from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry
from dynamics_cli.reproduction.settings import chosen_by_outcome, origins_of
from dynamics_cli.runs.store.sealed import write_sealed
from dynamics_cli.text import duration, number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
FIGURES = DOCS / "figures"
KEPT = (".png", ".csv")
"""Endings of the files of a figure that are committed; its PDF would double the size of the repository."""
KINDS = ("claim", "theory")
DEPENDS = "depends on the seed"
PROVENANCE = ("started", "versions", "commit", "threads", "seconds")
"""Entries of `provenance` that are committed: the others name the machine, or the time that each run took."""
MACHINE = "two cores of an AMD EPYC (Zen 5)"
"""The machine on which the seconds of all figures were measured."""
INDEX = ROOT / "experiments" / "index.py"


# import of figures ---------------------------------------------------------------------------------------------------


def import_figures(folders: Sequence[Path], times: bool = False) -> Iterator[str]:
    """Put figures, seeds and audits of some folders into `docs/figures`, and yield a line for each file left out.

    The JSON is sealed anew: it names the files that are committed, and neither the machine nor the time that runs took.
    `times` takes the seconds of the figures, and fills them in in the index.

    Raises:
        InputError: a figure has another preset or changes, or its runs do not stand beside it.
        CorruptRunError: a file is not as `dyn` wrote it.
    """
    FIGURES.mkdir(exist_ok=True)
    known = {name for paper in PAPERS.values() for name in paper.figures}
    for folder in folders:
        for file in figures_in(folder):
            if file.stem in known:
                _import_figure(file, times)
            else:
                yield f"{file}: no figure of the index"
    for folder in folders:
        for what, take in ((SEEDS, _import_seeds), (AUDIT, _import_audit)):
            for file in sorted(folder.glob(f"*{what}.json")):
                if problem := take(file, file.name.removesuffix(f"{what}.json")):
                    yield f"{file}: {problem}"
    if times:
        seconds = {name: document["provenance"]["seconds"] for name, document in documents().items()}
        INDEX.write_text(filled_in(INDEX.read_text(encoding="utf-8"), seconds), encoding="utf-8")


def filled_in(index: str, seconds: Mapping[str, float]) -> str:
    """Return the text of the index with the seconds of figures, whole ones."""
    for name, took in seconds.items():
        index = re.sub(rf'("{name}": FigureEntry\(\s*"[^"]*", )[\d.]+', rf"\g<1>{max(1, round(took))}", index)
    return index


def _import_figure(file: Path, times: bool) -> None:
    document = read_document(file)
    asked = (document["preset"], document["overrides"])
    if asked != ("default", []):
        raise InputError(f"{file}: the handbook shows the default preset and no changes, not {asked}")
    if any(Path(run["path"]).is_absolute() for run in document["runs"]):
        raise InputError(f"{file}: its runs and the figure are not below the same folder of outputs")
    document["files"] = [name for name in document["files"] if Path(name).suffix in KEPT]
    document["sha256"] = {name: document["sha256"][name] for name in document["files"]}
    document["provenance"] = _kept(document["provenance"])
    if not times and (FIGURES / file.name).is_file():
        document["provenance"]["seconds"] = read_document(FIGURES / file.name)["provenance"]["seconds"]
    for name, expected in document["sha256"].items():
        if sha256(file.with_name(name)) != expected:
            raise InputError(f"{file.with_name(name)} does not fit {file.name}: reproduce the figure again")
        (FIGURES / name).write_bytes(file.with_name(name).read_bytes())
    write_sealed(FIGURES / file.name, document)


def _import_seeds(file: Path, name: str) -> str:
    """Import claims over seeds without their runs; return why not, where the committed figure has other claims."""
    figure, document = FIGURES / f"{name}.json", read_document(file)
    if not figure.is_file():
        return "its figure is not committed"
    write_sealed(FIGURES / file.name, {**document, "provenance": _kept(document["provenance"]), "runs": []})
    if seeds_of(figure, read_document(figure)):
        return ""
    (FIGURES / file.name).unlink()
    return f"stale, its claims are not those of the figure: import {name}.json with it"


def _import_audit(file: Path, name: str) -> str:
    """Import an audit; return why not, where it does not belong to the figure that is committed.

    Nulls of the committed audit that were not tried again stay. Claims, and why they hold, are those of the figure.
    """
    audit, figure = read_audit(file), FIGURES / f"{name}.json"
    if audit is None or not figure.is_file():
        return "its figure is not committed"
    document = read_document(figure)
    if not belongs(audit, document):
        return f"stale, its claims are not those of the figure: `dyn audit {name}` again"
    old, declared = read_audit(FIGURES / file.name), load_figure(name)
    kept = old.outcomes if old is not None and belongs(old, document) else ()
    tried = {outcome.null: outcome for outcome in (*kept, *audit.outcomes)}
    outcomes = [
        NullOutcome(null, outcome.held, _without_paths(outcome.reason), reasons(declared, null, outcome.held))
        for null in (*NULLS, *declared.nulls) if (outcome := tried.get(null))
    ]  # fmt: skip
    claims = [Claim(**claim) for claim in document["claims"] if claim["kind"] == "claim"]
    write_sealed(FIGURES / file.name, Audit(name, claims, outcomes).as_dict())
    return ""


def _kept(provenance: Mapping[str, Any]) -> dict[str, Any]:
    return {key: provenance[key] for key in PROVENANCE if key in provenance}


def _without_paths(reason: str) -> str:
    """Return a reason without directories: a run that diverged is named by its own, and says how to go on."""
    return re.sub(r"/\S*/", "", reason.partition("; everything up to it is kept")[0])


def belongs(audit: Audit, document: Mapping[str, Any]) -> bool:
    """Return whether an audit has the claims of a figure, with the same verdicts."""
    verdicts = {claim["id"]: claim["verdict"] for claim in document["claims"] if claim["kind"] == "claim"}
    return verdicts == {claim.id: claim.verdict for claim in audit.claims}


# Markdown ------------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is, its formulas between dollars as mathematics."""
    words, *others = FORMULA.split(" ".join(text.split()))  # words, formula, words, ...
    formulas = [formula.replace(r"\|", r"\Vert{}").replace("|", r"\vert{}") for formula in others[::2]]  # no cell ends
    parts = [re.sub(r"([\\`*_{}\[\]<>#|$~^!&])", r"\\\1", part) for part in (words, *others[1::2])]
    return parts[0] + "".join(f"${formula}${part}" for formula, part in zip(formulas, parts[1:], strict=True))


def badge(verdict: str, said: str = "") -> str:
    """Return a word on the colour of a verdict."""
    return f"[{said or verdict}]{{.verdict .{verdict.replace(' ', '-')}}}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], style: str) -> str:
    """Return a table of cells in Markdown; `style` names its class for the style sheet."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join([":::{table}", f":class: {style}", "", *(f"| {' | '.join(line)} |" for line in lines), ":::"])


def folded(title: str, *parts: str) -> str:
    """Return parts that a reader unfolds."""
    return "\n\n".join([f'<details class="folded"><summary>{escape(title)}</summary>', *parts, "</details>"])


def plural(count: int, noun: str) -> str:
    """Return `1 claim`, `2 claims`."""
    return f"{count} {noun}{'s' * (count != 1)}"


# facts ---------------------------------------------------------------------------------------------------------------


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
    """Return the claims of a figure, over seeds where these are committed, theory after those of networks."""
    over_seeds = seeds_of(FIGURES / f"{document['figure']}.json", document)
    claims = over_seeds or [ClaimOverSeeds.from_dict(claim) for claim in document["claims"]]
    return [claim for kind in KINDS for claim in claims if claim.first.kind == kind]


def counts(claims: Sequence[ClaimOverSeeds]) -> list[str]:
    """Return the cells `25 of 26`, `1 of 1` of claims and theory."""
    cells = []
    for kind in KINDS:
        verdicts = [claim.verdict for claim in claims if claim.first.kind == kind]
        held = verdicts.count("reproduced")
        said = "reproduced" if held == len(verdicts) else "partly" if held else "not reproduced"
        cells.append(badge(said, f"{held} of {len(verdicts)}") if verdicts else "–")
    return cells


def of_seeds(claims: Sequence[ClaimOverSeeds]) -> list[str]:
    """Return the cells `12 of 26`, `3`: claims with a verdict over seeds, and those of them that depend on the seed."""
    stated = [claim for claim in claims if claim.first.kind == "claim"]
    several = [claim for claim in stated if len(claim.each) > 1]
    depend = sum(claim.verdict == DEPENDS for claim in several)
    return [f"{len(several)} of {len(stated)}" if stated else "–", str(depend) if several else "–"]


def judged(claim: ClaimOverSeeds) -> str:
    """Return the cell of a verdict: of a claim with the seeds that it stands on."""
    shown = badge(claim.verdict if claim.verdict.endswith("reproduced") else "partly", claim.verdict)
    if claim.first.kind == "theory":
        return f"{shown} (theory)"
    return f"{shown} [{claim.count or 'on one seed'}]{{.below}}"


# pages of papers -----------------------------------------------------------------------------------------------------


def paper_page(key: str, entry: PaperEntry, made: Mapping[str, dict[str, Any]]) -> str:
    """Return the page of a paper; `made` holds the JSON of figures by their ids."""
    preamble, sections = notes_of(key)
    claims = {name: claims_of(made[name]) for name in entry.figures if name in made}
    every = [claim for of in claims.values() for claim in of]
    intro = re.sub(rf"^\*[^*]+\*, ({re.escape(entry.venue)}|[^*().;]*arXiv:[\d.]+\d)\.\s*", "", preamble)
    rows = [
        [f"[{plain(numbered(name, figure.title))}](#{name})", *counts(claims.get(name, []))]
        for name, figure in entry.figures.items()
    ]
    parts = [
        f"# {plain(entry.title)}",
        f"{plain(entry.authors)}. {linked(entry.venue)}.",
        f"**{summary(every)}.** [What these words mean](../explanation/verdicts.md)",
        intro,
        table(["figure", "claims", "theory"], rows, "outcomes"),
        *(figure_section(name, figure, made.get(name), claims.get(name, [])) for name, figure in entry.figures.items()),
        *(_note(anchor(key, title), title, body) for title, body in sections.items()),
        configs_section(key, [made[name] for name in claims]),
    ]
    return "\n\n".join(parts) + "\n"


def _note(label: str, title: str, body: str) -> str:
    """Return a section of the notes: differences open, others folded unless they have headings of their own."""
    is_open = title.startswith("What differs") or "\n### " in body
    return f"({label})=\n## {title}\n\n{body if is_open else folded('Show', body)}"


def linked(venue: str) -> str:
    """Return where a paper appeared, with links to arXiv."""
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", venue)


def figure_section(
    name: str, entry: FigureEntry, document: Mapping[str, Any] | None, claims: Sequence[ClaimOverSeeds]
) -> str:
    """Return the section of a figure; without a document it says that the figure is not here."""
    title = f"({name})=\n## {plain(numbered(name, entry.title))}"
    if document is None:
        missing = f"There is no picture of this figure here: `dyn reproduce {name}` makes it, or names missing data."
        return f"{title}\n\n{missing}"
    origins = origins_of(name, [run["config"] for run in document["runs"]])
    parts = [
        title,
        _picked(chosen_by_outcome(origins), claims),
        *(_picture(file, document["caption"]) for file in document["files"] if file.endswith(".png")),
        *_verdicts(claims),
        "\n\n".join(f"{badge('partly', 'chosen by outcome')} {plain(text)}" for text in chosen_by_outcome(origins)),
        _numbers(document.get("numbers", {})),
        _audit(name, document),
        _origins(document["paper"], origins),
        _again(name, entry, document),
    ]
    return "\n\n".join(filter(None, parts))


def _picked(settings: Sequence[str], claims: Sequence[ClaimOverSeeds]) -> str:
    """Return how many seeds show a figure whose own seed was chosen by outcome; nothing for other figures."""
    if not any(re.match(r"(the )?seed\b", setting) for setting in settings):
        return ""
    shown = (claim.each for claim in claims if (claim.first.kind, claim.first.verdict) == ("claim", "reproduced"))
    each = [all(claim.verdict == "reproduced" for claim in of_seed) for of_seed in zip(*shown, strict=True)]
    again = f"of {len(each)} seeds, it and those after it, {sum(each)} show all claims that it shows"
    tried = again if len(each) > 1 else "claims on one network hold for this seed alone"
    return f"**The seed of this figure was chosen by outcome; {tried}.**"


def _verdicts(claims: Sequence[ClaimOverSeeds]) -> Iterator[str]:
    """Yield how many claims came out, a table of the others, and the table of reproduced claims, folded."""
    if not claims:
        return
    held = [claim for claim in claims if claim.holds]
    missed = [claim for claim in claims if not claim.holds]
    yield f"**{len(held)} of {len(claims)}** claims reproduced."
    if missed:
        yield _claims_table(missed)
    if held:
        yield folded(f"{plural(len(held), 'reproduced claim')}", _claims_table(held))


def _claims_table(claims: Sequence[ClaimOverSeeds]) -> str:
    several = any(len(claim.each) > 1 for claim in claims)
    header = ["claim", "source", "expected", "median" if several else "measured", "verdict"]
    return table(header, [[*_cells(claim), judged(claim)] for claim in claims], "claims")


def _numbers(numbers: Mapping[str, float]) -> str:
    lines = "\n".join(f"- {plain(name)}: {number(value)}" for name, value in numbers.items())
    return folded(plural(len(numbers), "further number"), lines) if numbers else ""


def _picture(file: str, caption: str) -> str:
    width = int.from_bytes((FIGURES / file).read_bytes()[16:20], "big") // 2  # 300 dots an inch, for a screen
    options = {"figclass": "paper", "alt": caption, "width": f"{width}px", "loading": "lazy"}
    lines = [f":{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in options.items()]
    return "\n".join([f":::{{figure}} ../figures/{file}", *lines, "", plain(caption), ":::"])


def _cells(one: ClaimOverSeeds) -> list[str]:
    claim = one.first
    statement = f"{plain(claim.statement)} [`{claim.id}`]{{.below}}"
    return [statement, plain(claim.source), plain(claim.expected), one.shown]


def _audit(name: str, document: Mapping[str, Any]) -> str:
    """Return which claims hold under nulls, as `dyn audit` prints it, where it was committed for this figure."""
    audit = read_audit(FIGURES / f"{name}{AUDIT}.json")
    if audit is None or not belongs(audit, document) or not audit.outcomes:
        return ""
    words = {"HOLDS": badge("partly", "HOLDS"), "fails": badge("reproduced", "fails")}
    header, rows = audit.table()
    always = any(row[-1] for row in rows)
    rows = [[f"`{first}`", *(words.get(cell, plain(cell)) for cell in cells)] for first, *cells in rows]
    said = [f"- `{outcome.null}`: {plain(outcome.reason)}" for outcome in audit.outcomes if outcome.reason]
    left_out = [null for null in NULLS if null not in {outcome.null for outcome in audit.outcomes}]
    said += [f"- Not tried: {', '.join(f'`{null}`' for null in left_out)}"] if left_out else []
    if not always:
        header, rows = header[:-1], [row[:-1] for row in rows]
    return folded(
        f"Audit: {plural(len(rows), 'claim')} under {plural(len(audit.outcomes), 'null')}",
        table(header, rows, "audit"),
        "\n".join(said),
    )


def _origins(key: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = [
        [f"[`{config}`](#{config_anchor(f'{key}/{config}')})", origin, plain(text)] for config, origin, text in rows
    ]
    return folded("Settings and their origins", table(["config", "origin", "settings"], cells, "origins"))


def _again(name: str, entry: FigureEntry, document: Mapping[str, Any]) -> str:
    names = dict.fromkeys(run["config"].removesuffix(".yaml") for run in document["runs"])
    made = f"`dyn reproduce {name}` makes it in {duration(entry.seconds)}"
    said = [made, *(f"`--variant {variant}` draws it from other runs" for variant in entry.variants)]
    configs = ", ".join(f"[`{config}`](#{config_anchor(config)})" for config in names)
    return "; ".join(said) + "." + f" Configs: {configs}." * bool(configs)


# notes and configs ---------------------------------------------------------------------------------------------------


def notes_of(key: str) -> tuple[str, dict[str, str]]:
    """Return the preamble and the sections, title -> text, of a paper's notes, without the claims that the JSON has."""
    text = (ROOT / "experiments" / key / "NOTES.md").read_text(encoding="utf-8")
    preamble, *parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)  # title, text, title, ...
    sections = {title.partition(" (")[0]: _markdown(body) for title, body in zip(parts[::2], parts[1::2], strict=True)}
    return _markdown(preamble.partition("\n")[2]), {title: body for title, body in sections.items() if body}


def _markdown(text: str) -> str:
    """Return notes as this parser reads them: bars within code do not end a cell, and commands are a block of shell."""
    lines = [re.sub(r"`[^`]*`", _bars, line) if line.lstrip().startswith("|") else line for line in text.splitlines()]
    text = re.sub(r"(?<=\n)(?:    \S.*\n?)+", _shell, "\n".join([*lines, ""]))
    return text.strip()


def _bars(code: re.Match[str]) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", code[0])


def _shell(block: re.Match[str]) -> str:
    commands = re.sub(r"^    ", "", block[0], flags=re.MULTILINE).rstrip()
    return f"```{{code-block}} bash\n:class: wrapped\n\n{commands}\n```\n"


def anchor(key: str, title: str) -> str:
    """Return the label of a section of a paper's notes."""
    return f"{key}-notes-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"


def config_anchor(config: str) -> str:
    """Return the label of a config on the page of its paper."""
    return "config-" + re.sub(r"[^a-z0-9]+", "-", config.removesuffix(".yaml").lower())


def configs_section(key: str, of_paper: Sequence[Mapping[str, Any]]) -> str:
    """Return the configs that figures of a paper are made of, folded."""
    names = list(dict.fromkeys(run["config"] for document in of_paper for run in document["runs"]))
    if not names:
        return ""
    parts = [f"({key}-configs)=\n## Configs", "The [reference](../reference/config.md) explains sections and keys."]
    for name in names:
        file = f"```{{literalinclude}} ../../configs/{name}\n:language: yaml\n:class: wrapped\n```"
        parts += [f"({config_anchor(name)})=\n### {plain(name.removesuffix('.yaml'))}", folded("YAML", file)]
    return "\n\n".join(parts)


# the front page ------------------------------------------------------------------------------------------------------


def front_page(made: Mapping[str, dict[str, Any]]) -> str:
    """Return the part of the front page that is made from figures: counts, claims that are not reproduced, gallery."""
    claims = {name: claims_of(document) for name, document in made.items()}
    of_paper = {
        key: [claim for name in entry.figures for claim in claims.get(name, [])] for key, entry in PAPERS.items()
    }
    rows = [
        [f"[{short(key, entry)}]({key}.md) [{plain(entry.title)}]{{.below}}", *counts(of_paper[key]),
         *of_seeds(of_paper[key]), str(sum(name in made for name in entry.figures))]
        for key, entry in PAPERS.items()
    ]  # fmt: skip
    missed, depending = (
        [
            [plain(claim.first.statement), f"[{plain(name)}]({key}.md#{name})", plain(claim.first.expected),
             claim.shown, *further(key, claim)]
            for key, entry in PAPERS.items() for name in entry.figures for claim in claims.get(name, [])
            if claim.verdict == verdict
        ]
        for verdict, further in (("not reproduced", _missed), (DEPENDS, _depending))
    )  # fmt: skip
    outcome = [f"[{name}]({document['paper']}.md#{name})" for name, document in made.items()
               if chosen_by_outcome(origins_of(name, [run["config"] for run in document["runs"]]))]  # fmt: skip
    stated = [claim for of in of_paper.values() for claim in of if claim.first.kind == "claim"]
    several = sum(len(claim.each) > 1 for claim in stated)
    toctree = "\n".join(f"{short(key, entry)} <{key}>" for key, entry in PAPERS.items())
    return "\n\n".join(
        [
            f"**{summary([claim for of in of_paper.values() for claim in of])}**, in {plural(len(made), 'figure')} of "
            f"{plural(len(PAPERS), 'paper')}. {plural(len(outcome), 'figure')} of them have a setting "
            f"[chosen by outcome](../explanation/verdicts.md#where-settings-come-from): {', '.join(outcome)}.",
            f"{several} of {plural(len(stated), 'claim')} have a verdict [over seeds]"
            f"(../explanation/verdicts.md#seeds), and {len(depending)} of these depend on the seed. The others stand "
            f"on one seed. Times were taken on {MACHINE}.",
            table(["paper", "claims", "theory", "on several seeds", "depend on the seed", "figures"], rows, "outcomes"),
            "## Gallery",
            gallery(made),
            "## Claims that depend on the seed",
            table(["claim", "figure", "expected", "median", "seeds"], depending, "claims missed"),
            "## Claims that are not reproduced",
            table(["claim", "figure", "expected", "measured", "why"], missed, "claims missed"),
            f"```{{toctree}}\n:hidden:\n\n{toctree}\n```",
        ]
    )


def _missed(key: str, claim: ClaimOverSeeds) -> list[str]:
    return [_why(key, claim.first.id) + f", {claim.count}" * bool(claim.count)]


def _depending(key: str, claim: ClaimOverSeeds) -> list[str]:
    return [claim.count]


def _why(key: str, claim: str) -> str:
    """Return a link to the section of the notes that names a claim, else to that on differences from the paper."""
    sections = notes_of(key)[1]
    naming = [title for title, text in sections.items() if f"`{claim}`" in text]
    naming.sort(key=lambda title: not title.startswith("What differs"))
    title = naming[0] if naming else next(title for title in sections if title.startswith("What differs"))
    return f"[notes]({key}.md#{anchor(key, title)})"


def gallery(made: Mapping[str, dict[str, Any]]) -> str:
    """Return a picture of every paper that has any, with a link to its page."""
    cards = []
    for key, entry in PAPERS.items():
        name = next((name for name in entry.figures if name in made), None)
        if name is None:
            continue
        title = short(key, entry)
        options = f":alt: {entry.figures[name].title}\n:loading: lazy\n:target: {key}.html"
        picture = f"```{{image}} _small/{name}.webp\n{options}\n```"
        cards.append(f"{picture}\n[{title}]({key}.md): {plain(entry.figures[name].title)}")
    return "\n\n".join(["::::{container} gallery", *(f":::{{container}} card\n{card}\n:::" for card in cards), "::::"])


# Sphinx --------------------------------------------------------------------------------------------------------------


def write_pages(app: Sphinx) -> None:
    """Write all pages whose text is another than before."""
    made = documents()
    pages = {key: paper_page(key, entry, made) for key, entry in PAPERS.items()}
    for name, text in {**pages, "_verdicts": front_page(made)}.items():
        file = DOCS / "papers" / f"{name}.md"
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def _settle(app: Sphinx, config: Config) -> None:
    config.exclude_patterns.append("papers/_*.md")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages once the builder is there, and add their style sheet."""
    app.connect("config-inited", _settle)
    app.connect("builder-inited", write_pages, priority=600)  # after the pages of kinds, to which these link
    app.add_css_file("papers.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not (chosen := [Path(folder) for folder in arguments if folder != "--times"]):
        sys.exit(__doc__)
    for line in import_figures(chosen, "--times" in arguments):
        print(line)
