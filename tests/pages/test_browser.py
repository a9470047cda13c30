"""Every kind of page in a real browser, from the disk: what it asks for, what it says, what its
slider moves.
"""

import json
import re
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dynamics_cli as dyn
from dynamics_cli.reproduction.document import document_of
from dynamics_cli.sweeps.directory import Sweep

from .conftest import HOSTILE, PLANE, POINTS
from .test_page import LOOK

pytestmark = pytest.mark.browser
SIZES = {"phone": (390, 800), "laptop": (1280, 800), "wide": (1900, 1000)}


@pytest.fixture
def show(browser, tmp_path):
    """Open a page from the disk; at the end there was no request but the file, nothing on the
    console, no violation.
    """
    opened = []

    def open_page(page, size="laptop", **options):
        file = page if isinstance(page, Path) else page.save(tmp_path / f"{len(opened)}.html")
        width, height = SIZES[size]
        tab = browser.new_page(viewport={"width": width, "height": height}, **options)
        asked = []
        said = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        opened.append((tab, file, asked, said))
        tab.goto(file.as_uri())
        ready(tab)
        return tab

    yield open_page
    for tab, file, asked, said in opened:
        assert {url.partition("#")[0] for url in asked if not url.startswith("data:image/")} == {
            file.as_uri()
        }
        assert said == []
        tab.evaluate(
            files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        )
        found = tab.evaluate("axe.run()")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        tab.close()


def ready(tab):
    tab.wait_for_selector("html[data-ready]", state="attached", timeout=30000)


def row(tab, name):
    """Return a number of the table of a state."""
    return float(
        tab.locator("table.state tr", has=tab.get_by_role("rowheader", name=name, exact=True))
        .locator("td")
        .inner_text()
    )


def inked(tab, kind):
    """Return the number of pixels that are drawn in the first picture of a kind."""
    code = """kind => [...document.querySelectorAll(`.${kind} canvas`)].reduce((sum, canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        for (let k = 3; k < data.length; k += 4) sum += data[k] > 0;
        return sum; }, 0)"""
    return int(tab.evaluate(code, kind))


def pixels(tab, kind):
    return str(tab.evaluate("kind => document.querySelector(`.${kind} canvas`).toDataURL()", kind))


def test_the_slider_moves_by_keyboard_to_the_numbers_of_the_run(show, points):
    tab = show(dyn.page(points))
    steps = points.snapshot_iterations
    last = len(points.snapshot_iterations) - 1
    slider = tab.get_by_role("slider", name="State of training")
    slider.focus()
    before = {kind: pixels(tab, kind) for kind in ("function", "rays")}
    for keys, k in (
        (["ArrowLeft"] * 3, last - 3),
        (["Home"], 0),
        (["ArrowRight"] * 4, 4),
        (["End"], last),
    ):
        for one in keys:
            tab.keyboard.press(one)
        assert row(tab, "iteration") == steps[k]
        named = {name.replace("_", " "): values[k] for name, values in points.measures.items()}
        named |= {"loss": points.losses[steps[k]]}
        assert {name: row(tab, name) for name in named} == pytest.approx(
            named, rel=6e-3
        )  # three digits
        assert slider.get_attribute("aria-valuetext").startswith(f"iteration {steps[k]},")
        for kind, former in before.items():
            assert (pixels(tab, kind) == former) == (k == last), (kind, k)
    marks = tab.evaluate(
        "[...document.querySelectorAll('.mark')].map((mark) => mark.style.transform)"
    )
    assert (
        len(marks) == 7
    )  # the loss, two measures, norms, directions, singular values, stable rank
    assert all(marks)
    tab.get_by_role("button", name="first state").click()
    tab.get_by_role("button", name="next state").click()
    assert row(tab, "iteration") == steps[1]
    tab.get_by_role("button", name="play").click()
    tab.wait_for_timeout(1000)
    tab.get_by_role("button", name="pause").click()
    assert row(tab, "iteration") > steps[1]
    tab.get_by_label("by iteration").check()
    slider.fill("500")
    assert row(tab, "iteration") == steps[np.argmin(np.abs(steps - 300))]  # half of 600


