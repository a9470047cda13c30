"""Finding figures, the bundled ones and those of other packages."""

from __future__ import annotations

import importlib.metadata
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry
from dynamics_cli.reproduction.figure import Figure
from dynamics_cli.templates import new_paper


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """An installed package that adds the paper `other2030` with one figure."""
    module = types.ModuleType("other_paper")
    figure = Figure(
        id="other2030-fig1",
        title="t",
        caption="c",
        origin={},
        evidence=lambda runs: None,
        claims=lambda found: [],
        draw=lambda found: pytest.fail("not drawn here"),
    )
    entry = PaperEntry("Title", "Authors", "Venue", {"other2030-fig1": FigureEntry("A figure", 1, "other_paper")})
    module.PAPER, module.FIGURE = entry, figure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "other_paper", module)
    point = importlib.metadata.EntryPoint("other2030", "other_paper:PAPER", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point] if group == catalogue.GROUP else [])
    catalogue._installed.cache_clear()
    return module


def test_figures_are_listed_in_order() -> None:
    listed = catalogue.figures("boursier2022")
    assert [one.id for one in listed[:7]] == [f"boursier2022-fig{k}" for k in range(1, 8)]
    assert all(one.paper == "boursier2022" and one.seconds > 0 and one.title for one in listed)
    assert [one.id for one in catalogue.figures() if one.paper == "boursier2022"] == [one.id for one in listed]


@pytest.mark.parametrize("value", ["other_paper", "other_paper:PAPER"])
def test_another_package_adds_a_paper(value: str, plugin: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("other2030", value, catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    assert list(catalogue.papers())[-1] == "other2030"
    assert "boursier2022" in catalogue.papers()
    assert [one.id for one in catalogue.figures("other2030")] == ["other2030-fig1"]
    assert catalogue.load_figure("other2030-fig1") == replace(plugin.FIGURE, title="A figure")


@pytest.mark.usefixtures("kinds_as_before")
def test_a_new_paper_runs_inside_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_paper("other2031", tmp_path / "local_outer")
    (tmp_path / "local_outer" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    point = importlib.metadata.EntryPoint("other2031", "local_outer.other2031", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    monkeypatch.setattr(catalogue, "_installed", catalogue._installed.__wrapped__)
    assert catalogue.load_figure("other2031-fig1").id == "other2031-fig1"
    assert "other2031/two_points" in catalogue.configs_of_others()


def test_one_module_may_hold_several_figures(plugin: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(plugin, "FIGURE")
    figures = {id_: Figure(id_, "c", {}, dict, lambda found: [], pytest.fail) for id_ in ("other2030-fig1", "x")}
    monkeypatch.setattr(plugin, "FIGURES", figures, raising=False)
    assert catalogue.load_figure("other2030-fig1") == replace(figures["other2030-fig1"], title="A figure")
    figures["other2030-fig1"] = figures["x"]
    with pytest.raises(InputError, match="other2030-fig1 neither as FIGURE nor in FIGURES"):
        catalogue.load_figure("other2030-fig1")


def test_functions_of_a_figure_are_found_by_name() -> None:
    module = types.ModuleType("papers.several")
    one, other = (Figure(f"other2030-{name}", "c", {}) for name in ("fig1", "fig2-b"))
    vars(module).update(evidence=dict, claims=list, draw_fig1=str, draw_fig2_b=int, table=len, numbers_fig1=max)
    bound = one.bound(module), other.bound(module)
    assert [(f.evidence, f.claims, f.draw, f.table, f.numbers) for f in bound] == [
        (dict, list, str, len, max), (dict, list, int, len, None)
    ]  # fmt: skip
    del module.draw_fig1
    with pytest.raises(AttributeError, match="papers.several has no draw_fig1 and no draw for other2030-fig1"):
        one.bound(module)


def test_a_broken_package_is_reported_once_and_hides_nothing_else(
    plugin: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(plugin, "PAPER")
    assert "other2030" not in catalogue.papers()
    assert "boursier2022" in catalogue.papers()
    assert capsys.readouterr().err.count("other_paper:PAPER cannot be used") == 1
    assert catalogue.load_figure("boursier2022-fig3").id == "boursier2022-fig3"


def test_a_package_whose_object_is_no_paper_is_left_out(
    plugin: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin.PAPER = "nonsense"  # type: ignore[attr-defined]
    assert "other2030" not in catalogue.papers()
    assert "is neither a PaperEntry nor a module with one" in capsys.readouterr().err


def test_a_key_that_is_taken_is_left_out(
    plugin: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point = importlib.metadata.EntryPoint("boursier2022", "other_paper:PAPER", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point])
    assert catalogue.papers()["boursier2022"].authors != "Authors"
    assert "there is a paper 'boursier2022' already" in capsys.readouterr().err
