"""The reference: everything has its place, files and JSON are as their pages say."""

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

import dynamics_cli as dyn
from dynamics_cli.cli import COMMANDS
from dynamics_cli.config.describe import example, explain, key_rows
from dynamics_cli.kinds import get_kind
from dynamics_cli.kinds.registry import SECTIONS

pytest.importorskip("sphinx")

pytestmark = pytest.mark.docs
DOCS = Path(__file__).parents[2] / "docs"
KINDS = [
    (section, row["kind"])
    for section in SECTIONS
    for row in dyn.list_kinds(section)
    if row["from"] == "dyn"
]


@pytest.fixture(scope="module")
def reference():
    """The extension."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "_ext"))
        yield importlib.import_module("reference")


@pytest.fixture(scope="module")
def pages(reference, tmp_path_factory):
    """The folder of all pages, written once."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "loss").mkdir()
    (folder / "loss" / "gone.md").write_text("# A kind that is gone\n")
    reference.write(folder)
    return folder


def plain(text):
    """Return Markdown or a docstring as words alone, without links, escapes, bullets and line
    breaks.
    """
    text = re.sub(r"\[(`?[^\]\[]*`?)\]\(/[^)]*\)", r"\1", text)
    return " ".join(re.sub(r"\\([^\w\s]|_)", r"\1", text).split())


def test_every_kind_has_a_page_that_its_section_names(pages):
    written = {path.relative_to(pages).with_suffix("").as_posix() for path in pages.rglob("*.md")}
    kinds = {f"{section}/{name}" for section, name in KINDS}
    assert len(kinds) > 90
    included = {"_changes", "_config", "_record", "_pictures", "_sweep", "_formulas", "_kit"}
    assert written == kinds | {f"{section}/index" for section in SECTIONS} | {"index"} | included
    for section, name in KINDS:
        assert f"[`{name}`]({name}.md)" in (pages / section / "index.md").read_text()
    assert all(f"{section}/index" in (pages / "index.md").read_text() for section in SECTIONS)


def test_a_page_says_what_dyn_explain_says(pages):
    for section, name in KINDS:
        cls = get_kind(section, name)
        printed = explain(f"{section}.{name}")
        text = inspect.cleandoc(cls.__doc__ or "")
        config = example(cls)
        page = (pages / section / f"{name}.md").read_text()
        words = plain(page).replace(r"\|", "|")
        assert text in printed
        assert plain(text) in words
        assert f"```yaml\n{config}\n```" in page
        assert plain(config) in plain(printed)
        for key in key_rows(cls):
            assert f"  {key['name']}: {key['type']}" in printed
            assert f"| `{key['name']}` |" in page
            assert key["what"], f"{section}.{name}: {key['name']}"
            assert plain(key["what"]) in words


def test_every_command_has_its_place():
    shown = re.findall(
        r"\.\. click:: (\S+)\n   :prog: dyn (\S+)\n   :nested: full",
        (DOCS / "reference/commands.md").read_text(),
    )
    assert {name: place for place, name in shown} == COMMANDS


def test_every_function_and_every_base_class_has_its_place():
    page = (DOCS / "reference/api.md").read_text()
    functions = re.findall(r"auto(?:function|class):: dynamics_cli\.(\w+)\n", page)
    assert sorted(functions) == [name for name in dir(dyn) if name != "__version__"]
    classes = set(re.findall(r"autoclass:: (?:[\w.]+\.)?(\w+)\n", page))
    of_sections = {next(iter(_base(section))) for section in SECTIONS}
    assert classes >= of_sections | {
        "Run",
        "Sweep",
        "Table",
        "FigureResult",
        "Audit",
        "State",
        "Problem",
        "Samples",
    }


def _base(section):
    cls = get_kind(section, next(name for of, name in KINDS if of == section))
    yield next(
        one.__name__ for one in reversed(cls.__mro__) if getattr(one, "section", "") == section
    )


