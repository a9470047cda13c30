"""What a page holds, without a browser: the numbers of the run, escaped texts, a policy that
fits, the same bytes.
"""

import base64
import csv
import hashlib
import json
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

import dynamics_cli as dyn
from dynamics_cli.cli import main
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.kinds import Curve
from dynamics_cli.mathematics import in_html
from dynamics_cli.pages import Page, document, make
from dynamics_cli.pages.document import Html, shown, tag
from dynamics_cli.pages.drawn import add_chart
from dynamics_cli.plotting.chart import Chart, Line
from dynamics_cli.reproduction.claims import DEPENDS
from dynamics_cli.runs.store.manifest import MANIFEST
from dynamics_cli.sweeps.directory import Sweep
from tests.runs.damage import contents

from .conftest import HOSTILE, PLANE, POINTS

LOOK = {"color": "series-0", "dash": [], "width": 1.3, "points": False}
ASSETS = Path(make.__file__).parent / "assets"


def described(html):
    found = re.search(
        r'<script type="application/json" id="described">(.*?)</script>', html, re.DOTALL
    )
    document = json.loads(found[1])
    return document


def unpacked(stored):
    """Read an array as the format is described, not by the code that wrote it."""
    planes = zlib.decompress(base64.b64decode(stored["packed"]), -15)
    data = np.frombuffer(planes, np.uint8).reshape(int(stored["type"][1:]), -1).T.tobytes()
    return np.frombuffer(data, "<" + stored["type"]).reshape(stored["shape"])


def panels(html, kind):
    """Return the charts of a page, or the scenes of a name."""
    return [
        panel for panel in described(html)["panels"] if kind in (panel["kind"], panel.get("name"))
    ]


def rows(html, kind, role, state):
    """Return the rows of a state of the layer of a scene that draws a role."""
    (panel,) = panels(html, kind)
    layer = next(
        layer
        for layer in panel["layers"]
        if role in layer["colors"] and layer["form"] != "segments"
    )
    counts = unpacked(layer["counts"])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    k = state if layer["moves"] else 0
    return unpacked(layer["rows"])[starts[k] : starts[k + 1]]


def test_curves_and_states_are_those_of_the_run_to_the_last_bit(points):
    html = dyn.page(points).html()
    (loss, *_) = panels(html, "chart")
    assert_array_equal(unpacked(loss["lines"][0]["x"]), points.loss_iterations)
    assert_array_equal(unpacked(loss["lines"][0]["y"]), points.losses)
    states = described(html)["states"]
    assert_array_equal(unpacked(states["x"]), points.snapshot_iterations)
    measured = {one["name"]: unpacked(one["y"]) for one in states["numbers"]}
    assert_array_equal(measured["weight norm"], points.measures["weight_norm"])
    assert_array_equal(measured["loss"], points.losses[points.snapshot_iterations])
    x, values = rows(html, "function", "function", 5).T
    W, a = (
        np.asarray(points.parameters[name][5], float) for name in ("hidden_weight", "output_weight")
    )
    by_hand = np.maximum(np.outer(x, W[:, 0]) + W[:, 1], 0) @ a
    assert_allclose(values, by_hand, rtol=1e-5, atol=1e-9)
    assert_array_equal(
        rows(html, "rays", "positive", 5)[:, :2], points.parameters["hidden_weight"][5]
    )


def test_a_long_curve_keeps_its_extremes_and_a_number_its_bits(
    monkeypatch,
):
    monkeypatch.setattr(document, "MOST_POINTS", 2**14)
    page = Page("long", "long")
    rng = np.random.default_rng(0)
    y = rng.standard_normal(50_000)
    y[12_345] = 40.0
    y[40_001] = -50.0
    line = page.curve(np.arange(len(y)), y, "long")
    assert line["of"] == len(y)
    odd = np.array([np.pi, np.nan, np.inf, -0.0, 5e-324])
    stored = [line["y"], page.array(odd), page.array(np.uint8([1, 2, 3]))]
    kept, back, bytes_ = (unpacked(one) for one in stored)
    assert (kept.max(), kept.min(), len(kept) <= 2**14) == (40.0, -50.0, True)
    assert_array_equal(kept[:50], y[:50])  # which a log axis shows one by one
    assert back.tobytes() == odd.tobytes()
    assert bytes_.tolist() == [1, 2, 3]


