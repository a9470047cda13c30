"""Texts and galleries as Markdown, and files that are only written where their text
has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def inline(text: str) -> str:
    """Return a text as Markdown that shows it as it is, but for code between backticks, formulas
    between dollars, and options such as `--preset`, which become code: two hyphens of a text would
    become a dash.
    """
    parts = re.split(r"(`[^`]+`|\$[^$]+\$|(?<![\w-])--[a-z][a-z-]*)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([\\`*_{}\[\]<>#|$~^!&])", r"\\\1", words) for words in parts[::2]]
    parts[1::2] = [f"`{part}`" if part.startswith("--") else part for part in parts[1::2]]
    bars = {r"\|": r"\Vert{}", "|": r"\vert{}"}  # in a formula: a bar would end the cell of a table
    return "".join(
        re.sub(r"\\?\|", lambda bar: bars[bar[0]], part) if part[:1] == "$" else part
        for part in parts
    )


def gallery(cards: Iterable[tuple[str, str, str]]) -> str:
    """Return pictures of files with a title, each leading to a Markdown file or to a section
    `FILE.md#NAME`.
    """
    shown = [
        f":::{{container}} card\n```{{image}} {file}\n:alt: {title}\n:loading: lazy\n"
        f":target: {target.replace('.md', '.html')}\n```\n[{inline(title)}]({target})\n:::"
        for file, title, target in cards
    ]
    return "\n\n".join(["::::{container} gallery", *shown, "::::"])


def toctree(names: Iterable[str]) -> str:
    """Return a hidden table of contents."""
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])


def write_changed(file: Path, text: str) -> None:
    """Write a file unless it has this text already: Sphinx reads the others again."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
