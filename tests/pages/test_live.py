"""The script of live curves in a real browser, with a model as notebooks give it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import dynamics_cli as dyn
from dynamics_cli import live

from .conftest import POINTS

pytestmark = pytest.mark.browser
MODEL = """
const listeners = {};
window.traits = TRAITS;
window.change = (traits) => {
  const changed = Object.keys(traits).filter((name) => traits[name] !== window.traits[name]);
  Object.assign(window.traits, traits);
  for (const name of changed) listeners[`change:${name}`]?.();
};
window.leave = widget.render({
  model: {
    get: (trait) => traits[trait],
    on: (name, listener) => (listeners[name] = listener),
    off: (name) => delete listeners[name],
  },
  el: document.querySelector("main"),
});
"""


def traits(widget):
    return {"page": widget.page, "described": widget.described}


def test_curves_are_drawn_and_follow_the_run(browser):
    pytest.importorskip("anywidget")
    widget = SimpleNamespace(page="", described={})
    curves = live.Curves("a <run>", widget, dyn.load_config(POINTS), [], [].append)
    curves(np.arange(3), {"loss": np.array([1.0, 1e-2, 1e-4])})
    curves.show()
    script = live._widget_class()._esm.replace("export default", "const widget =")
    code = MODEL.replace("TRAITS", json.dumps(traits(widget)).replace("<", "\\u003c"))
    tab = browser.new_page()
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.set_content(f"<main></main><script type=module>{script}{code}</script>")
    frame = tab.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(state="attached")
    assert frame.locator("h1").inner_text() == "a <run>"
    inner = tab.frames[1]
    ends = "[charts.values().next().value.plot.data[0].length, charts.size]"
    assert inner.evaluate(ends) == [3, 1]
    frame.get_by_label("log x").check()

    curves(np.arange(3, 9), {"loss": np.geomspace(1e-5, 1e-9, 6)})
    curves.show()
    tab.evaluate("change", traits(widget))
    while inner.evaluate(ends) == [2, 1]:  # a log axis leaves out iteration 0
        tab.wait_for_timeout(50)
    assert inner.evaluate(ends) == [8, 1]
    assert frame.get_by_label("log x").is_checked()

    curves(np.arange(9), {"weight_norm": np.ones(9)})
    curves.show()
    tab.evaluate("change", traits(widget))
    frame.locator(".chart").nth(1).wait_for()
    tab.evaluate("leave()")
    assert said == []
    tab.close()
