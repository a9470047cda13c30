"""Finding figures, the bundled ones and those of other packages."""

import sys
import types
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint

import pytest

from dynamics_cli.errors import DynError, InputError
from dynamics_cli.kinds import registry
from dynamics_cli.pages.make import page
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.audit import audit
from dynamics_cli.reproduction.document import command
from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry
from dynamics_cli.reproduction.figure import Figure, Wanted, by_values, grid
from dynamics_cli.reproduction.reproduce import one_by_one, reproduce_figures
from dynamics_cli.templates import new_paper


@pytest.fixture
def plugin(monkeypatch):
    """An installed package that adds the paper `other2030` with one figure."""
    module = types.ModuleType("other_paper")
    figure = Figure(
        id="other2030-fig1",
        title="t",
        caption="c",
        evidence=lambda runs: None,
        claims=lambda found: [],
        draw=lambda found: pytest.fail("not drawn here"),
    )
    entry = PaperEntry(
        "Title", "Authors", "Venue", {"other2030-fig1": FigureEntry("A figure", 1, "other_paper")}
    )
    module.PAPER, module.FIGURE = entry, figure
    monkeypatch.setitem(sys.modules, "other_paper", module)
    offer(monkeypatch, "other2030", "other_paper")
    yield module
    registry.installed_packages.cache_clear()


def offer(monkeypatch, key, module):
    """Let an installed package name a module."""
    for asking in (catalogue, registry):
        monkeypatch.setattr(asking, "entry_points", lambda group: [EntryPoint(key, module, group)])
    registry.installed_packages.cache_clear()


def test_another_package_adds_a_paper(plugin):
    assert list(catalogue.papers())[-1] == "other2030"
    assert "boursier2022" in catalogue.papers()
    assert [one.id for one in catalogue.figures("other2030")] == ["other2030-fig1"]
    assert catalogue.load_figure("other2030-fig1") == replace(
        plugin.FIGURE, title="A figure", module="other_paper"
    )


def test_one_module_may_hold_several_figures(plugin, monkeypatch):
    monkeypatch.delattr(plugin, "FIGURE")
    figures = {
        id_: Figure(id_, "c", {}, dict, lambda found: [], pytest.fail)
        for id_ in ("other2030-fig1", "x")
    }
    monkeypatch.setattr(plugin, "FIGURES", figures, raising=False)
    assert catalogue.load_figure("other2030-fig1") == replace(
        figures["other2030-fig1"], title="A figure", module="other_paper"
    )
    figures["other2030-fig1"] = figures["x"]
    with pytest.raises(InputError, match="other2030-fig1 neither as FIGURE nor in FIGURES"):
        catalogue.load_figure("other2030-fig1")


@pytest.mark.parametrize("what", ["no paper", "a key that is taken"])
def test_a_package_that_is_refused(what, plugin, monkeypatch):
    if what == "no paper":
        plugin.PAPER = "nonsense"
    else:
        offer(monkeypatch, "boursier2022", "other_paper")
    with pytest.raises(
        InputError,
        match="other_paper: (PAPER is no PaperEntry|there is a paper 'boursier2022' already)",
    ):
        catalogue.papers()
    assert catalogue.load_figure("boursier2022-fig3").id == "boursier2022-fig3"


FAILING = {
    "fig1.py": ("    at_50 =", "    1 / 0\n    at_50 =", "fig1.py, line 25: ZeroDivisionError"),
    "the figure's import": (
        "from dynamics_cli",
        "import nosuch\nfrom dynamics_cli",
        "fig1.py, line 6: ModuleNotFound",
    ),
}


@pytest.mark.usefixtures("kinds_as_before")
@pytest.mark.parametrize("what", FAILING)
def test_an_error_in_a_paper_names_its_line(what, tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "outputs"))
    before, after, told = FAILING[what]
    new_paper("mine2026", tmp_path)
    file = tmp_path / "mine2026" / "mine2026" / "fig1.py"
    file.write_text(file.read_text().replace(before, after, 1))
    registry.use(tmp_path / "mine2026")
    made = partial(audit, nulls=["untrained"])
    audits = one_by_one(["mine2026-fig1"], made, ["seed=3"])
    for _, error in (*audits, *reproduce_figures(["mine2026-fig1"] * 2, formats=["png"])):
        assert isinstance(error, InputError)
        assert told in str(error)


@pytest.mark.usefixtures("kinds_as_before")
def test_the_folder_of_a_paper_stands_for_the_paper(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.chdir(tmp_path)
    new_paper("mine2026", tmp_path)
    asked = [
        (page, "mine2026"),
        (page, "mine2026-fig1"),
        (catalogue.find, "mine2026-fig1"),
        (catalogue.figures, "mine2026"),
    ]
    for ask, name in asked:
        with pytest.raises(DynError, match=r"; `dyn --with mine2026 \.\.\.` loads the paper"):
            ask(name)
    registry.use(tmp_path / "mine2026")
    assert "mine2026" in page("mine2026").title
    again = command("mine2026-fig1")
    assert again == "dyn --with mine2026 reproduce mine2026-fig1"
    assert command("boursier2022-fig2") == "dyn reproduce boursier2022-fig2"


def test_the_runs_of_a_grid_are_found_by_their_values():
    role = "{}, n = {:d}, scale {:g}"
    sizes = {"loss.kind": ["mse", "hinge, hinge"], "dataset.n": [1, 20], "scale": [1e-5, 0.5]}
    wanted = grid("a.yaml", sizes, role, "x=1", lambda _, n, scale: f"lr={n * scale}", replicas=2)
    assert len(wanted) == 8
    assert wanted["mse, n = 20, scale 0.5"] == Wanted(
        "a.yaml", ("loss.kind=mse", "dataset.n=20", "scale=0.5", "x=1", "lr=10.0"), 2
    )
    values = [*by_values({**wanted, "mse": wanted}, role)]
    assert values[:2] == [("mse", 1, 1e-5), ("mse", 1, 0.5)]
    assert values[-1] == ("hinge, hinge", 20, 0.5)
    assert [*by_values({"D = 2 (a)": 0, "D = 3 (b)": 0, "E = 4": 0}, "D = {:d} (a)")] == [2]
