"""The figures of the handbook: intact, complete, without traces of a machine, and still those
that `dyn` makes.
"""

import fnmatch
import hashlib
import importlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from dynamics_cli._bundled.experiments.index import PAPERS

from dynamics_cli.mathematics import in_html
from dynamics_cli.reproduction.audits import read_audit
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.claims import Interval
from dynamics_cli.reproduction.document import (
    AUDIT,
    SEEDS,
    audit_belongs,
    figures_in,
    file_of,
    read_document,
    seeds_of,
)
from dynamics_cli.reproduction.entries import CAUSES
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.store.sealed import read_sealed, seal
from dynamics_cli.text import number
from tests.experiments.helpers import unfalsified

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
if not FIGURES.is_dir():
    pytest.skip("a source archive comes without docs/figures", allow_module_level=True)
INDEX = [figure for paper in PAPERS.values() for figure in paper.figures]
ABSENT = {"tachet2018-table2"}
"""Figures of data that must be got first (`dyn data`)."""
MADE = [figure for figure in INDEX if figure not in ABSENT]
LARGEST = 25_000_000
"""Most bytes of all files together."""


@pytest.fixture(scope="module")
def papers():
    """The extension of the site that imports figures and makes the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        yield importlib.import_module("papers")


@pytest.fixture(scope="module")
def made(papers):
    """The committed figures by their ids."""
    return papers.committed()


@pytest.mark.parametrize("figure", MADE)
def test_a_figure_is_committed_whole(figure):
    file = FIGURES / f"{figure}.json"
    document = read_document(file)  # the checksum of the document holds
    assert seal(document.as_dict()) == file.read_bytes()
    assert (document.figure, document.paper) == (figure, figure.partition("-")[0])
    assert (document.preset, document.overrides) == ("default", [])
    assert f"{figure}.png" in document.files
    for name in document.files:
        file_of(FIGURES / name, document, name)
    assert document.caption
    assert document.claims


def test_nothing_else_is_there_and_it_is_small():
    documents = [read_document(file) for file in figures_in(FIGURES)]
    assert [one.figure for one in documents] == sorted(MADE)
    expected = {name for one in documents for name in (f"{one.figure}.json", *one.files)}
    expected |= {file.name for what in (AUDIT, SEEDS) for file in FIGURES.glob(f"*{what}.json")}
    assert {file.name for file in FIGURES.iterdir()} == expected
    assert sum(file.stat().st_size for file in FIGURES.iterdir()) <= LARGEST


@pytest.mark.parametrize("file", sorted(FIGURES.glob("*.json")), ids=lambda file: file.name)
def test_no_document_names_the_machine(file):
    text = file.read_text(encoding="utf-8")
    assert not re.search(
        r"(?<![\w|)])/(tmp|home|root|work|usr|var|mnt|data|Users)\b|[A-Z]:\\\\|://", text
    )
    assert "platform" not in json.loads(text).get("provenance", {})


@pytest.mark.parametrize("file", sorted(FIGURES.glob(f"*{AUDIT}.json")), ids=lambda file: file.name)
def test_an_audit_has_the_claims_of_its_figure(file):
    audit = read_audit(file)
    figure = file.name.removesuffix(f"{AUDIT}.json")
    assert audit.figure == figure
    assert audit_belongs(audit, read_document(FIGURES / f"{figure}.json")), (
        f"stale: dyn audit {figure}, import again"
    )
    assert unfalsified(audit) == set()


@pytest.mark.parametrize("file", sorted(FIGURES.glob(f"*{SEEDS}.json")), ids=lambda file: file.name)
def test_claims_over_seeds_are_those_of_their_figure(file):
    assert seal(read_document(file).as_dict()) == file.read_bytes()
    figure = FIGURES / file.name.replace(SEEDS, "")
    assert seeds_of(figure, read_document(figure)), (
        f"stale: dyn reproduce {figure.stem} --seeds 10, import both again"
    )


@pytest.mark.parametrize("file", sorted(FIGURES.glob(f"*{SEEDS}.json")), ids=lambda file: file.name)
def test_no_claim_is_reproduced_over_seeds_while_its_median_is_outside_of_its_range(file):
    outside = []
    for claim in read_document(file).over_seeds:
        low, high = claim.first.low, claim.first.high
        if claim.verdict == "reproduced" and not Interval(low, high).holds(claim.measured):
            outside.append(claim.first.id)
    assert outside == []


@pytest.mark.parametrize("key", PAPERS)
def test_a_sentence_that_excuses_a_claim_has_a_claim_that_holds(key):
    """A sentence in `passes` without such a claim, in no figure of the paper, is of no run."""
    said = set[tuple[str, str]]()
    used = set[tuple[str, str]]()
    for name in PAPERS[key].figures:
        audit = read_audit(FIGURES / f"{name}{AUDIT}.json")
        if audit is None:
            continue
        held = {
            outcome.null: [id for id, holds in outcome.held.items() if holds]
            for outcome in audit.nulls
        }
        for null, sentences in load_figure(name).passes.items():
            for pattern in " ".join(sentences).split():
                if null in held:
                    said.add((null, pattern))
                    if fnmatch.filter(held[null], pattern):
                        used.add((null, pattern))
    assert said == used


def test_numbers_quoted_by_the_page_of_verdicts_are_those_of_the_figures():
    figure = ""
    quoted = 0
    for line in (
        (ROOT / "docs" / "explanation" / "verdicts.md").read_text(encoding="utf-8").splitlines()
    ):
        cells = (
            [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        )
        if cells and (heading := re.fullmatch(r"claim of `([\w-]+)`", cells[0])):
            figure = heading[1]
        elif not cells:
            figure = ""
        elif figure and not cells[0].startswith("---"):
            document = read_document(FIGURES / f"{figure}.json")
            said = [(number(one.measured), one.verdict) for one in document.claims]
            assert any(
                (float(cells[2]), cells[3].removesuffix(" (theory)"))
                == (float(f"{float(value):.3g}"), verdict)
                for value, verdict in said
            ), line
            quoted += 1
    assert quoted == 2


def test_pages_hold_every_claim_and_no_part_ends_early(papers, made):
    for key, entry in PAPERS.items():
        page = papers.paper_page(key, entry, made)
        assert page.startswith(f"# {entry.title}")
        for name in entry.figures:
            section = page.partition(f"({name})=\n## ")[2]
            section = re.split(r"\n\([\w-]+\)=\n", section)[0]
            assert section
            for one in made[name].claims if name in made else ():
                assert f'<code class="below">{one.first.id}</code>' in section
        # Markdown ends HTML at an empty line
        for line in page.splitlines():
            assert line.count("<table") == line.count("</table>"), line
    front = papers.front_page(made)
    claims = [one for figure in made.values() for one in figure.claims]
    verdicts = [one.verdict for one in claims]
    missed = sum(verdict != "reproduced" for verdict in verdicts)
    assert front.count(">notes</a>") == missed
    assert f"and {verdicts.count('depends on the seed')} of these depend on the seed" in front
    several = [one for one in claims if len(one.each) > 1 and not one.decided]
    assert front.count("none of 10 seeds decides") == len(several)
    assert papers.inline("a--b by --preset full") == "a--b by `--preset` full"


def test_a_full_preset_decides_what_the_default_leaves_undecided(papers, made):
    files = figures_in(ROOT / "docs" / "full")
    assert files
    undecided = 0
    for file in files:
        full = read_document(file)
        assert (full.preset, full.overrides) == ("full", [])
        for name in full.files:
            file_of(file, full, name)
        figure = made[file.stem]
        verdicts = {one.id: one.verdict for one in full.claims}
        for one in figure.claims:
            key = one.first.id
            default = next(claim for claim in figure.document.claims if claim.id == key)
            if default.verdict == "undecided":
                undecided += 1
                assert one.verdict == verdicts[key] != "undecided"
        section = papers.figure_section(file.stem, figure.title, figure)
        assert f"../full/{file.stem}.png" in section
        assert "decided by --preset full" in section
    assert undecided == 1


def test_a_full_preset_leaves_out_claims_that_said_something_else(papers, made):
    left = {claim.id for claim in read_document(papers.FULL / "phuong2021-fig3.json").claims}
    left -= {claim.first.id for claim in made["phuong2021-fig3"].full.claims}
    assert left == {"others-right", "depth", "blue-left"}  # shares of layers, now of pairs of them


def test_an_import_keeps_full_presets_apart(papers, folder, monkeypatch):
    monkeypatch.setattr(papers, "FULL", papers.FIGURES.with_name("full"))
    change(folder / "boursier2022-fig2.json", preset="full")
    for what in (AUDIT, SEEDS):
        (folder / f"boursier2022-fig2{what}.json").unlink()
    assert list(papers.import_figures(folder)) == []
    assert {file.name for file in papers.FULL.iterdir()} == {
        "boursier2022-fig2.json",
        "boursier2022-fig2.png",
    }
    assert not papers.FIGURES.exists()


EXPLAINED = ("boursier2022", "min2024", "phuong2021", "sarussi2021", "tachet2018")
"""Papers whose every claim that is not reproduced says why."""


@pytest.mark.parametrize("key", EXPLAINED)
def test_claims_that_are_not_reproduced_say_whether_paper_setting_or_data_is_why(key, papers, made):
    told = Counter()
    for name, entry in PAPERS[key].figures.items():
        claims = made[name].claims if name in made else []
        missed = {
            one.first.id: one
            for one in claims
            if {one.verdict, one.first.verdict} != {"reproduced"}
        }
        assert set(entry.missed) == set(missed), name
        assert all(reason.cause in CAUSES for reason in entry.missed.values())
        section = papers.figure_section(name, entry.title, made.get(name))
        for key_of, one in missed.items():
            if one.verdict != "reproduced":
                assert in_html(str(entry.missed[key_of])) in section
                told[entry.missed[key_of].cause] += 1
    due = ", ".join(f"{cause} {told[cause]}" for cause in CAUSES if told[cause])
    assert f" Those that are not are due to: {due}." in papers.paper_page(key, PAPERS[key], made)


@pytest.fixture
def folder(papers, tmp_path, monkeypatch):
    """A folder with a figure and its audit, to import from; what is imported goes elsewhere."""
    source = tmp_path / "source"
    source.mkdir()
    for file in FIGURES.glob("boursier2022-fig2.*"):
        shutil.copy(file, source)
    monkeypatch.setattr(papers, "FIGURES", tmp_path / "imported")
    return source


def change(file, **entries):
    file.write_bytes(seal({**read_sealed(file), **entries}))


def test_an_import_of_what_is_committed_changes_nothing(papers, folder):
    assert list(papers.import_figures(folder)) == []
    assert {file.name for file in papers.FIGURES.iterdir()} == {
        file.name for file in folder.glob("[!.]*")
    }
    assert all(
        file.read_bytes() == (folder / file.name).read_bytes() for file in papers.FIGURES.iterdir()
    )


def test_an_import_leaves_out_what_only_the_machine_knows(papers, folder):
    file = folder / "boursier2022-fig2.json"
    document = read_document(file)
    pdf = b"%PDF"
    (folder / "boursier2022-fig2.pdf").write_bytes(pdf)
    digests = {
        **document.sha256,
        "boursier2022-fig2.pdf": hashlib.sha256(pdf).hexdigest(),
    }
    provenance = {
        **document.as_dict()["provenance"],
        "platform": "Linux-6.1-host",
        "obtained": [{"role": "run", "reused": False, "seconds": 0.5}],
    }
    change(file, files=list(digests), sha256=digests, provenance=provenance)
    audit = read_sealed(folder / "boursier2022-fig2.audit.json")
    audit["nulls"][0]["reason"] = (
        "RunError: /tmp/out/runs/it diverged; everything up to it is kept. Try less"
    )
    (folder / "boursier2022-fig2.audit.json").write_bytes(seal(audit))
    assert list(papers.import_figures(folder)) == []
    assert read_document(papers.FIGURES / file.name) == document
    kept = read_audit(papers.FIGURES / "boursier2022-fig2.audit.json")
    assert kept.nulls[0].reason == "RunError: it diverged"


def test_an_import_refuses_an_edited_document_and_leaves_out_what_is_stale(papers, folder):
    file = folder / "boursier2022-fig2.json"
    change(file, claims=read_sealed(file)["claims"][1:-2])
    lines = list(papers.import_figures(folder))
    assert len(lines) == 2
    assert all("stale" in line for line in lines)
    assert not any(
        (papers.FIGURES / f"boursier2022-fig2{what}.json").exists() for what in (AUDIT, SEEDS)
    )
    file.write_text(file.read_text().replace("orthogonal", "parallel"))
    with pytest.raises(CorruptRunError, match="checksum"):
        list(papers.import_figures(folder))
