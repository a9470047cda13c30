"""The handbook as a reader sees it: built once with warnings as errors; links, sizes, pictures,
looks in Chromium.
"""

import importlib.util
import re
import resource
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.pages.conftest import browser  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LEAST_PAGES = 60
MOST_BYTES = 1_000_000
MOST_SECONDS = 300.0
"""Of a processor: other programs on the machine do not count."""
SIZES = {"wide": (1400, 900), "phone": (400, 800)}
SHOWN = [
    "index.html",
    "tutorials/first-figure.html",
    "how-to/sweeps.html",
    "reference/commands.html",
    "reference/kinds/measure/sharpness.html",
    "papers/index.html",
    "papers/cohen2021.html",
    "explanation/how-a-run-flows.html",
    "explanation/speed.html",
]
"""A page of each part, and those with the widest tables and the diagram."""

pytestmark = [
    pytest.mark.docs,
    pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="needs the extra `docs`"),
]


class Html(HTMLParser):
    """The parts of a page that the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        """Of `<a>`."""
        self.loaded = []
        """Addresses of scripts, styles, fonts and pictures."""
        self.silent = []
        """Pictures without a text."""
        self.equations = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        of = {key: value or "" for key, value in attrs}
        self.anchors |= {of[key] for key in ("id", "name") if key in of}
        self.equations += tag == "math"
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        if tag == "link" and not {"next", "prev", "index", "search", "genindex", "canonical"} & set(
            of["rel"].split()
        ):
            self.loaded.append(of["href"])
        if tag in ("script", "img", "iframe", "source", "video") and "src" in of:
            self.loaded.append(of["src"])
        if tag == "img" and not of.get("alt", "").strip():
            self.silent.append(of.get("src", ""))


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the folder of the built site."""
    out = tmp_path_factory.mktemp("site")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        str(out / "doctrees"),
    ]
    done = subprocess.run(
        [*command, str(DOCS), str(out / "html")], capture_output=True, text=True, check=False
    )
    if done.returncode or done.stderr:
        pytest.fail(f"the handbook does not build without warnings:\n{done.stderr}", pytrace=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < MOST_SECONDS
    return out / "html"


@pytest.fixture(scope="session")
def pages(site):
    return {file: Html(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}


def resolved(link, file):
    """Return the file and the anchor that a link on a page names."""
    parts = urlsplit(link)
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    return target / "index.html" if target.is_dir() else target, unquote(parts.fragment)


def is_outside(address):
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def test_site_has_many_pages_none_of_them_large(pages, site):
    assert len(pages) >= LEAST_PAGES
    sizes = {str(file.relative_to(site)): file.stat().st_size for file in pages}
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}


def test_every_link_and_anchor_inside_resolves(pages, site):
    missing = []
    for file, page in pages.items():
        for link in page.links:
            if is_outside(link):
                continue
            target, anchor = resolved(link, file)
            known = target in pages
            if not target.is_file() or (anchor and known and anchor not in pages[target].anchors):
                missing.append((str(file.relative_to(site)), link))
    assert missing == []


def test_pages_load_nothing_from_elsewhere(pages, site):
    loaded = [(file, address) for file, page in pages.items() for address in page.loaded]
    assert [
        (str(file.relative_to(site)), address) for file, address in loaded if is_outside(address)
    ] == []
    inside = {
        resolved(address, file)[0] for file, address in loaded if not address.startswith("data:")
    }
    assert sorted(str(file) for file in inside if not file.is_file()) == []
    for style in site.rglob("*.css"):
        assert (
            re.findall(
                r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", style.read_text(encoding="utf-8")
            )
            == []
        )


def test_pictures_have_texts_and_equations_are_mathml(pages, site):
    assert {
        str(file.relative_to(site)): page.silent for file, page in pages.items() if page.silent
    } == {}
    assert sum(page.equations for page in pages.values()) > LEAST_PAGES
    assert [
        file for file in pages if re.search(r"\\\(|\\\[|class=\"math notranslate", file.read_text())
    ] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_of_texts_beside_the_handbook_resolve(name):
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.S)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links
    for link in links:
        if not is_outside(link):
            path, _, anchor = link.partition("#")
            target = ROOT / path if path else ROOT / name
            assert target.exists(), link
            headings = (
                re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M) if anchor else []
            )
            assert not anchor or anchor in {slug(one) for one in headings}, link


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.fixture
def tab(browser, request):  # noqa: F811
    """Return an empty page of the browser; at the end all it asked for were files, and nothing
    failed on it.
    """
    size, scheme = getattr(request, "param", ("wide", "light"))
    width, height = SIZES[size]
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    asked = []
    said = []
    tab.on("request", lambda one: asked.append(one.url))
    tab.on("pageerror", lambda error: said.append(str(error)))
    yield tab
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert said == []
    tab.close()


@pytest.mark.browser
@pytest.mark.parametrize(
    "tab", [(size, scheme) for size in SIZES for scheme in ("light", "dark")], indirect=True
)
def test_pages_fit_and_have_no_serious_faults(tab, site):
    """Nothing is wider than the window; axe finds neither low contrast nor other faults, in
    light and dark.
    """
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = []
    for name in SHOWN:
        tab.goto((site / name).as_uri())
        if tab.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            found.append((name, "wider than the window", ""))
        tab.evaluate(axe)
        faults = tab.evaluate("axe.run()")["violations"]
        found += [
            (name, one["id"], node["html"])
            for one in faults
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
    assert found == []


@pytest.mark.browser
@pytest.mark.parametrize("tab", [("phone", "light")], indirect=True)
def test_every_page_fits_a_phone(tab, pages):
    wider = []
    for file in pages:
        tab.goto(file.as_uri(), wait_until="domcontentloaded")
        wider += (
            [file.name]
            if tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")
            else []
        )
    assert wider == []


@pytest.mark.browser
def test_search_works_from_the_disk(tab, site):
    tab.goto((site / "search.html").as_uri() + "?q=sharpness")
    tab.wait_for_selector("#search-results li a", timeout=20_000)
    links = tab.locator("#search-results li a").evaluate_all(
        "links => links.map(link => link.href)"
    )
    assert any("sharpness" in link for link in links)


@pytest.mark.browser
def test_keyboard_reaches_the_content(tab, site):
    tab.goto((site / "explanation" / "verdicts.html").as_uri())
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('href')") == "#furo-main-content"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate(
        "document.querySelector('#furo-main-content').contains(document.activeElement)"
    )