def test_curves_zoom_and_say_exact_values(show, points):
    tab = show(dyn.page(points))
    chart = tab.locator("div.chart").first
    over = chart.locator(".u-over").bounding_box()

    def read(share):
        tab.mouse.move(over["x"] + share * over["width"], over["y"] + 20)
        words = tab.locator(".readout").first.inner_text().split()
        return float(words[words.index("at") + 1]), float(words[words.index("at") - 1])

    iteration, loss = read(0.5)
    assert abs(iteration - 300) < 3
    assert loss == pytest.approx(points.losses[int(iteration)], rel=6e-3)
    tab.mouse.down()
    tab.mouse.move(over["x"] + 0.6 * over["width"], over["y"] + 30)
    tab.mouse.up()
    iteration, loss = read(0.5)  # between 300 and 360 now
    assert abs(iteration - 330) < 2
    assert row(tab, "iteration") == 600  # the end of a drag is no click
    tab.locator(".menu summary").first.click()
    tab.get_by_role("button", name="all").first.click()
    tab.get_by_label("log x").first.check()
    iteration, loss = read(0.5)  # half-way from 1 to 600 on a log axis
    assert abs(iteration - 600**0.5) < 2
    norms = tab.locator("figure", has=tab.get_by_text("Norms of neurons", exact=True))
    norms.locator(".u-over").hover()
    assert re.match(r"sⱼ=[+-]1( \d+)? ", norms.locator(".readout").inner_text())
    chart.click(position={"x": over["width"] / 2, "y": 40})
    assert 5 < row(tab, "iteration") < 40


def test_pictures_of_states(show, outputs):
    tab = show(dyn.page(dyn.train(PLANE)))
    last = {kind: pixels(tab, kind) for kind in ("regions", "rays")}
    assert all(inked(tab, kind) > 1000 for kind in last)
    tab.get_by_role("button", name="first state").click()
    assert all(pixels(tab, kind) != before for kind, before in last.items())


def test_decision_regions_are_those_of_the_network(show, outputs):
    run = dyn.train(PLANE)
    tab = show(dyn.page(run), color_scheme="light")
    axes = tab.locator(".regions .u-over")
    box = axes.bounding_box()
    picture = Image.open(BytesIO(axes.screenshot())).convert("RGB")
    panels = json.loads(tab.locator("#described").text_content())["panels"]
    window = next(panel["window"] for panel in panels if panel.get("name") == "regions")
    for x in ([1.4, 0.5], [-1.4, 0.4], [0.5, 1.2], [-0.6, -1.2]):
        across = (x[0] - window[0]) / (window[1] - window[0]) * box["width"]
        down = (window[3] - x[1]) / (window[3] - window[2]) * box["height"]
        red, _, blue = picture.getpixel((round(across), round(down)))
        assert (blue > red) == (run.network(-1)(np.array([x]))[0] > 0), (
            x
        )  # violet where positive, red where negative


def test_a_sweep_answers_to_mouse_and_keyboard(show, swept):
    tab = show(dyn.page(swept), "wide")
    rows = Sweep(swept.path).rows
    assert inked(tab, "sweep") > 10000
    canvas = tab.locator(".sweep canvas").first
    readout = tab.locator(".sweep .readout").first
    box = canvas.bounding_box()
    tab.mouse.move(box["x"] + 62, box["y"] + 40)
    assert "step size η 0.01, width m 4" in readout.inner_text()
    before = pixels(tab, "sweep")
    tab.locator(".jobs tbody tr").nth(3).press("Enter")
    assert pixels(tab, "sweep") != before  # its cell is framed
    assert readout.inner_text().endswith(f"dyn page {swept.path.name}:3")
    assert tab.locator('tr[aria-current="true"]').inner_text().split("\t")[:4] == [
        str(rows[3][name]) for name in ("job", "optimizer.lr", "architecture.width", "seed")
    ]
    legend = tab.locator(".panels .legend").last.inner_text()  # medians by settings
    assert "step size η = 0.01" in legend
    before = pixels(tab, "sweep")
    tab.get_by_label("y", exact=True).select_option("final loss")
    tab.get_by_label("colour", exact=True).select_option("width m")
    assert pixels(tab, "sweep") != before