def named(page):
    """Return all that a page has between backticks in the first cells of its tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", (DOCS / "reference" / page).read_text(), re.MULTILINE)
    return {name for row in rows for name in re.findall("`([^`]*)`", row)}


SMALL = {"optimizer.iterations": 50, "record.measures": ["weight_norm"]}


def test_files_of_a_run_are_those_of_the_page(tmp_path):
    run = dyn.train("boursier2022/orthogonal", SMALL, out=tmp_path / "run")
    names = {
        path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()
    }
    generic = {re.sub(r"^(measures)/.*", r"\1/<measure>.npy", name) for name in names}
    generic = {
        re.sub(r"^trajectory/(?!iterations).*", "trajectory/<weight>.npy", name) for name in generic
    }
    known = named("run-files.md")
    assert generic <= known
    assert {"trajectory/<weight>.npy", "measures/<measure>.npy", "losses.npy"} <= generic
    assert json.loads((run.path / "run.json").read_text()).keys() <= known
    T = len(run.losses)
    K = len(run.snapshot_iterations)
    assert (T, run.losses.dtype) == (51, "float64")
    assert run.parameters["hidden_weight"].shape == (K, 60, 2)
    assert run.parameters["hidden_weight"].dtype == run.config.dtype
    assert (run.measures["weight_norm"].shape, run.measures["weight_norm"].dtype) == (
        (K,),
        "float64",
    )
    from dynamics_cli.runs.store.layout import LOCK, RUN_FILES

    files = {name.partition(".")[0] for name in (*RUN_FILES, LOCK)}
    assert files <= {re.split("[./]", name)[0] for name in known}


def test_files_of_a_sweep_are_those_of_the_page(tmp_path):
    changes = {
        "let": {},
        "grid": {"initialization.scale": [1e-3, 1e-2], "architecture.width": [5, 6]},
    }
    sweep = dyn.sweep(
        "boursier2022/orthogonal", changes["grid"], overrides=SMALL, out=tmp_path / "sweep", seeds=1
    )
    top = {
        path.name if path.is_file() else f"{path.name}/<number>/" for path in sweep.path.iterdir()
    }
    known = named("run-files.md")
    assert top <= known
    assert json.loads((sweep.path / "sweep.json").read_text()).keys() <= known
    header = (sweep.path / "results.csv").read_text().splitlines()[0].split(",")
    text = (DOCS / "reference/run-files.md").read_text()
    settings = {"initialization.scale", "architecture.width", "weight_norm"}
    assert all(f"`{column}`" in text for column in set(header) - settings)
    assert settings <= set(header)


def test_json_of_a_figure_is_that_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    known = named("figure-json.md")
    dyn.reproduce("boursier2022-fig2", seeds=4, formats=["png"])
    document = json.loads((tmp_path / "figures/boursier2022-fig2.json").read_text())
    claims = document["claims"]
    runs = document["runs"]
    assert document.keys() | claims[0].keys() | runs[0].keys() <= known
    assert len(document.keys()) == 14
    seeds = json.loads((tmp_path / "figures/boursier2022-fig2.seeds.json").read_text())
    assert seeds.keys() | seeds["claims"][0].keys() <= known
    text = (DOCS / "reference/figure-json.md").read_text()
    inside = {*seeds["claims"][0]["per_seed"][0], *document["provenance"]["obtained"][0]}
    assert all(f"`{name}`" in text for name in inside)
    from dynamics_cli.reproduction.claims import KINDS as CLAIM_KINDS

    assert all(f"`{kind}`" in text for kind in CLAIM_KINDS)
    dyn.audit("boursier2022-fig2", nulls=["untrained"])
    audit = json.loads((tmp_path / "figures/boursier2022-fig2.audit.json").read_text())
    assert audit.keys() <= known
    assert all(f"`{name}`" in text for name in audit["nulls"][0])
