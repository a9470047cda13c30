"""The index, the figures and the configs belong together."""

import ast
import re
from functools import cache
from itertools import product

import pytest
import yaml

from dynamics_cli._bundled import CONFIGS, ROOT
from dynamics_cli.config import load_config
from dynamics_cli.reproduction.catalogue import figures, load_figure, papers
from dynamics_cli.version import __version__

IDS = [listed.id for listed in figures()]
MODULES = {tuple(listed.module.split(".")[-2:]) for listed in figures()}


@cache
def wanted_of(figure_id):
    """Return each config that a figure asks for with its settings, once, whatever asks for it."""
    figure = load_figure(figure_id)
    asked = {}
    for one in (figure, *map(figure.as_variant, figure.variants)):
        for preset, first in product(("default", "full"), (True, False)):
            for wanted in one.wanted(preset, first_seed=first).values():
                asked[wanted.config, tuple(wanted.overrides)] = wanted
    return list(asked.values())


@pytest.mark.parametrize("figure_id", IDS)
def test_every_entry_loads_and_says_what_it_is(figure_id):
    figure = load_figure(figure_id)
    assert figure.id == figure_id
    assert figure.paper in papers()
    assert figure.title
    assert figure.caption.endswith(".")
    assert set(figure.seed_configs) <= set(figure.configs)
    assert set(figure.presets) <= {"full"}


@pytest.mark.parametrize("figure_id", IDS)
def test_every_config_that_a_figure_names_is_valid(figure_id):
    chosen = wanted_of(figure_id)
    for wanted in chosen[:: 1 + len(chosen) // 40]:  # of hundreds that differ in numbers, some
        config = load_config(CONFIGS / wanted.config, wanted.overrides, seed=7)
        assert config.seed == 7


@pytest.mark.parametrize("listed", figures(), ids=lambda listed: listed.id)
def test_variants_are_listed_and_replace_runs_of_the_figure(listed):
    figure = load_figure(listed.id)
    assert tuple(figure.variants) == listed.variants
    for variant in figure.variants.values():
        assert set(variant.seed_configs) <= set(variant.configs) <= set(figure.configs)
        assert variant.caption.endswith(".")
        if figure.seed_configs:  # else the seeds after the first would leave the variant
            assert set(figure.seed_configs) <= set(variant.seed_configs)


def test_every_config_is_used():
    used = {CONFIGS / wanted.config for id_ in IDS for wanted in wanted_of(id_)}
    for path in list(used):
        parents = re.findall(r"^extends: *(.*?)\s*$", path.read_text(), re.MULTILINE)
        used.update(path.parent / name for name in parents)
    assert used == {path for path in CONFIGS.rglob("*.yaml") if path.parent.name != "examples"}


def test_every_figure_module_is_in_the_index():
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


def test_the_citation_file_names_every_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    titles = {re.sub(r"\W", "", one["title"].lower()) for one in citation["references"]}
    assert [
        key
        for key, paper in papers().items()
        if re.sub(r"\W", "", paper.title.lower()) not in titles
    ] == []