def jobs(tab):
    return [text.split("\t")[0] for text in tab.locator(".jobs tbody tr").all_inner_texts()]


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_jobs_are_sorted(size, show, swept):
    tab = show(dyn.page(swept), size)
    rows = Sweep(swept.path).rows
    tab.get_by_role("button", name="norm of all weights", exact=True).click()
    finite = sorted(
        (row for row in rows if row["weight_norm"] is not None), key=lambda row: row["weight_norm"]
    )
    assert jobs(tab)[: len(finite)] == [str(row["job"]) for row in finite]
    tab.get_by_role("button", name="norm of all weights").click()
    assert jobs(tab)[: len(finite)] == [str(row["job"]) for row in finite[::-1]]
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.get_by_label("filter").fill("1e6")
    wanted = [row for row in rows if row["optimizer.lr"] == 1e6]
    assert sorted(jobs(tab), key=int) == [str(row["job"]) for row in wanted]
    assert tab.get_by_text(f"{len(wanted)} of {len(rows)} jobs", exact=True).is_visible()
    tab.get_by_label("filter").fill("")
    last = tab.locator(".sweep thead th").last
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert 0 <= box["x"] <= tab.viewport_size["width"] - 10  # all columns can be reached


def test_a_dense_curve_has_its_gaps(show, points):
    tab = show(dyn.page(points))
    of = "(xs, ys) => gapsOf({ data: [xs, ys], valToPos: (x) => x / 10 }, 1, 0, xs.length - 1)"
    xs, ys = "[0, 1, 2, 3, 900, 901]", "[1, null, undefined, 4, null, 6]"
    assert tab.evaluate(f"({of})({xs}, {ys})") == [[-2, 2], [0, 90]]


def test_curves_are_saved(show, points, tmp_path):
    tab = show(dyn.page(points), "wide")
    tab.locator(".menu summary").first.click()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="CSV").first.click()
    text = Path(saved.value.path()).read_text().splitlines()
    assert (saved.value.suggested_filename, text[0]) == ("loss.csv", "curve,iteration,value")
    assert [float(line.rsplit(",", 1)[1]) for line in text[1:]] == points.losses.tolist()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="PNG").first.click()
    with Image.open(saved.value.path()) as picture:
        width, height = picture.size
        words = tab.locator(".panel canvas").first.evaluate(
            "({ width, height }) => [width, height]"
        )
        assert (width, height) == (words[0], words[1] + 2.5 * 18)  # its title and the page's


def test_figures_and_papers(show, figure):
    tab = show(dyn.page("boursier2022"))
    assert tab.evaluate(
        "[...document.images].every((image) => image.complete && image.naturalWidth > 500)"
    )
    assert tab.locator("table.claims tbody tr").count() == len(figure.claims)


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_a_site_fits_and_its_links_lead_to_its_files(size, show, figure, tmp_path):
    for page in dyn.site("boursier2022", tmp_path / "site"):
        if page.suffix == ".html":
            tab = show(page, size)
            tab.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
            links = tab.evaluate("[...document.links].map((link) => link.href)")
            assert links
            inside = [url for url in links if not url.startswith("https://arxiv.org/abs/")]
            assert [url for url in inside if not Path(url.removeprefix("file://")).is_file()] == []


