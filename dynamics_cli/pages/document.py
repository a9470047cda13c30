"""One HTML file: its escaped text, its numbers, its parts, and what a browser lets it do.

A page makes no request and evaluates no data: its policy allows the one script and the one style
sheet whose SHA-256 it names, and pictures that it holds itself. Arrays are deflated (RFC 1951), the
browser inflates those that are looked at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape
from importlib.resources import files as resources
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics_cli.plotting.style import DARK, MADE_BY, PALETTE, Palette
from dynamics_cli.plotting.time_axis import decimate
from dynamics_cli.runs.store import files
from dynamics_cli.text import jsonable

SCRIPTS = ("uplot.min.js", "data.js", "chart.js", "canvas.js", "scene.js", "sweep.js", "page.js")
STYLES = ("uplot.min.css", "page.css")
LONGEST = 2000
"""Characters of a text that a page shows; of a longer one the beginning and its length."""
MOST_POINTS = 2**15
"""Points of a curve that travel as they are; longer ones are decimated."""
_VOID = ("br", "img", "input", "meta")


class Html(str):
    """Text that is HTML already; any other text is escaped where it is put into a page."""

    __slots__ = ()


def shown(text: object) -> str:
    """Return a text as a page shows it: cut where very long, of characters that files can hold."""
    whole = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[:LONGEST]}… ({len(whole):,} characters)"


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; children are escaped unless they are `Html`, None is left out.

    Attributes end in an underscore where Python has the word (`class_`), others become hyphens
    (`aria_label`); True stands without a value, False and None are left out.
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        opening += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            opening += f'="{escape(value if isinstance(value, Html) else shown(value))}"'
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{joined(children)}</{name}>")


def image(data: bytes, said: str, form: str = "image/png") -> Html:
    """Return a picture of the page itself; `said` stands for it where it is not seen.

    A PNG, of 300 dots an inch, has half of its size on a screen, so that nothing moves while it
    loads.
    """
    size = {}
    if form == "image/png":
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        size = {"width": round(width / 2), "height": round(height / 2)}
    source = Html(f"data:{form};base64,{base64.b64encode(data).decode()}")
    return tag("img", src=source, alt=said, **size)


def items(texts: Iterable[object], **attributes: object) -> Html | None:
    """Return a list of texts; None without any."""
    entries = [tag("li", text) for text in texts]
    if not entries:
        return None
    return tag("ul", *entries, **attributes)


def joined(children: Iterable[object]) -> Html:
    """Return children one after another, escaped unless they are `Html`; None is left out."""
    text = ""
    for child in children:
        if isinstance(child, Html):
            text += child
        elif child is not None:
            text += escape(shown(child), quote=False)
    return Html(text)


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    **attributes: object,
) -> Html:
    """Return a table whose first cells head their rows, in a frame that scrolls if too wide.

    The others say their columns, for screens where the cells of a row stand below one another.
    """
    head = None
    if header:
        head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))

    def placed(cell: object, column: object) -> Html:
        if isinstance(cell, Html) and cell.startswith("<td"):
            return cell
        return tag("td", cell, data_label=column)

    body = [
        tag("tr", tag("th", first, scope="row"), *map(placed, cells, header[1:] or repeat(None)))
        for first, *cells in rows
    ]
    whole = tag(
        "table",
        tag("caption", caption) if caption else None,
        head,
        tag("tbody", *body),
        **attributes,
    )
    return tag(
        "div", whole, class_="scroll", tabindex="0", role="group", aria_label=caption or "table"
    )


def folded(title: object, *children: object, opened: bool = False) -> Html:
    """Return a part that a click on its title shows."""
    return tag("details", tag("summary", title), *children, open=opened)


@cache
def _asset(name: str) -> str:
    return (resources("dynamics_cli.pages") / "assets" / name).read_text(encoding="utf-8")


def _colors() -> str:
    """Return the palettes as variables of a style sheet: light, or dark where the system is."""
    light = _variables(PALETTE)
    dark = _variables(DARK)
    dark_rule = (
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark}"
        " } }"
    )
    return f":root {{ color-scheme: light; {light} }}\n{dark_rule}"


def _variables(palette: Palette) -> str:
    colors = asdict(palette)
    series = colors.pop("series")
    colors |= {f"series-{k}": color for k, color in enumerate(series)}
    return "; ".join(f"--{role}: {color}" for role, color in colors.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass
class Page:
    """An HTML file in the making: parts of the body, and panels that the script draws."""

    name: str
    """Of the file, without its ending."""
    title: str
    body: list[Html] = field(default_factory=list)
    panels: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, Any] | None = None
    """What a slider moves through: iterations of the states of a run, and numbers of each."""
    notes: list[str] = field(default_factory=list)
    """Damage that the page tells of, for the terminal too."""

    def array(self, values: ArrayLike) -> dict[str, Any]:
        """Return numbers, or a byte a number, without loss as the script reads them.

        Float64 that float32 holds exactly travels as that.
        """
        array = np.asarray(values)
        if array.dtype not in (np.uint8, np.float32):
            array = array.astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                single = array.astype(np.float32)
                if np.array_equal(single.astype(np.float64), array, equal_nan=True):
                    array = single
        flat = array.ravel()
        # the first bytes of all numbers, then the second ones, ...: neighbours are alike there, and
        # deflate well
        planes = (
            flat.astype(flat.dtype.newbyteorder("<"))
            .view(np.uint8)
            .reshape(len(flat), flat.dtype.itemsize)
            .T
        )
        packer = zlib.compressobj(6, zlib.DEFLATED, -15, 9)
        packed = packer.compress(planes.tobytes()) + packer.flush()
        text = base64.b64encode(packed).decode()
        return {"packed": text, "type": flat.dtype.str[1:], "shape": array.shape}

    def curve(self, x: ArrayLike, y: ArrayLike, name: str, **look: Any) -> dict[str, Any]:
        """Keep a curve y (k,) over x (k,), of a long one its extremes, and describe it."""
        xs = np.asarray(x, np.float64)
        ys = np.asarray(y, np.float64)
        if len(xs) > MOST_POINTS:
            look["of"] = len(xs)
            xs, ys = decimate(xs, ys, columns=MOST_POINTS // 12)
        return {"name": shown(name), "x": self.array(xs), "y": self.array(ys), **look}

    def panel(
        self, kind: str, title: str, alternative: str, *, wide: bool = False, **described: Any
    ) -> Html:
        """Add an element that the script draws, and return its place.

        `alternative` describes the picture.
        """
        number = len(self.panels)
        self.panels.append(
            {"kind": kind, "title": shown(title), **described, "alternative": shown(alternative)}
        )
        place = tag("div", id=f"panel-{number}", class_="drawn")
        if kind == "scene":
            kind = described.get("name", kind)
        classes = f"panel {kind}" + " wide" * wide
        return tag(
            "figure",
            tag("figcaption", title),
            place,
            tag("p", alternative, class_="alternative"),
            class_=classes,
        )

    def described(self) -> dict[str, Any]:
        """Return all that the script draws."""
        described: dict[str, Any] = jsonable({"panels": self.panels, "states": self.states})
        return described

    def html(self) -> str:
        """Return the file: the same parts give the same text."""
        script = "\n".join(_asset(name) for name in SCRIPTS)
        style = "\n".join([_colors(), *(_asset(name) for name in STYLES)])
        policy = (
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        text = json.dumps(self.described(), allow_nan=False, separators=(",", ":"))
        data = tag(
            "script", Html(text.replace("<", "\\u003c")), type="application/json", id="described"
        )
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="generator", content=MADE_BY),
            tag("title", self.title),
            tag("style", Html(style)),
        )
        top = tag("header", tag("h1", self.title), tag("div", id="settings"))
        whole = (top, tag("main", *self.body), data, tag("script", Html(script)))
        return f"<!doctype html>\n{tag('html', head, tag('body', *whole), lang='en')}\n"

    def encode(self) -> bytes:
        """Return the contents of the file."""
        return self.html().encode("utf-8", "backslashreplace")

    def save(self, path: str | Path) -> Path:
        """Write the file in one step, and return its path; a link stays, and leads to the page.

        A device or a pipe gets the page, and stays.

        Raises RunError: it cannot be written.
        """
        target = Path(path)
        files.save_as_named(target, self.encode())
        return target

    def __repr__(self) -> str:
        return f"<Page {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that may run its script and nothing else."""
        height = min(800, 120 + 360 * -(-len(self.panels) // 2))
        frame: dict[str, object] = {"sandbox": "allow-scripts", "width": "100%", "height": height}
        return tag("iframe", srcdoc=Html(self.html()), title=self.title, **frame)
