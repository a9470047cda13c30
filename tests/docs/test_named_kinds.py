"""Kinds that the handbook names: each of them exists."""

import re
from pathlib import Path

import pytest

import dynamics_cli as dyn
from dynamics_cli.kinds.registry import SECTIONS, all_kinds

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    page
    for folder in ("tutorials", "how-to", "reference", "explanation")
    for page in sorted((DOCS / folder).glob("*.md"))
]
NAMED = re.compile(rf"`(?P<section>{'|'.join(SECTIONS)})\.(?P<name>[a-z_0-9]+)[.`]")
"""`measure.sharpness`, and `optimizer.lr`, a key of some kinds."""
KIND = re.compile(r"\bkind: (?P<name>[a-z_0-9]+)")


def spans(page):
    """Return what stands in backticks in the text of a page, without its blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`[^`]+`", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_kinds_in_backticks_exist(page):
    known = {section: all_kinds(section) for section in SECTIONS}
    names = {name for kinds in known.values() for name in kinds}
    for span in spans(page):
        assert {match["name"] for match in KIND.finditer(span)} <= names, span
        if match := NAMED.match(span):
            kinds = known[match["section"]]
            keys = {key for kind in kinds.values() for key in kind.model_fields}
            assert match["name"] in {*kinds, *keys}, span


def test_the_handbook_lists_every_measure():
    text = (DOCS / "how-to/own-measures.md").read_text()
    listed = text.partition("There are measures of\n")[2].partition("\nThe [reference")[0]
    assert sorted(re.findall("`([a-z_]+)`", listed)) == sorted(
        row["kind"] for row in dyn.list_kinds("measure") if row["from"] == "dyn"
    )
