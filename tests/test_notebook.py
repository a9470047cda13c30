"""What notebooks show of results."""

import base64
import xml.etree.ElementTree as ET
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import dynamics_cli as dyn
from dynamics_cli.plotting import chart
from dynamics_cli.reproduction.claims import ClaimOverSeeds, around, claim
from dynamics_cli.reproduction.reproduce import FigureResult
from dynamics_cli.runs.run import html_losses
from dynamics_cli.text import Table
from tests.cases import TWO_POINTS


def parsed(html):
    return ET.fromstring(f"<div>{html}</div>")


def size_of(element):
    """Return width and height of the one picture."""
    (image,) = element.findall(".//img")
    data = base64.b64decode(image.get("src").removeprefix("data:image/png;base64,"))
    with Image.open(BytesIO(data)) as picture:
        return picture.size


def cells(element):
    return [cell.text or "" for cell in element.iter("td")]


def test_a_run_and_a_sweep_are_a_picture_and_a_table(tmp_path):
    config = {**TWO_POINTS, "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4}}
    run = dyn.train(config, out=tmp_path / "a&b")
    shown = parsed(run._repr_html_())
    assert shown.find("h4").text == "a&b"
    assert size_of(shown) == pytest.approx((3.4 * 300, 2.6 * 300), rel=0.05)
    assert "complete" in cells(shown)
    sweep = dyn.sweep(config, {"optimizer.lr": [0.01, 0.02]}, out=tmp_path / "sweep")
    shown = parsed(sweep._repr_html_())
    assert size_of(shown)[0] > 900
    assert shown.find("p").text == "complete: 2 of 2 jobs have ended"
    assert cells(shown)[:2] == ["0", "0.01"]
    assert not {"hash", "path", "message"} & {cell.text for cell in shown.iter("th")}


def test_tables_and_explanations_are_escaped():
    table = parsed(Table([{"a": "<script>", "b": 1.5}, {"a": None, "b": 2}])._repr_html_())
    assert [cell.text for cell in table.iter("th")] == ["a", "b"]
    aligned = [cell.get("style") for cell in table.iter() if cell.tag in ("th", "td")]
    assert aligned == ["text-align:left", None] * 3
    assert cells(table)[:2] == ["<script>", "1.5"]
    text = dyn.explain("optimizer.gd")
    assert parsed(text._repr_html_()).find("pre").text == text


def test_a_figure_is_its_picture_and_its_claims(tmp_path):
    falls = claim("id", "it <falls>", "Theorem 1", around(0.5), 0.5)
    picture = tmp_path / "figure.png"
    picture.write_bytes(b"\x89PNG")
    result = FigureResult("figure", [picture], [ClaimOverSeeds((falls,))], [])
    html = result._repr_html_()
    assert "data:image/png;base64,iVBORw==" in html
    assert "it &lt;falls&gt;" in html
    assert "reproduced" in html


def test_a_picture_of_losses_keeps_spikes_and_shows_zero_at_the_edge_of_its_log_axis(monkeypatch):
    drawn = []
    draw = chart.draw_charts
    monkeypatch.setattr(chart, "draw_charts", lambda of: drawn.append(of) or draw(of))
    losses = np.geomspace(1.0, 0.0030055, 5001)
    losses[[1234, 4321]] = 2.0972, 0.0
    run = SimpleNamespace(loss_iterations=np.arange(5001), losses=losses)
    assert "<img" in html_losses({"": run})
    ((shown,),) = drawn
    assert (shown.values.min(), shown.values.max()) == (0.0, 2.0972)
    assert shown.log_y
    run.losses = np.full(5001, np.nan)
    assert html_losses({"": run}) == ""