@pytest.mark.parametrize(
    ("size", "scheme"), [*((size, "light") for size in SIZES), ("phone", "dark")]
)
def test_sizes_and_colours(size, scheme, show, points, tmp_path):
    tab = show(dyn.page(points), size, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert tab.pdf(path=tmp_path / "page.pdf")[:5] == b"%PDF-"
    assert len(tab.screenshot()) > 10000


def test_paper_has_whole_curves_and_the_names_of_columns(show, points, swept):
    wider = "[...document.querySelectorAll('.uplot')].filter((one) => one.offsetWidth > innerWidth)"
    for page in (dyn.page(points), dyn.page(swept)):
        tab = show(page, "wide")
        tab.emulate_media(media="print")
        tab.set_viewport_size({"width": 700, "height": 1000})  # of A4
        tab.wait_for_timeout(200)
        assert tab.evaluate(f"{wider}.length") == 0
    assert tab.locator(".jobs thead").inner_text().split("\t")[0].strip() == "job"
    assert tab.locator("canvas.scale").is_visible()
    assert tab.evaluate("getComputedStyle(document.querySelector('.panel.sweep')).breakInside") == (
        "auto"
    )


def test_hostile_names_and_values_are_texts(show, figure, points, tmp_path):
    about = {
        "figure": "hostile",
        "preset": HOSTILE,
        "title": HOSTILE,
        "caption": HOSTILE * 10 + "x" * 10**7,
        "claims": [
            {
                **figure.claims[0].model_dump(),
                "statement": HOSTILE,
                "source": HOSTILE,
                "measured": None,
            }
        ],
        "numbers": {HOSTILE: 1.0},
        "overrides": [HOSTILE],
        "seeds": 1,
        "provenance": {"started": HOSTILE, "versions": {HOSTILE: HOSTILE}, HOSTILE: HOSTILE},
    }
    file = tmp_path / "hostile.json"
    file.write_bytes(document_of(about, {}, figure.runs, tmp_path))
    page = dyn.page(file)
    line = page.curve([0.0, 1.0, 2.0], [np.nan, np.inf, -np.inf], HOSTILE, **LOOK)
    page.body.append(
        page.panel(
            "chart", HOSTILE, HOSTILE, lines=[line], log={"x": True, "y": True}, label=HOSTILE
        )
    )
    tab = show(page)
    assert tab.title() == "hostile"
    assert tab.evaluate("document.querySelectorAll('img, script[src]').length") == 0
    assert HOSTILE[:30] in tab.inner_text("body")
    assert len(page.html()) < 400_000


SPY = """
window.drawn = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (text === "2 / η") drawn.push([x, y, this.measureText(text).width]);
  fillText.call(this, text, x, y);
};
"""


def test_names_of_bounds_that_are_close_stand_beside_one_another(browser, tmp_path):
    record = {"snapshots": {"kind": "every", "interval": 5}, "measures": ["sharpness"]}
    config = {**POINTS, "record": record, "optimizer": {"kind": "gd", "iterations": 10}}
    steps = [0.3, 0.301, 0.302, 0.8]  # bounds near the sharpness, others are named in the legend
    runs = [dyn.train(config, {"optimizer.lr": step}) for step in steps]
    tab = browser.new_page()
    tab.add_init_script(SPY)
    tab.goto(dyn.page(*runs).save(tmp_path / "page.html").as_uri())
    ready(tab)
    *close, far = tab.evaluate("drawn.slice(-4)")
    tab.close()
    assert len({y for _, y, _ in close}) == 1
    assert far[1] > close[0][1]
    assert far[0] == close[0][0]
    for (x, _, width), (following, _, _) in pairwise(close):
        assert following > x + width


HANDBOOK = """<input type=checkbox id=__navigation checked>
<div class=highlight><pre>$ dyn train a
loss  1
$ dyn page a
</pre></div><div class=highlight><pre>a: 1
b: 2
</pre></div>"""


def test_blocks_of_the_handbook_are_copied_and_escape_closes_its_menu(browser):
    script = Path(__file__).resolve().parents[2] / "docs" / "_static" / "custom.js"
    tab = browser.new_page()
    tab.set_content(f"<script>{script.read_text(encoding='utf-8')}</script>{HANDBOOK}")
    tab.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => (window.got ="
        " text)}})"
    )
    for k, copied in enumerate(["dyn train a\ndyn page a", "a: 1\nb: 2"]):
        tab.get_by_role("button", name="copy").nth(k).click()
        assert tab.evaluate("got") == copied
        tab.wait_for_timeout(1600)
    tab.keyboard.press("Escape")
    assert not tab.locator("#__navigation").is_checked()
    tab.close()
