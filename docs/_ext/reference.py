"""A page for each kind, written before Sphinx reads: what `dyn explain` knows."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click
from markup import inline, toctree, write_changed

from dynamics_cli import kit
from dynamics_cli.config import describe
from dynamics_cli.kinds import Kind, all_kinds, formulas, get_kind
from dynamics_cli.kinds.registry import SECTIONS
from dynamics_cli.pages.release import markdown as table

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = "reference/kinds"
"""Where the pages are written, below the folder of the handbook; git ignores it."""

# -- words


def markdown(text: str) -> str:
    """Return a docstring as Markdown: paragraphs, lists, and lines that are indented as code."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        if all(line.startswith("    ") for line in block.splitlines()):
            blocks.append(f"```text\n{inspect.cleandoc(block)}\n```")
            continue
        items = re.split(r"\n(?=- )", block)
        if not items[0].startswith("- "):
            blocks.append(inline(items.pop(0)))
        blocks += ["\n".join(f"- {inline(item[2:])}" for item in items)] if items else []
    return "\n\n".join(blocks)


def keys_table(keys: Sequence[Mapping[str, Any]]) -> str:
    """Return keys with their values, defaults and descriptions as a table."""

    def rows() -> Iterator[list[str]]:
        for key in keys:
            kept = key["type"].replace("True", "true")
            value = inline(re.sub(r"matches (\S+)", r"matches `\1`", kept).replace("'", "`"))
            value = re.sub(r"`(\w+)`", _link, value)
            if key["required"]:
                value += ", **required**"
            elif key["default"] not in (None, {}, []):
                default = key["default"]
                if not isinstance(default, str):
                    default = json.dumps(default, default=str)
                value += f", by default `{default}`"
            yield [f"`{key['name']}`", value, inline(key["what"] or _of_section(key["name"]))]

    return table(["key", "value", "meaning"], rows())


def _of_section(key: str) -> str:
    """Return the first paragraph about a section of a config, whose key needs no other words."""
    about = (
        base_of(next(iter(all_kinds(key).values()))) if key in SECTIONS else describe.WHOLE.get(key)
    )
    return "" if about is None else first_paragraph(about)


def first_paragraph(of: object) -> str:
    """Return the first paragraph of a docstring."""
    return inspect.cleandoc(getattr(of, "__doc__", None) or "").split("\n\n")[0]


def _link(code: re.Match[str]) -> str:
    """Return the name of a section as a link to its page, other code as it is."""
    return f"[{code[0]}](/{PAGES}/{code[1]}/index.md)" if code[1] in SECTIONS else code[0]


# -- kinds


def bundled(section: str) -> dict[str, type[Kind]]:
    """Return the kinds of a section that come with the program."""
    return {
        row["kind"]: get_kind(section, row["kind"])
        for row in describe.list_kinds(section)
        if row["from"] == "dyn"
    }


def base_of(cls: type[Kind]) -> type[Kind]:
    """Return the base class of all kinds of a section."""
    return next(
        base
        for base in reversed(cls.__mro__)
        if issubclass(base, Kind) and base.section == cls.section
    )


