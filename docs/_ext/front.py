"""The first page's moving parts: a small picture of every figure, the gallery of them, and the
page of a run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics_cli._bundled.experiments.index import PAPERS
from markup import gallery, inline
from papers import DOCS, FIGURES, numbered, short
from PIL import Image

import dynamics_cli as dyn

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SMALL = DOCS / "papers" / "_small"
"""Small pictures of figures, made from the committed ones; git ignores them."""
SIZE = (480, 360)
"""Most pixels of a small picture: two for each pixel of a card."""
RUN = "run.html"
"""The page of a run that the first page embeds, beside it in the built site."""


def write_small_pictures() -> None:
    """Write a small picture of each figure that has none, or an older one."""
    SMALL.mkdir(exist_ok=True)
    for picture in FIGURES.glob("*.png"):
        small = SMALL / f"{picture.stem}.webp"
        if not small.is_file() or small.stat().st_mtime < picture.stat().st_mtime:
            with Image.open(picture) as opened:
                image = opened.convert("RGB")
            image.thumbnail(SIZE, Image.Resampling.LANCZOS)
            image.save(small, quality=80)


def figures_by_paper() -> str:
    """Return a small picture of each figure with its title, by paper; each leads to its section
    on the paper's page.
    """
    parts = []
    for key, paper in PAPERS.items():
        cards = [
            (f"papers/_small/{name}.webp", numbered(name, figure.title), f"papers/{key}.md#{name}")
            for name, figure in paper.figures.items()
            if (FIGURES / f"{name}.png").is_file()
        ]
        if cards:
            parts += [
                f"**[{short(key, paper)}](papers/{key}.md)** {inline(paper.title)}",
                gallery(cards),
            ]
    return "\n\n".join(parts) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write the small pictures and the gallery, which `index.md` includes."""
    write_small_pictures()
    (DOCS / "papers" / "_gallery.md").write_text(figures_by_paper(), encoding="utf-8")


def write_run(app: Sphinx, error: Exception | None) -> None:
    """Train a config and put the page of the run beside the first page, unless it is there."""
    page = Path(app.outdir) / RUN
    if error is None and app.builder.name == "html" and not page.is_file():
        with tempfile.TemporaryDirectory() as folder:
            dyn.page(
                dyn.train("boursier2022/orthogonal", out=Path(folder) / "boursier2022-orthogonal")
            ).save(page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write pictures before the pages that show them, and the page of a run after all others."""
    app.connect("builder-inited", write_pages, priority=500)
    app.connect("build-finished", write_run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
