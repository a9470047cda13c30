"""Numbers that notes of papers and captions quote are those of the JSON of figures.

The rule. From the section after settings and symbols on, every number of `NOTES.md` with a decimal
point, an exponent or three digits is, to its printed digits, a number of the figures that its
paragraph, list item or row of a table names; where it names none, of those that the header of the
table or the heading names. Numbers of a figure are those of its claims, of `Figure.numbers`, of its
table, of its configs, and those that its claims have in words; those of single seeds where the text
speaks of seeds. Numbers of a caption are those of its figure.

Free are numbers of sections, theorems and so on; tables of settings (with a column `origin`);
columns `paper`, `independent program` and `four times as long`; sections headed by a figure
without JSON. Whole numbers below 100 are not looked at: counts are too many words of other
meanings.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from dynamics_cli._bundled.experiments.index import PAPERS

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.reproduction.document import SEEDS, beside, read_document

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
if not FIGURES.is_dir():
    pytest.skip("a source archive comes without docs/figures", allow_module_level=True)

CHECKED = ("boursier2022", "min2024", "phuong2021", "sarussi2021", "tachet2018")
UNCHECKED = ("Settings", "Symbols")
"""Beginnings of the titles of sections before the rule."""
FREE_COLUMNS = ("paper", "independent program", "four times as long")
NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:\s\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)(?P<percent> %)?"
)
LABEL = re.compile(
    r"(?:Section|Theorem|Lemma|Assumption|Definition|Appendix|Proposition|Corollary|Eq\.|arXiv:)s?"
    r" ?(?:[\d.]+(?:, | and | to ))*$"
)
FIGURE = re.compile(r"\b(Figure|Table)s? (\d+(?:(?: left| right)?(?:, | and | to )\d+)*)")


@dataclass
class Numbers:
    """The numbers of a figure; `of_seeds` are those of single seeds."""

    values: set[float] = field(default_factory=set)
    of_seeds: set[float] = field(default_factory=set)

    def read(self, claim):
        """Add a claim of the JSON of a figure, or of that of its seeds."""
        self.values |= {value for value in (claim.measured, claim.low, claim.high) if value}
        self.of_seeds |= {one.measured for one in claim.per_seed if one.measured is not None}
        for text in (claim.statement, claim.expected, claim.source, claim.note, claim.always):
            self.values |= in_words(text)


def in_words(text):
    """Return all numbers of a text, however short."""
    return {value_of(match[0]) for match in NUMBER.finditer(text)}


def value_of(text):
    return float("".join(text.removesuffix(" %").split()))


@cache
def numbers_of(paper):
    """Return the numbers of the figures of a paper by the ends of their ids, such as `fig2`."""
    return {
        file.stem.partition("-")[2]: _of_figure(file)
        for name in PAPERS[paper].figures
        if (file := FIGURES / f"{name}.json").is_file()
    }


def _of_figure(file):
    found = Numbers()
    document = read_document(file)
    documents = [document]
    if (seeds := beside(file, SEEDS)).is_file():
        documents.append(read_document(seeds))
    for one in documents:
        for claim in one.claims:
            found.read(claim)
    found.values |= set(document.numbers.values())
    texts = [*document.numbers]
    if (table := file.with_suffix(".csv")).is_file():
        texts.append(table.read_text(encoding="utf-8"))
    for run in document.runs:
        texts += [json.dumps(run.overrides), *_config(CONFIGS / run.config)]
    for text in texts:
        found.values |= in_words(text)
    return found


def _config(file):
    """Yield the text of a config, and of those that it extends."""
    text = file.read_text(encoding="utf-8")
    yield text
    if base := re.search(r"^extends: (\S+)$", text, re.MULTILINE):
        yield from _config(file.parent / base[1])


@dataclass(frozen=True)
class Block:
    """A paragraph, a list item, or a row of a table."""

    heading: str
    text: str
    header: str = ""
    """The first row of its table."""


def blocks_of(notes):
    """Yield the blocks of notes that are under the rule, in their order."""
    heading = ""
    header = ""
    lines = []
    for line in [*notes.splitlines(), ""]:
        begins = not line.strip() or line.startswith(("#", "|", "- "))
        if begins and lines:
            yield Block(heading, "\n".join(lines))
            lines = []
        if not line.startswith("|"):
            header = ""
        if line.startswith("#"):
            heading = line
        elif not heading.startswith("##") or heading.removeprefix("## ").startswith(UNCHECKED):
            continue
        elif line.startswith("|"):
            header = header or line
            yield Block(heading, _row(header, line), header)
        elif line.strip():
            lines.append(line)


def _row(header, line):
    """Return the cells of a row that are under the rule, none of a table of settings."""
    titles = cells(header)
    if "origin" in titles or line == header:
        return ""
    kept = (
        cell
        for title, cell in zip(titles, cells(line), strict=True)
        if not title.startswith(FREE_COLUMNS)
    )
    return f"| {' | '.join(kept)} |"


def cells(line):
    """Return the cells of a row; a bar behind a backslash ends none."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def figures_named(text, known):
    """Return the figures that a text names: `Figures 2, 4 to 6`, `Table 1`, or an id in
    backticks; in a table a first cell such as `3`, `3, first saddle` or `1, 2: rank`.
    """
    names = set(re.findall(r"`(?:\w+\d{4}-)?([\w-]+)`", text))
    for kind, listed in FIGURE.findall(text):
        names |= {f"{'fig' if kind == 'Figure' else 'table'}{n}" for n in counted(listed)}
    if first := re.match(r"\| (\d+(?:, \d+)*)(?:[,:]| \|) ", text):
        names |= {f"fig{n}" for n in counted(first[1])}
    return {one for one in known for name in names if one == name or one.startswith(f"{name}-")}