def test_a_chart_says_how_many_curves_it_leaves_out():
    page = Page("many", "many")
    line = Line(x=np.arange(3), y=np.ones((3, 60)), name="neuron")
    shown = add_chart(page, Chart(lines=[line], ylabel="norm"))
    assert "norm, 24 of 60 curves" in shown
    numbers = [drawn["number"] for drawn in page.panels[0]["lines"]]
    assert (len(numbers), numbers[0], numbers[-1], len(set(numbers))) == (24, 1, 60, 24)


def test_the_policy_names_the_script_and_the_style_and_allows_nothing_else(points):
    html = dyn.page(points).html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    allowed = dict(part.split(" ", 1) for part in policy.replace("&#x27;", "'").split("; "))
    for name, text in (("script-src", script), ("style-src", style)):
        assert (
            allowed[name]
            == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        )
    assert (allowed["default-src"], allowed["img-src"], "unsafe" in policy) == (
        "'none'",
        "data:",
        False,
    )
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)
    assert len(Page("empty", "empty").html()) <= 300_000


def test_the_same_run_gives_the_same_bytes_wherever_it_is_made(points, monkeypatch, tmp_path):
    one = dyn.page(points).save(tmp_path / "one.html").read_bytes()
    monkeypatch.chdir(tmp_path)
    path = points.path.absolute()
    assert make.page(path).save("two.html").read_bytes() == one


def test_texts_are_escaped_and_cut():
    assert tag("p", HOSTILE, title=HOSTILE).count("<") == 2
    assert shown("x" * 10**7) == f"{'x' * 2000}… (10,000,000 characters)"
    assert shown("\udcff") == "\\udcff"
    page = Page(HOSTILE, HOSTILE)
    page.body.append(
        page.panel("chart", HOSTILE, HOSTILE, lines=[page.curve([0.0], [np.nan], HOSTILE, **LOOK)])
    )
    html = page.html()
    assert html.count("</script>") == len(re.findall("<script[ >]", html)) == 2
    assert "<img" not in html
    assert described(html)["panels"][0]["lines"][0]["name"] == HOSTILE


def test_a_run_that_diverged_and_one_that_recorded_nothing_have_pages(outputs):
    diverged = dyn.train(POINTS, {"optimizer.lr": 1e4})
    html = dyn.page(diverged).html()
    assert diverged.status == "diverged"
    assert f"diverged, {diverged.iterations} iterations</p>" in html
    assert all(str(tag("li", message)) in html for message in diverged.info["messages"])
    bare = dyn.train(POINTS, {"record": {"parameters": "none", "measures": []}})
    assert [panel["kind"] for panel in described(dyn.page(bare).html())["panels"]] == ["chart"]


def test_theory_and_levels_stand_beside_the_curves(points, monkeypatch):
    curve = Curve("norm", np.arange(3.0), np.ones((3, 1)), np.full((3, 1), 7.0))
    flat = SimpleNamespace(name="flat", curves={"norm": curve}, violated=[])
    monkeypatch.setattr("dynamics_cli.pages.run.predictions", lambda run: [flat])
    html = dyn.page(points, theory=True).html()
    measured, predicted = panels(html, "chart")[-1]["lines"]
    assert unpacked(measured["y"]).tolist() == [1, 1, 1]
    assert (unpacked(predicted["y"]).tolist(), bool(predicted["dash"])) == ([7, 7, 7], True)
    assert "Theory flat: norm" in html
    assert "Theory" not in dyn.page(points).html()
    sharp = dyn.train(POINTS, {"record.measures": ["sharpness"], "optimizer.iterations": 3})
    html = dyn.page(sharp).html()
    assert panels(html, "chart")[1]["levels"] == []  # it would squash the curve
    assert "sharpness, beyond the axis: 2 / η = 100" in html


