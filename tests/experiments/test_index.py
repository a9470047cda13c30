"""The index, the figures and the configs belong together."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from dynamics_cli._bundled import CONFIGS, ROOT
from dynamics_cli.config import load_config
from dynamics_cli.reproduction.catalogue import figures, load_figure, papers
from dynamics_cli.reproduction.entries import FigureEntry
from dynamics_cli.version import __version__

IDS = [listed.id for listed in figures()]
MODULES = {tuple(listed.module.split(".")[-2:]) for listed in figures()}


def used_configs() -> set[Path]:
    """Return all configs that some figure names, and those that these extend."""
    used: set[Path] = set()
    for id_ in IDS:
        figure = load_figure(id_)
        chosen = [
            one.wanted(preset, first_seed=first)
            for one in (figure, *(figure.as_variant(name) for name in figure.variants))
            for preset in ("default", "full")
            for first in (True, False)
        ]
        used |= {CONFIGS / one.config for wanted in chosen for one in wanted.values()}
    for path in list(used):
        parent = [
            line.split(":", 1)[1].strip()
            for line in path.read_text().splitlines()
            if line.startswith("extends:")
        ]
        used |= {path.parent / name for name in parent}
    return used


@pytest.mark.parametrize("figure_id", IDS)
def test_every_entry_loads_and_says_what_it_is(figure_id: str) -> None:
    figure = load_figure(figure_id)
    assert figure.id == figure_id
    assert figure.paper in papers()
    assert figure.title
    assert figure.caption.endswith(".")
    assert set(figure.seed_configs) <= set(figure.configs)
    assert set(figure.presets) <= {"full"}


@pytest.mark.parametrize("figure_id", IDS)
@pytest.mark.parametrize("preset", ["default", "full"])
@pytest.mark.parametrize("first_seed", [True, False])
def test_every_config_that_a_figure_names_is_valid(
    figure_id: str, preset: str, first_seed: bool
) -> None:
    figure = load_figure(figure_id)
    for one in (figure, *(figure.as_variant(name) for name in figure.variants)):
        chosen = list(one.wanted(preset, first_seed=first_seed).values())
        for wanted in chosen[
            :: 1 + len(chosen) // 40
        ]:  # of hundreds that differ in numbers alone, some
            config = load_config(CONFIGS / wanted.config, wanted.overrides, seed=7)
            assert config.seed == 7


@pytest.mark.parametrize("listed", figures(), ids=lambda listed: listed.id)
def test_variants_are_listed_and_replace_runs_of_the_figure(listed: FigureEntry) -> None:
    figure = load_figure(listed.id)
    assert tuple(figure.variants) == listed.variants
    for variant in figure.variants.values():
        assert set(variant.seed_configs) <= set(variant.configs) <= set(figure.configs)
        assert variant.caption.endswith(".")
        if figure.seed_configs:  # else the seeds after the first would leave the variant
            assert set(figure.seed_configs) <= set(variant.seed_configs)


def test_every_config_is_used_and_there_are_as_many_as_expected() -> None:
    there = {path for path in CONFIGS.rglob("*.yaml") if path.parent.name != "examples"}
    assert len(there) >= 67
    assert used_configs() == there


def test_every_figure_module_is_in_the_index() -> None:
    for folder in (ROOT / "experiments").iterdir():
        for path in folder.glob("*.py") if folder.is_dir() else ():
            assigned = [
                node
                for node in ast.parse(path.read_text()).body
                if isinstance(node, ast.Assign | ast.AnnAssign)
            ]
            targets = [
                one
                for node in assigned
                for one in getattr(node, "targets", [getattr(node, "target", None)])
            ]
            holds_figure = any(
                getattr(target, "id", "") in {"FIGURE", "FIGURES"} for target in targets
            )
            assert holds_figure == ((folder.name, path.stem) in MODULES), path


@pytest.mark.parametrize("paper", list(papers()))
def test_every_paper_has_notes(paper: str) -> None:
    text = (ROOT / "experiments" / paper / "NOTES.md").read_text()
    for heading in ("Settings", "Symbols", "What differs from the paper"):
        assert f"## {heading}" in text


def test_the_citation_file_names_every_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    titles = {re.sub(r"\W", "", one["title"].lower()) for one in citation["references"]}
    assert [
        key
        for key, paper in papers().items()
        if re.sub(r"\W", "", paper.title.lower()) not in titles
    ] == []
