"""The how-to of notebooks, its blocks run as cells of a notebook in a kernel of Jupyter."""

import os
import re
from html import unescape

import pytest

from ..pages.test_page import described, unpacked
from .blocks import ROOT

PAGE = ROOT / "docs" / "how-to" / "notebooks.md"
SECONDS = 180


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook after all its cells have run."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("notebook")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in blocks])
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DYN_")}
    own = {
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(folder / "ipython"),
    }
    with pytest.MonkeyPatch.context() as patch:
        for key, value in own.items():
            patch.setenv(key, value)
        client = nbclient.NotebookClient(notebook, timeout=SECONDS)
        client.execute(cwd=str(folder), env={**kept, **own})
    return notebook


def outputs(notebook, begins, kind):
    """Return the outputs of a kind of the cell that has a line which begins so."""
    (cell,) = [cell for cell in notebook.cells if re.search(f"^{begins}", cell.source, re.M)]
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.docs
@pytest.mark.parametrize(
    ("begins", "titles", "last"),
    [
        (r"run = dyn\.train", ["loss", "norm of all weights", "sharpness"], 8000),
        (r"with dyn\.Recorder", ["loss", "sharpness"], 400),
    ],
)
def test_live_curves_become_a_page_with_all_that_was_recorded(executed, begins, titles, last):
    (html,) = outputs(executed, begins, "text/html")
    (frame,) = re.findall('srcdoc="([^"]*)"', html)
    panels = described(unescape(frame))["panels"]
    assert [panel["title"] for panel in panels] == titles
    for panel in panels:
        x = unpacked(panel["lines"][0]["x"])
        assert (x[0], x[-1]) == (0, last)
        assert len(x) > 10


@pytest.mark.docs
@pytest.mark.parametrize(
    ("begins", "parts"),
    [
        ("run$", ['<img src="data:image/png;base64,', "<td>complete</td>"]),
        ("sweep$", ["complete: 3 of 3 jobs have ended", "<th>initialization.scale</th>"]),
        ("figure$", ['<img src="data:image/png;base64,', "<td>reproduced</td>"]),
        (r"figure\.rows$", ["<th>statement</th>", "<td>reproduced</td>"]),
        (r"dyn\.explain", ["<pre>", "Full-batch gradient descent: `w &lt;- w - lr g`.\n\n"]),
    ],
)
def test_results_show_themselves(executed, begins, parts):
    (html,) = outputs(executed, begins, "text/html")
    html = html.replace(' style="text-align:left"', "")
    for part in parts:
        assert part in html


@pytest.mark.docs
def test_no_cell_complains(executed):
    said = [
        output.text
        for cell in executed.cells
        for output in cell.outputs
        if output.get("name") == "stderr"
    ]
    assert said == []