@pytest.mark.usefixtures("kinds_as_before")
def test_numbers_have_one_name_in_curves_and_tables(outputs):
    def lost(state):
        return float("nan")

    def many(state):
        return np.arange(30.0)

    blocks = {"kind": "hessian_trace", "blocks": {"first": "hidden*", "last": "output*"}}
    changes = {"dataset.x_test": [[0.5, 0.2]], "dataset.y_test": [1]}
    measures = [blocks, "kernel_eigenvalues", "test_loss", "test_accuracy", lost, many]
    run = dyn.train(PLANE, changes, measures=measures)
    html = dyn.page(run).html()
    lines = [line["name"] for chart in panels(html, "chart") for line in chart["lines"]]
    shown = [one["name"] for one in described(html)["states"]["numbers"]]
    for name, columns in (
        ("hessian trace by block", ["first", "last"]),
        ("kernel eigenvalues", ["1", "2", "3", "4"]),
    ):
        for column in columns:
            assert column in lines
            assert f"{name} {column}" in shown
            assert f'<th scope="row">{name}.{column}</th>' in html
    accuracy = next(chart for chart in panels(html, "chart") if chart["reach"])
    assert (accuracy["log"]["y"], accuracy["reach"]) == (False, [0.5, 1.0])
    assert "<figcaption>many, 21 of 30 curves" in html
    assert "<figcaption>lost</figcaption><p>No finite value is recorded.</p>" in html
    beside = dyn.page(
        run, dyn.train(PLANE, changes, measures=["test_loss", "test_accuracy"])
    ).html()
    assert re.findall("<figcaption>(test [^<]*)<", beside) == ["test loss", "test accuracy"]


def test_a_sweep_has_every_column_and_what_went_wrong(swept):
    html = dyn.page(swept).html()
    (panel,) = panels(html, "sweep")
    rows = Sweep(swept.path).rows
    names_of = {name.replace("_", " "): name for name in rows.columns}
    names_of |= {"step size η": "optimizer.lr", "width m": "architecture.width"}
    names_of["norm of all weights"] = "weight_norm"
    for column in panel["columns"]:
        values = unpacked(column["at"])
        if not column["words"]:
            cells = [row[names_of[column["name"]]] for row in rows]
            assert_array_equal(values, [np.nan if cell is None else cell for cell in cells])
    assert panel["chosen"] == {
        "x": "step size η",
        "y": "width m",
        "colour": "norm of all weights",
    }
    status = next(column for column in panel["columns"] if column["name"] == "status")
    assert [status["words"][int(k)] for k in unpacked(status["at"])] == [
        row["status"] for row in rows
    ]
    assert set(status["words"]) == {"complete", "diverged"}
    final, *_, curves = panels(html, "chart")
    assert (final["label"], curves["label"]) == ("step size η", "iteration")
    lines = curves["lines"]
    names = [line["name"] for line in lines if not line.get("further")]
    assert names[:2] == ["step size η = 0.01", "step size η = 0.02"]
    says = f"{sum(row['status'] == 'diverged' for row in rows)} diverged."
    assert panel["alternative"].endswith(says)
    beside = dyn.page(f"{swept.path}:0", f"{swept.path}:4").html()  # two folders named 000000
    heads = re.findall(r'<th scope="col">(step size[^<]*)<', beside)
    assert heads == ["step size η = 0.01", "step size η = 0.02"] * 2
    (swept.path / "sweep.json").rename(swept.path / "kept")
    with pytest.raises(RunError):
        dyn.page(swept.path)
    (swept.path / "kept").rename(swept.path / "sweep.json")


def test_a_figure_has_every_claim_its_picture_and_its_command(figure, outputs):
    html = dyn.page("boursier2022-fig2").html()
    for one in figure.claims:
        statement = in_html(one.statement) + tag("code", one.id, class_="below")
        assert str(tag("th", Html(statement), scope="row")) in html
        assert str(tag("td", one.source, data_label="source")) in html
    picture = (outputs / "figures" / "boursier2022-fig2.png").read_bytes()
    assert f"data:image/png;base64,{base64.b64encode(picture).decode()}" in html
    assert "<code>dyn reproduce boursier2022-fig2</code>" in html
    assert dyn.page(figure).html() == html
    dyn.sweep(
        {**POINTS, "name": "boursier2022-swept"},
        {"optimizer.lr": [1, 2]},
        overrides={"optimizer.iterations": 2},
    )
    paper = dyn.page("boursier2022").html()  # a sweep's name that begins so is no obstacle
    assert "<code>dyn reproduce boursier2022-fig3</code>" in paper  # not reproduced here yet
    with pytest.raises(UsageError, match="a figure and a paper have a page each"):
        dyn.page("boursier2022", "boursier2022-fig2")