def page(cls: type[Kind]) -> str:
    """Return the page of a kind in Markdown."""
    section = cls.section
    name = describe.name_of(cls)
    panel = getattr(cls, "panel", None)
    obstacle = describe.obstacle_of(cls)
    facts = [
        f"In the section [`{section}`](index.md) of a config; `dyn explain {section}.{name}` prints"
        " this page."
    ]
    paper = re.search(r"\.experiments\.(\w+)\.", f"{cls.__module__}.")
    if paper:
        facts.append(f"It belongs to the paper [{paper[1]}](/papers/{paper[1]}.md).")
    if panel:
        facts.append(f"`dyn plot RUN --panel {panel}` draws it.")
    if section == "theory":
        facts = [
            f"`dyn plot RUN --theory` draws it; `dyn explain {section}.{name}` prints this page.",
            *facts[1:],
        ]
    if obstacle:
        facts.append(f"It is trained by autograd, because it is no formula: {inline(obstacle)}.")
    shared = base_of(cls).model_fields
    keys, common = (
        [key for key in describe.key_rows(cls) if (key["name"] in shared) is inherited]
        for inherited in (False, True)
    )
    parts = [f"# {name}", markdown(inspect.cleandoc(cls.__doc__ or "")), "\n".join(facts)]
    parts.append("## Keys\n\n" + (keys_table(keys) if keys else "It has no keys of its own."))
    if common:
        parts.append(f"### Keys of every `{section}`\n\n" + keys_table(common))
    parts += [f"## Example\n\n```yaml\n{describe.example(cls)}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def section_page(section: str) -> str:
    """Return the page of a section with kinds in Markdown."""
    kinds = bundled(section)
    base = base_of(next(iter(kinds.values())))
    sentences = {row["kind"]: row["what"] for row in describe.list_kinds(section)}
    rows = ([f"[`{name}`]({name}.md)", inline(sentences[name])] for name in kinds)
    shared = [
        key
        for key in describe.key_rows(next(iter(kinds.values())))
        if key["name"] in base.model_fields
    ]
    parts = [
        f"# {section}",
        markdown(inspect.cleandoc(base.__doc__ or "")),
        table(["kind", "what it is"], rows),
    ]
    if shared:
        parts.append(f"## Keys of every `{section}`\n\n" + keys_table(shared))
    parts.append(f"## Example\n\n```yaml\n{describe.section_example(section)}\n```")
    return "\n\n".join(parts) + "\n\n" + toctree(kinds)


def index_page() -> str:
    """Return the page of all sections in Markdown."""

    def rows() -> Iterator[list[str]]:
        for section in SECTIONS:
            kinds = bundled(section)
            words = first_paragraph(base_of(next(iter(kinds.values()))))
            yield [f"[`{section}`]({section}/index.md)", str(len(kinds)), inline(words)]

    intro = (
        "A kind is a part that a config can name: a data set, a loss, a measure. Each has a page,"
        " made from the text\nthat `dyn explain` prints. [Kinds of your own](/how-to/own-kinds.md)"
        " stand beside them with the same rights."
    )
    return (
        f"# Kinds\n\n{intro}\n\n{table(['section', 'kinds', 'what they are'], rows())}\n\n"
        + toctree(f"{section}/index" for section in SECTIONS)
    )


# -- names of modules, and the build


def names_table(module: ModuleType, takes: Callable[[Any], bool] = lambda value: True) -> str:
    """Return a table of the public names of a module, those that `takes` accepts, with their
    docstrings or values.
    """
    rows = []
    for name, value in sorted(vars(module).items(), key=lambda item: item[0].lower()):
        if (
            name.startswith("_")
            or name == "annotations"
            or inspect.ismodule(value)
            or not takes(value)
        ):
            continue
        told = (
            inspect.isroutine(value)
            or inspect.isclass(value)
            or type(value).__module__.startswith("dynamics_cli")
        )
        shown = inline(first_paragraph(value)) if told else f"`{str(value).replace('typing.', '')}`"
        rows.append([f"`{name}`", shown])
    return table(["name", "what it is"], rows)


def write(folder: Path) -> None:
    """Write all pages below a folder, and tables that other pages include; remove pages of kinds
    that are gone.
    """
    texts = {folder / "index.md": index_page()}
    texts |= {
        folder / f"_{name}.md": keys_table(describe.key_rows(section))
        for name, section in describe.WHOLE.items()
    }
    for section in SECTIONS:
        texts[folder / section / "index.md"] = section_page(section)
        texts |= {
            folder / section / f"{name}.md": page(cls) for name, cls in bundled(section).items()
        }
    texts[folder / "_formulas.md"] = names_table(
        formulas, lambda value: getattr(value, "__annotations__", {}).get("return") == "Array"
    )
    texts[folder / "_kit.md"] = names_table(kit)
    for path in set(folder.rglob("*.md")) - texts.keys():
        path.unlink()
    for path, text in texts.items():
        write_changed(path, text)


def _written(app: Sphinx) -> None:
    write(Path(app.srcdir) / PAGES)


# -- docstrings and helps, which are plain words with code between backticks, as reStructuredText


def restructured(text: str) -> str:
    """Return plain words as reStructuredText."""
    parts = re.split("(`[^`]+`)", text)
    return "".join(
        (
            f"`{part}`"
            if part.startswith("`") and len(part) > 1
            else re.sub(r"([*|\\]|_\b)", r"\\\1", part)
        )
        for part in parts
    )


def _docstring(
    app: Sphinx, kind: str, name: str, of: object, options: object, lines: list[str]
) -> None:
    kept = lines[:]
    example = False
    # napoleon takes words before a colon for the type of an attribute, but not in this line without
    # any
    lines[:] = ["\\ "] if kind in ("attribute", "property") else []
    for line in kept:
        if line.startswith((">>>", "    ")) and "``" not in line:
            example = line.startswith(">>>") or example
        lines.append(line if example and line else restructured(line))
        example = example and bool(line)


def _signature(app: Sphinx, kind: str, name: str, *_: object) -> tuple[str, None] | None:
    """Leave out the signatures of classes: results are given, and the arguments of a kind are
    its keys.
    """
    return ("", None) if kind == "class" else None


def _help(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    lines[:] = [restructured(line) for line in lines]


def _examples(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Turn the lines below `Examples:` into a block of code; exit codes have a page."""
    written: list[str] = []
    for line in lines:
        text = line.removeprefix("|").strip()
        if text == "Exit codes:":
            break
        if text.endswith(":") and not text.startswith("dyn"):
            written += ["", f".. rubric:: {text[:-1]}", "", ".. code-block:: text", ""]
        elif text:
            written.append(f"   {text}")
    lines[:] = [*written, ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writing of pages, and what makes help and docstrings readable."""
    app.connect("builder-inited", _written)
    app.connect(
        "autodoc-process-docstring", _docstring, priority=400
    )  # before napoleon looks for sections
    app.connect("autodoc-process-signature", _signature)
    for part in ("description", "options"):
        app.connect(f"sphinx-click-process-{part}", _help)
    app.connect("sphinx-click-process-epilog", _examples)
    app.add_css_file("reference.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
