"""Every command, file and block of code of README and the handbook runs, and prints what its
page shows.
"""

import shutil
import sys
from pathlib import Path

import pytest
from sybil.example import SybilFailure

from .blocks import Page, pages

PAGES = pages()


@pytest.mark.docs
@pytest.mark.parametrize("name", PAGES)
def test_page(name, tmp_path):
    fault = ""
    try:
        Page(PAGES[name], tmp_path / "page").run()
    except SybilFailure as error:
        fault = str(error)
    if fault:
        pytest.fail(fault, pytrace=False)


def run(text, folder):
    (folder / "page.md").write_text(text)
    page = Page(folder / "page.md", folder / "page")
    page.run()
    return page


GOOD = {
    "output": "```console\n$ echo a; echo b >&2\na\nb\n$ echo c\nc\n```",
    "elided": "```console\n$ printf 'a 1.5 s\\nx\\ny\\nend\\n'\na ... s\n...\nend\n```",
    "exit code": "```console\n$ exit 3  # exit code 3\n$ (exit 4)  # exit code 4\n```",
    "state": (
        "```console\n$ mkdir sub && cd sub && export A='x y'\n$ echo \"$A\" $(basename $PWD)\nx y"
        " sub\n```"
    ),
    "file": (
        "```{code-block} yaml\n:caption: sub/a\\_.yaml\n\na: 1\n```\n\n```console\n$ cat"
        " sub/a_.yaml\na: 1\n```"
    ),
    "in a note": "::::{note}\n:class: x\n\n```console\n$ echo a\na\n```\n::::",
    "python": "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```",
    "part": "```yaml\narchitecture: {width: 20}\n```\n```yaml\nsweep: {seeds: 3}\n```",
    "needs": "```console\n$ srun dyn sweep my.yaml --shard 1/2  # needs the network\n```",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_true_pages_pass(text, tmp_path):
    page = run(text, tmp_path)
    assert shutil.which("dyn", path=page.environment["PATH"]) == str(
        Path(sys.executable).parent / "dyn"
    )
    assert not [key for key in page.environment if key.startswith("DYN_")]


BAD = {
    "exit code": ("\n```console\n$ false\n```", "line 2.*\n`false` ends with exit code 1"),
    "in a pipe": ("```console\n$ false | true\n```", "exit code 1"),
    "output": ("```console\n$ true\n$ echo a\nb\n```", r"`echo a`\nExpected:\n *b\nGot:\n *a"),
    "option": (
        "```console\n$ dyn sweep a.yaml --dusk x  # needs a GPU\n```",
        "No such option.*--dusk",
    ),
    "no command": ("```console\ndyn list\n```", "begins with"),
    "python": ("\n\n```python\nx = 1\n1 / 0\n```", "line 5(.*\n)*.*ZeroDivisionError"),
    "python prints": ("```python\nprint(1)\n```\n```text\n2\n```", r"Expected:\n *2\nGot:\n *1"),
    "part": ("```yaml\narchitecture: {widht: 20}\n```", "widht: unknown key"),
    "language": ("```ini\na = 1\n```", "'ini'"),
    "in a note": (":::{note}\n```console\n$ false\n```\n:::", "line 2"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_false_pages_fail(text, message, tmp_path):
    with pytest.raises(SybilFailure, match=message):
        run(text, tmp_path)
