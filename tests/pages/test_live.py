"""The script of live curves in a real browser, with a model as notebooks give it."""

from __future__ import annotations

import json

import pytest

from dynamics_cli import live

pytestmark = pytest.mark.browser
POWERS = ["1e-4", "0.001", "0.01", "0.1", "1"]
MODEL = """
const listeners = new Set();
window.traits = TRAITS;
window.change = (charts) => {
  traits.charts = charts;
  listeners.forEach((listener) => listener());
};
window.leave = widget.render({
  model: {
    get: (trait) => traits[trait],
    on: (name, listener) => name === "change:charts" && listeners.add(listener),
    off: (name, listener) => listeners.delete(listener),
  },
  el: document.querySelector("main"),
});
"""


def chart(title, x, *curves, log=False):
    named = [{"label": label, "y": y} for label, y in curves]
    return {"title": title, "log": log, "x": x, "curves": named}


def test_curves_are_drawn_and_follow_the_run(browser):
    pytest.importorskip("anywidget")
    script = live._widget_class()._esm.replace("export default", "const widget =")
    decades = chart("loss", [0, 10, 20], ("", [1.0, 1e-2, 1e-4]), log=True)
    gap = chart("sharpness", [0, 10, 20, 30], ("1", [0, None, 4, 8]), ("2", [0, 1, 2, None]))
    none = chart("nothing", [0], ("", [None]))
    traits = {"name": "a <run>", "colors": ["#0072b2", "#d55e00"], "charts": [decades, gap, none]}
    tab = browser.new_page()
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    code = MODEL.replace("TRAITS", json.dumps(traits))
    tab.set_content(f"<main></main><script type=module>{script}{code}</script>")

    assert tab.locator("main > div").first.inner_text() == "a <run>"
    captions = tab.locator("figcaption").all_inner_texts()
    assert captions[0] == "loss■ 1e-4"
    assert captions[1] == "sharpness■ 1: 8■ 2: not finite"
    assert captions[2] == "nothing: no finite number yet"

    def points(k):
        lines = tab.locator("figure").nth(k).locator("polyline").all()
        texts = [line.get_attribute("points").split() for line in lines]
        return [[tuple(map(float, point.split(","))) for point in text] for text in texts]

    ((first, second, third),) = points(0)
    assert second == pytest.approx(((first[0] + third[0]) / 2, (first[1] + third[1]) / 2))
    assert first[1] < third[1]
    assert [len(piece) for piece in points(1)] == [2, 3]  # and a dot before the gap
    assert tab.locator("figure").nth(1).locator("circle").count() == 1
    loss, sharpness = (tab.locator("svg").nth(k).locator("text") for k in (0, 1))
    assert loss.all_text_contents() == ["0", "5", "10", "15", "20", *POWERS, "iteration"]
    assert sharpness.all_text_contents()[-6:] == ["0", "2", "4", "6", "8", "iteration"]

    longer = chart("loss", [0, 10, 20, 30], ("", [1.0, 1e-2, 1e-4, 1e-6]), log=True)
    tab.evaluate("charts => change(charts)", [longer])
    assert [len(piece) for piece in points(0)] == [4]
    assert tab.locator("figure").count() == 1
    tab.evaluate("leave()")
    tab.evaluate("change([])")
    assert tab.locator("figure").count() == 1
    assert said == []
    tab.close()
