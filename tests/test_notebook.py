"""What notebooks show of results."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dynamics_cli as dyn
from dynamics_cli.notebook import HEIGHT, MARGIN, WIDTH, html_curves
from dynamics_cli.reproduction.claims import ClaimOverSeeds, around, claim
from dynamics_cli.reproduction.reproduce import FigureResult
from dynamics_cli.text import Table
from tests.cases import TWO_POINTS


def parsed(html: str) -> ET.Element:
    return ET.fromstring(f"<div>{html}</div>")


def cells(element: ET.Element) -> list[str]:
    return [cell.text or "" for cell in element.iter("td")]


def test_a_run_and_a_sweep_are_a_picture_and_a_table(tmp_path):
    config = {**TWO_POINTS, "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4}}
    run = dyn.train(config, out=tmp_path / "a&b")
    shown = parsed(run._repr_html_())
    assert shown.find("h4").text == "a&b"
    assert len(shown.findall(".//polyline")) == 1
    assert "complete" in cells(shown)
    sweep = dyn.sweep(config, {"optimizer.lr": [0.01, 0.02]}, out=tmp_path / "sweep", workers=1)
    shown = parsed(sweep._repr_html_())
    assert len(shown.findall(".//polyline")) == 2
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


def test_curves_have_gaps_and_logarithmic_axes_where_values_span_decades():
    x = np.arange(5)
    picture = parsed(html_curves([(x, [1.0, 1e-2, np.nan, 1e-4, 1e-4])], "loss"))
    first, second = picture.findall(".//polyline")
    points = [tuple(map(float, point.split(","))) for point in first.get("points").split()]
    middle = HEIGHT / 2
    quarter = MARGIN + (WIDTH - 2 * MARGIN) / 4
    assert points == [(MARGIN, MARGIN), pytest.approx((quarter, middle))]
    assert len(second.get("points").split()) == 2
    assert "logarithmic" in picture.find(".//figcaption").text
    assert html_curves([(x, np.full(5, np.nan))], "loss") == ""