def counted(listed):
    """Return the whole numbers of `1, 2` or `7 to 9`."""
    ends = [int(n) for n in re.findall(r"\d+", listed)]
    return list(range(ends[0], ends[-1] + 1)) if " to " in listed else ends


def unfounded(notes, known, absent):
    """Return the numbers of notes that are those of no figure that they name, each with its
    surroundings.
    """
    found = []
    for block in blocks_of(notes):
        if any(f"`{name}`" in block.heading for name in absent):
            continue
        places = (block.text, block.header, block.heading)
        named = next(filter(None, (figures_named(place, known) for place in places)), ())
        asked = [known[name] for name in named]
        pool = set[float]().union(*(one.values for one in asked))
        if "seed" in block.header + block.text:
            pool = pool.union(*(one.of_seeds for one in asked))
        found += strays(block.text, pool)
    return found


def strays(text, pool):
    """Return the numbers of a text that are not in the pool, each with its surroundings."""
    return [
        f"{match[0]} in ...{text[max(0, match.start() - 40) : match.end() + 20]}..."
        for match in NUMBER.finditer(text)
        if not LABEL.search(text[: match.start()]) and not quotes(match, pool)
    ]


def quotes(match, pool):
    """Return whether a number is short, or one of the pool to its digits; the sign is a word of
    the sentence.
    """
    digits, _, exponent = "".join(match[0].removesuffix(" %").split()).partition("e")
    whole, _, decimals = digits.partition(".")
    if not decimals and not exponent and len(whole) < 3:
        return True
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(decimals)) * (1 + 1e-9)
    value = value_of(match[0])
    scales = (1.0, 100.0) if match["percent"] else (1.0,)
    return any(abs(abs(one) * scale - value) <= half for one in pool for scale in scales)


def notes_of(paper):
    return (ROOT / "experiments" / paper / "NOTES.md").read_text(encoding="utf-8")


def absent_of(paper):
    return {name for name in PAPERS[paper].figures if not (FIGURES / f"{name}.json").is_file()}


@pytest.mark.parametrize("paper", CHECKED)
def test_notes_quote_numbers_of_the_figures(paper):
    assert unfounded(notes_of(paper), numbers_of(paper), absent_of(paper)) == []


@pytest.mark.parametrize("paper", CHECKED)
def test_captions_quote_numbers_of_their_figures(paper):
    for name, numbers in numbers_of(paper).items():
        caption = read_document(FIGURES / f"{paper}-{name}.json").caption
        assert strays(caption, numbers.values) == [], name


@pytest.mark.parametrize(
    ("paper", "right", "wrong"),
    [
        ("boursier2022", "0.951 of the final one, so", "0.952 of the final one, so"),
        ("boursier2022", "sum_{y<0} ...))`", "sum_{y<0} ...))`, 2.683282 here"),
        ("boursier2022", "5 195 (10)", "5 189 (10)"),
        ("min2024", "(0.883, and", "(0.880, and"),
        ("min2024", "4 350 and 2 450", "4 350 and 2 440"),
        ("phuong2021", "third value of 0.0805", "third value of 0.0816"),
        ("tachet2018", "0.663 | 0.285", "1.663 | 0.285"),
        ("tachet2018", "and 0.450 of", "and 0.449 of"),
        ("tachet2018", "gets 98.0 %", "gets 91.8 %"),
    ],
)
def test_a_number_that_no_json_holds_is_found(paper, right, wrong):
    notes = notes_of(paper)
    assert notes.count(right) == 1
    changed = notes.replace(right, wrong)
    assert len(unfounded(changed, numbers_of(paper), absent_of(paper))) == 1


def test_what_is_free_and_what_a_number_may_be():
    known = {"fig1": Numbers({0.12345, 0.61, 1e10}), "fig2": Numbers({7777.0}, {0.25})}
    notes = """# Paper
1.1
## Settings
1.2
## Differences (1.3)
By Theorem 5.1 and Sections 5.2, 6.3 Figure 1 has 0.1235, or 61.0 % and 1e10; 99 are too few.
Figure 1 has 7 777,

- and over seeds Figure 2 has 0.25.
- Without them Figure 2 has 0.25.

| statement of `fig1` | measured | independent program |
| --- | --- | --- |
| 2, first | 0.61 | 0.5 |
| none | 0.61 | 0.5 |

None has 0.61.

| setting | origin |
| --- | --- |
| 1.5 | printed |
### Table 9 (`paper-table9`)
1.6
"""
    assert [line.partition(" in ")[0] for line in unfounded(notes, known, {"paper-table9"})] == [
        "7 777",
        "0.25",
        "0.61",
        "0.61",
    ]