def test_a_picture_that_was_changed_is_not_shown(figure, tmp_path):
    for file in figure.files:
        (tmp_path / file.name).write_bytes(
            file.read_bytes() + (b"x" if file.suffix == ".png" else b"")
        )
    with pytest.raises(
        RunError,
        match="not what was written with boursier2022-fig2.json .*dyn reproduce boursier2022-fig2",
    ):
        dyn.page(tmp_path / "boursier2022-fig2.json")


def test_a_site_has_claims_pictures_configs_and_how_to_cite_it(figure, outputs, tmp_path):
    folder = tmp_path / "site"
    done = CliRunner().invoke(main, ["page", "boursier2022", "--site", str(folder), "--json"])
    names = {Path(file).relative_to(folder).as_posix() for file in json.loads(done.stdout)["files"]}
    inside = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert inside == {*names, MANIFEST}
    index = (folder / "index.html").read_text()
    linked = set(re.findall(r'<a href="([^"#]+)"', index))
    assert linked >= {
        "boursier2022-fig2.html",
        "claims.csv",
        "configs/boursier2022/orthogonal.yaml",
    }
    assert linked - names == {"https://arxiv.org/abs/2206.00939"}  # the paper
    for verdict in ("reproduced", "not reproduced", DEPENDS, "premise not met", "undecided"):
        assert str(tag("th", verdict, scope="row")) in index
    made = json.loads((outputs / "figures/boursier2022-fig2.json").read_text())["provenance"]
    for cited in (dyn.__version__, made["commit"] or "", made["started"][:10]):
        assert cited in index
        assert cited in (folder / "citation.bib").read_text() or not cited
    picture = "figures/boursier2022-fig2.png"
    assert (folder / picture).read_bytes() == (outputs / picture).read_bytes()
    table = list(csv.DictReader((folder / "claims.csv").read_text().splitlines()))
    assert [row["verdict"] for row in table] == [one.verdict for one in figure.claims]
    assert not [path for path in folder.rglob("*.*") if str(outputs).encode() in path.read_bytes()]
    # the same site again has the same bytes, and its files are dyn's to overwrite
    before = {name: (folder / name).read_bytes() for name in names}
    dyn.site("boursier2022", folder)
    assert {name: (folder / name).read_bytes() for name in names} == before


@pytest.mark.parametrize("name", ["index.html", MANIFEST, "NOTES.md", "configs"])
def test_a_site_overwrites_nothing_that_dyn_did_not_write(name, figure, tmp_path):
    """Nor a page that somebody has edited; `configs` is a link."""
    folder = tmp_path / "site"
    folder.mkdir()
    if name == "configs":
        (folder / name).symlink_to(tmp_path)
    else:
        (folder / name).write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=name):
        dyn.site("boursier2022", folder)
    assert contents(tmp_path) == before
    (folder / name).unlink()
    (index, *_) = dyn.site("boursier2022", folder)
    index.write_text("edited")
    with pytest.raises(UsageError, match="index.html is there already, and dyn did not write it"):
        dyn.site("boursier2022", folder)
    assert index.read_text() == "edited"


def test_a_site_needs_a_paper_that_was_reproduced(figure, tmp_path):
    with pytest.raises(UsageError, match="no paper 'boursier2023'.*did you mean"):
        dyn.site("boursier2023", tmp_path / "site")
    with pytest.raises(RunError, match="`dyn reproduce saxe2014` does it"):
        dyn.site("saxe2014", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_the_command(points, tmp_path):
    file = tmp_path / "p.html"
    done = CliRunner().invoke(main, ["page", str(points.path), "-o", str(file), "--json"])
    assert json.loads(done.stdout) == {"file": str(file), "bytes": file.stat().st_size}
    assert (
        CliRunner()
        .invoke(main, ["page", points.path.name])
        .stdout.endswith(f"pages/{points.path.name}.html\n")
    )
    site = ["--site", str(tmp_path / "site")]
    for wrong in (["page"], ["page", "latest", "--all"], ["page", "a", "b", *site]):
        assert CliRunner().invoke(main, wrong).exit_code == 2


def test_the_library_is_the_one_that_is_noted():
    noted = dict(
        re.findall(r"`(uplot[\w.]+)` \| `([0-9a-f]{64})`", (ASSETS / "README.md").read_text())
    )
    assert set(noted) == {"uplot.min.js", "uplot.min.css", "uplot.LICENSE"}
    for name, digest in noted.items():
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
